"""The type of a refresh policy: compiled functions of the evidence about one page, and a record of what they need.

A function is called as `f(s, page, now)`, where `s` is a `PolicyView` (refresh/core/layout.py), and returns a number. `value`
returns the value of a crawl of the page at `now`, in any unit; the page with the largest value is crawled. It must depend
only on `s` and on `now`, which may lie in the future. The `on_...` functions are called for an event *before* the event is
recorded in the page's record. Their result is ignored; they keep their numbers in `s.columns[page, i]` and `s.totals[i]`.
This module knows no particular policy.
"""

import importlib
import math
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

import trapline.refresh.policies
from trapline.compiled.jit import Rank, caller3, f8, i8
from trapline.errors import ConfigError, nearest
from trapline.refresh.core.layout import Array, ViewType

RULE = f8(ViewType, i8, f8)
call_rule = caller3(RULE)
MOST = 1e9  # largest value of an option


def rule(function: Callable[..., float]) -> Rank:
    """Compile a function of a policy. Use it as a decorator."""
    return Rank(function, RULE, cached=function.__module__.startswith("trapline."))


@dataclass(frozen=True, slots=True)
class Way:
    """A named value of an option, and what the policy needs for it: further columns after its own, and whether it uses signals."""

    name: str
    columns: tuple[str, ...] = ()
    uses_signals: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """A refresh policy: its compiled functions and what they need.

    `still`: the value of a page changes only with an event of that page, or at a revision. At a revision
    `on_revision(s, -1, now)` is called, then all values are computed again. A revision is due when the number of slots and
    signals since the last one is at least `revision` times the number of pages, and at least `growth` times the number of
    all slots and signals so far. `on_cycle(s, -1, now)` is called at the beginning of each cycle. `fills_capacity`: the due times of the
    pages follow from the capacity, so a page is refetched before it is due if a slot is free. Otherwise such a policy, which learns the
    capacity from its own refetches, would find less and less of it.
    `columns`: names of the numbers kept for each page. `options`: the defaults of the options that a user may set. `uses_signals`:
    signals and published points change values; if False, they are ignored. `ways`: the named values of options whose
    values are 0, 1, ...
    """

    name: str
    value: Rank
    still: bool = False
    fills_capacity: bool = False
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
    uses_signals: bool = True
    ways: Mapping[str, tuple[Way, ...]] = field(default_factory=dict)

    @property
    def least(self) -> float:
        """The least value of a page that is refetched."""
        return -math.inf if self.fills_capacity else 0.0

    def __post_init__(self) -> None:
        for function in (self.value, *self._hooks().values()):
            if function is not None and (not isinstance(function, Rank) or function.signature != RULE):
                raise ConfigError(
                    f"policy {self.name!r}: one of its functions is not decorated with @rule; add the decorator"
                )

    def with_options(self, **changes: float | str) -> "Policy":
        """Return the policy with these options changed. A value is a number, the text of a number, or the name of a way."""
        return replace(self, options={**self.options, **{name: self._read(name, x) for name, x in changes.items()}})

    def _read(self, name: str, value: float | str) -> float:
        if name not in self.options:
            advice = nearest(name, self.options) if self.options else "it has no options"
            raise ConfigError(f"policy {self.name!r} has no option {name!r}; {advice}")
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
        """The ways that the options choose."""
        return [ways[int(self.options[name])] for name, ways in self.ways.items()]

    @property
    def kept(self) -> tuple[str, ...]:
        """Names of the numbers kept for each page: the policy's own, then those of the chosen ways."""
        return self.columns + tuple(column for way in self.chosen for column in way.columns)

    def compile(self) -> None:
        """Compile all functions of the policy."""
        for function in self.functions:
            _ = function.address

    @property
    def functions(self) -> list[Rank]:
        """All functions of the policy that are compiled."""
        return [function for function in (self.value, *self._hooks().values()) if function is not None]

    def bind(self, run: Array, option: Array) -> None:
        """Write into the state what its kernels need of the policy. Addresses are valid in this process only."""
        run[0].value = self.value.address
        run[0].still = self.still
        run[0].uses_signals = self.uses_signals or any(way.uses_signals for way in self.chosen)
        for name, function in self._hooks().items():
            run[0][name] = -1 if function is None else function.address
        option[: len(self.options)] = list(self.options.values())

    def _hooks(self) -> dict[str, Rank | None]:
        names = ("on_access", "on_signal", "on_point", "on_crawl", "on_cycle", "on_revision")
        return {name: getattr(self, name) for name in names}


# ---- Registry: every module of the folder policies/. A new policy needs one new file; there is no list to add it to.


@cache
def all_policies() -> dict[str, Policy]:
    """Return all policies of the folder policies/ by name."""
    names = sorted(found.name for found in pkgutil.iter_modules(trapline.refresh.policies.__path__))
    modules = [importlib.import_module(f"trapline.refresh.policies.{name}") for name in names]
    found = (getattr(module, "POLICY", None) for module in modules)
    return {policy.name: policy for policy in found if isinstance(policy, Policy)}


def policy_named(name: str) -> Policy:
    """Return the policy of this name, or raise ConfigError."""
    if name not in all_policies():
        raise ConfigError(f"no refresh policy {name!r}; {nearest(name, all_policies())}")
    return all_policies()[name]
