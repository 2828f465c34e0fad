"""The rules of a crawl: politeness, limits, batches, estimates.

`Rules` is a frozen dataclass; its fields are the symbols of the papers, spelled out.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from trapline.compiled.jit import f8, helper, i8, shared
from trapline.defaults import DELAY_S, PAGES_PER_SITE, PER_CONNECTION
from trapline.errors import ConfigError, nearest
from trapline.frontier.layout import BACKLOG, FRONT, MOST_PER_VISIT, FrontierState, Record, StateType
from trapline.setting_bounds import NumberBounds

# ---- The rules as they apply to one site: how many pages a visit may take, and how long the site is then delayed.

NO_LIMIT = 1 << 31


@helper(i8(StateType, i8, i8))
def budget_left(s: FrontierState, x: int, level: int) -> int:
    """Return how many pages may still be fetched from the site; for a backlog, without the pages that are chosen already."""
    site = s.site[x]
    budget = site.budget if site.budget >= 0 else s.run[0].pages_per_site
    if site.budget < 0 and budget == 0:
        return NO_LIMIT
    left = budget - site.taken
    return left - s.queue[x, FRONT].waiting if level == BACKLOG else left


@helper(i8(StateType, i8))
def connection_limit(s: FrontierState, x: int) -> int:
    """Return how many pages one connection to the site may request: the least of k, its requests per connection and MOST_PER_VISIT."""
    site = s.site[x]
    limit = min(site.requests, MOST_PER_VISIT)
    k = site.per_connection if site.per_connection >= 0 else s.run[0].per_connection
    return min(limit, k) if k > 0 else limit


@helper(i8(StateType, i8, i8))
def visit_limit(s: FrontierState, x: int, level: int) -> int:
    """Return P of the site: the connection limit, or what is left of the budget if that is less."""
    return max(0, min(connection_limit(s, x), budget_left(s, x, level)))


@shared
def site_delay_s(run: Record, site: Record) -> float:
    """Return the delay w: the site's own, or a delay by its size (castillo-thesis 4.5.2). Site ranks may use it too."""
    if site.delay_s == site.delay_s:
        return site.delay_s
    return run.small_site_delay_s if site.known < run.small_site_pages else run.delay_s


@helper(f8(StateType, i8))
def backoff_s(s: FrontierState, x: int) -> float:
    """Return the back-off of the site: it doubles with every failed visit in a row."""
    run = s.run[0]
    failures = s.site[x].failures
    if failures == 0:
        return 0.0
    return min(run.backoff_s * 2.0 ** (failures - 1), run.backoff_most_s)


# ---- rules

