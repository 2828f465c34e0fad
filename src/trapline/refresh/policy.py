"""What a refresh policy is: compiled functions of what is known of one page, and a record of what they need.

A function is called as `f(s, page, now)`, `s` a `View` (layout.py), and answers a number. `value`: what a crawl of the page is worth at
`now`, in whatever unit; the page of the largest value is crawled. It must be a function of what is in `s` and of `now`, which may
lie ahead. The `on_...` functions hear of an event *before* it is noted in the page's record; what they answer is ignored,
what they keep goes into `s.columns[page, i]` and `s.totals[i]`. This file knows no policy.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from trapline.errors import ConfigError, nearest
from trapline.jit import Rank, caller3, f8, i8
from trapline.refresh.layout import Array, ViewType

RULE = f8(ViewType, i8, f8)
call_rule = caller3(RULE)
MOST = 1e9  # of an option


def rule(function: Callable[..., float]) -> Rank:
    """Decorate a function of a policy."""
    return Rank(function, RULE, cached=function.__module__.startswith("trapline."))


@dataclass(frozen=True, slots=True)
class Way:
    """A value of an option that has a name, and what a policy needs to go that way: columns behind its own, and whether signals count."""

    name: str
    columns: tuple[str, ...] = ()
    hears: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """`still`: a page's value changes only with an event of that page, or at a revision. At a revision `on_revision(s, -1, now)` is called,
    and then all values are computed anew; between two of them are so many slots and signals as `revision` says, as a share of the
    pages, and at least the share `growth` of all so far. `on_cycle(s, -1, now)` is called at the beginning of each cycle.
    `columns` names the numbers kept per page, `options` has the defaults of what a user may set. `hears`: what providers tell changes
    values; if not, it changes nothing at all. `ways`: of options whose values 0, 1, ... have names."""

    name: str
    value: Rank
    still: bool = False
    on_access: Rank | None = None
    on_signal: Rank | None = None
    on_point: Rank | None = None
    on_crawl: Rank | None = None
    on_cycle: Rank | None = None
    on_revision: Rank | None = None
    revision: float = 0.0
    growth: float = 0.0
    columns: tuple[str, ...] = ()
    options: Mapping[str, float] = field(default_factory=dict)
    hears: bool = True
    ways: Mapping[str, tuple[Way, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for function in (self.value, *self._hooks().values()):
            if function is not None and (not isinstance(function, Rank) or function.signature != RULE):
                raise ConfigError(f"a function of policy {self.name!r} is not decorated with @rule")

    def with_options(self, **changes: float | str) -> "Policy":
        """A value is a number or its text, or the name of a way."""
        return replace(self, options={**self.options, **{name: self._read(name, x) for name, x in changes.items()}})

    def _read(self, name: str, value: float | str) -> float:
        if name not in self.options:
            what = nearest(name, self.options) if self.options else "it has none"
            raise ConfigError(f"policy {self.name!r} has no option {name!r}; {what}")
        names = [way.name for way in self.ways.get(name, ())]
        if value in names:
            return float(names.index(str(value)))
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if names and number not in range(len(names)):
            raise ConfigError(f"policy {self.name!r} has no {name} {value!r}; {nearest(str(value), names)}")
        if not 0.0 <= number <= MOST:
            raise ConfigError(f"option {name!r} of policy {self.name!r}: {value!r} is not a number in 0..{MOST:.0e}")
        return number

    @property
    def chosen(self) -> list[Way]:
        return [ways[int(self.options[name])] for name, ways in self.ways.items()]

    @property
    def kept(self) -> tuple[str, ...]:
        """The numbers kept per page: the policy's own, then those of the ways chosen."""
        return self.columns + tuple(column for way in self.chosen for column in way.columns)

    def compile(self) -> None:
        for function in (self.value, *self._hooks().values()):
            if function is not None:
                _ = function.address

    def bind(self, run: Array, option: Array) -> None:
        """Write into the state what its kernels need of the policy: addresses hold for this process only."""
        run[0].value = self.value.address
        run[0].still = self.still
        run[0].hears = self.hears or any(way.hears for way in self.chosen)
        for name, function in self._hooks().items():
            run[0][name] = -1 if function is None else function.address
        option[: len(self.options)] = list(self.options.values())

    def _hooks(self) -> dict[str, Rank | None]:
        names = ("on_access", "on_signal", "on_point", "on_crawl", "on_cycle", "on_revision")
        return {name: getattr(self, name) for name in names}
