"""How a live crawl's refresh behaves, whatever its policy. One frozen dataclass, like the frontier's Rules."""

import math
from dataclasses import dataclass

from trapline.errors import ConfigError


@dataclass(frozen=True, slots=True)
class RefreshRules:
    """
    >>> RefreshRules().keeps
    0.995
    """

    cycle_s: float = 1800.0  # the paper's cycle
    slots_per_s: float | None = None  # crawls that policies reckon with; None: as many as there were in the recent past
    first_slots_per_s: float = 1.0  # until that is known
    half_life_s: float | None = 30 * 86_400.0  # of accesses; None: none is forgotten
    trust_memory: float = (
        200.0  # outcomes of a site's channel after which one counts a third; of all sites a hundred times as many
    )

    def __post_init__(self) -> None:
        for name in ("cycle_s", "slots_per_s", "first_slots_per_s", "half_life_s"):
            value = getattr(self, name)
            if value is not None and not 0.0 < value < math.inf:
                raise ConfigError(f"refresh: {name} is {value}; it must be above 0")
        if not self.trust_memory > 1.0:
            raise ConfigError(f"refresh: trust_memory is {self.trust_memory}; it must be above 1")

    @property
    def keeps(self) -> float:
        return 1.0 - 1.0 / self.trust_memory

    @property
    def keeps_of_all(self) -> float:
        return 1.0 - 0.01 / self.trust_memory