MOST_COUNT = 2**31 - 1
MOST_SECONDS = 1e9  # 31 years; a clock at a much larger time would round off the seconds that are added to it
ESTIMATORS = ("average", "median")
_LEAST = {"lease_s": 1e-9, "first_requests": 1}
# Each failed try halves a rank: after ten it is a thousandth
_MOST = {"lease_s": math.inf, "alpha": 1.0, "retries": 10}


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for all sites that have no rules of their own.

    >>> Rules(delay_s=5.0).address_delay_s, Rules(delay_s=5.0, ip_delay_s=0.0).address_delay_s
    (5.0, 0.0)
    """

    delay_s: float = 15.0  # w: delay of a site after a visit (castillo04: under 15 s is impolite)
    ip_delay_s: float | None = None  # delay of an address after a visit; None: delay_s
    small_site_pages: int = 0  # sites with fewer known pages have small_site_delay_s as their delay
    small_site_delay_s: float = 15.0  # castillo-thesis 4.5.2: 15 s below 100 pages, with w = 5
    per_connection: int = 1  # k; 0: as many pages as the server allows
    lease_s: float = 600.0  # a visit that has not ended after this time expires
    retries: int = 2  # further tries of a page that failed
    backoff_s: float = 60.0  # back-off after the first failed visit; it doubles with each further one
    backoff_most_s: float = 3600.0  # longest back-off
    pages_per_site: int = 0  # 0: no limit; castillo04 used 25,000
    depth_static: int = 0  # 0: no limit; castillo04 used 15
    depth_dynamic: int = 0  # 0: no limit; castillo04 used 5
    batch: int = 0  # K; 0: no batches
    batch_ahead: bool = False  # choose the next batch before the visits of the last one are over
    batch_least_active: int = 0  # choose the next batch when fewer visits are under way and no visit can begin
    rescore: int = 0  # pages fetched between two scorings, for page ranks that use scores; 0: no scoring
    estimator: str = "average"  # estimator of a site's connection and response times: average or median
    alpha: float = 0.8  # weight of the old estimate (cao 4.2)
    pipelining: bool = False
    first_connection_s: float = 0.1  # estimates before any site was measured
    first_response_s: float = 0.1
    first_requests: int = 50  # requests per connection of a site not visited yet (cao 4.2)

    def __post_init__(self) -> None:
        for field in fields(self):
            value, whole = getattr(self, field.name), field.type is int
            if field.type is bool or value is None:
                continue
            if field.name == "estimator":
                if value not in ESTIMATORS:
                    raise ConfigError(f"estimator is {value!r}; it must be {' or '.join(ESTIMATORS)}")
                continue
            if not isinstance(value, int | float) or (whole and value != int(value)):
                raise ConfigError(f"{field.name} is {value!r}; it must be a {'whole ' if whole else ''}number")
            most = _MOST.get(field.name, MOST_COUNT if whole else MOST_SECONDS)
            if not _LEAST.get(field.name, 0) <= value <= most:
                raise ConfigError(f"{field.name} is {value}; it must be in {_LEAST.get(field.name, 0)}..{most:g}")

    @property
    def address_delay_s(self) -> float:
        """Delay of an address after a visit."""
        return self.delay_s if self.ip_delay_s is None else self.ip_delay_s

    @property
    def pipeline_gain(self) -> float:
        """Factor by which pipelining shortens the responses of a visit."""
        return 1.2 if self.pipelining else 1.0  # cao 4.2: p


# ---- The rules by the names of the options.


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSettings:
    """The rules as users set them, for live and simulated crawls: the names and defaults are those of the options of the commands.

    Times are in seconds. The settings of a crawl are a class that inherits these.
    """

    delay: float = DELAY_S
    ip_delay: float | None = None
    small_site_pages: int = 0
    small_site_delay: float = 15.0
    per_connection: int = PER_CONNECTION
    retries: int = 2
    backoff: float = 60.0
    max_backoff: float = 3600.0
    max_pages_per_site: int = PAGES_PER_SITE
    max_depth: int = 0
    max_depth_dynamic: int = 0
    batch: int = 0
    batch_ahead: bool = False
    batch_min_active: int = 0
    rescore: int = 0
    estimator: str = "average"
    alpha: float = 0.8
    first_connection: float | None = None
    first_response: float | None = None
    first_requests: int = 50

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Return the settings with these names. Raise `ConfigError` if there is no setting of a name."""
        names = [one.name for one in fields(cls)]
        for name in given:
            if name not in names:
                raise ConfigError(f"a crawl has no setting {name!r}; {nearest(name, names)}")
        return cls(**given)

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """Return the settings with some of them changed."""
        type(self).of(changes)  # raises ConfigError for unknown names
        return replace(self, **changes)

    def check(self, bounds: Mapping[str, NumberBounds]) -> None:
        """Raise `ConfigError` if a setting is not of its type or within its bounds, or has no effect without another one."""
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name in bounds and value is not None:
                bounds[one.name].check(one.name, value)
            if one.type is str and not isinstance(value, str):
                raise ConfigError(f"{one.name}: {value!r} is not a text")
        if not self.batch and (self.batch_ahead or self.batch_min_active):
            raise ConfigError("--batch-ahead and --batch-min-active have no effect without batches; also give --batch")
        if not self.small_site_pages and self.small_site_delay != RuleSettings().small_site_delay:
            raise ConfigError("--small-site-delay has no effect without small sites; also give --small-site-pages")

    def rules(self, **changes: Any) -> Rules:
        """Return the rules. `changes`: fields of `Rules` that are no settings, or have another value."""
        first = {"first_connection_s": self.first_connection, "first_response_s": self.first_response}
        return Rules(
            **{
                "delay_s": self.delay,
                "ip_delay_s": self.ip_delay,
                "small_site_pages": self.small_site_pages,
                "small_site_delay_s": self.small_site_delay,
                "per_connection": self.per_connection,
                "retries": self.retries,
                "backoff_s": self.backoff,
                "backoff_most_s": self.max_backoff,
                "pages_per_site": self.max_pages_per_site,
                "depth_static": self.max_depth,
                "depth_dynamic": self.max_depth_dynamic,
                "batch": self.batch,
                "batch_ahead": self.batch_ahead,
                "batch_least_active": self.batch_min_active,
                "rescore": self.rescore,
                "estimator": self.estimator,
                "alpha": self.alpha,
                "first_requests": self.first_requests,
                **{name: value for name, value in first.items() if value is not None},
                **changes,
            }
        )
