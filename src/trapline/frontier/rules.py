"""The rules of a crawl: politeness, limits, batches, estimates. One frozen dataclass; its fields are the papers'
symbols, spelled out."""

import math
from dataclasses import dataclass, fields

from trapline.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Rules:
    """What the frontier obeys, for all sites that have no rules of their own.

    >>> Rules(delay_s=5.0).ip_delay_s is None
    True
    """

    delay_s: float = 15.0  # w: rest of a site after a visit (castillo04: under 15 s is impolite)
    ip_delay_s: float | None = None  # rest of an address after a visit; None: delay_s
    small_site_pages: int = 0  # sites with fewer known pages rest small_site_delay_s instead
    small_site_delay_s: float = 15.0  # castillo-thesis 4.5.2: 15 s below 100 pages, with w = 5
    per_connection: int = 1  # k; 0: as many as the server allows
    lease_s: float = 600.0
    retries: int = 2
    backoff_s: float = 60.0
    backoff_most_s: float = 3600.0
    pages_per_site: int = 0  # 0: no limit; castillo04 used 25,000
    depth_static: int = 0  # 0: no limit; castillo04 used 15
    depth_dynamic: int = 0  # 0: no limit; castillo04 used 5
    batch: int = 0  # K; 0: no batches
    batch_ahead: bool = False  # choose the next batch before the visits of the last are over
    batch_least_active: int = 0  # choose anew when fewer visits are under way and none can begin
    alpha: float = 0.8  # weight of the old estimate (cao 4.2)
    pipelining: bool = False
    first_connection_s: float = 0.1  # before any site was measured
    first_response_s: float = 0.1
    first_requests: int = 50  # requests per connection of a site not seen yet (cao 4.2)

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None or isinstance(value, bool):
                continue
            if not value >= 0 or (math.isinf(value) and field.name != "lease_s"):
                raise ConfigError(f"{field.name} is {value}; it must be a number of at least 0")
        if self.alpha > 1:
            raise ConfigError(f"alpha is {self.alpha}; it must be between 0 and 1")
        if self.retries > 200:
            raise ConfigError(f"retries is {self.retries}; it must be at most 200")
        if self.first_requests < 1:
            raise ConfigError(f"first_requests is {self.first_requests}; it must be at least 1")
        if self.lease_s <= 0:
            raise ConfigError(f"lease_s is {self.lease_s}; it must be more than 0")

    @property
    def pipeline_gain(self) -> float:
        return 1.2 if self.pipelining else 1.0  # cao 4.2: p
