"""The rules of a crawl: politeness, limits, batches, estimates. One frozen dataclass; its fields are the papers'
symbols, spelled out."""

import math
from dataclasses import dataclass, fields

from trapline.errors import ConfigError

MOST_COUNT = 2**31 - 1
MOST_SECONDS = 1e9  # 31 years; a clock that has run much longer rounds off the seconds added to it
ESTIMATORS = ("average", "median")
_LEAST = {"lease_s": 1e-9, "first_requests": 1}
_MOST = {"lease_s": math.inf, "alpha": 1.0, "retries": 10}  # each try halves a rank: ten are a thousandth


@dataclass(frozen=True, slots=True)
class Rules:
    """What the frontier obeys, for all sites that have no rules of their own.

    >>> Rules(delay_s=5.0).address_rest_s, Rules(delay_s=5.0, ip_delay_s=0.0).address_rest_s
    (5.0, 0.0)
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
    rescore: int = 0  # pages fetched between two scorings, for page ranks that have scores; 0: none
    estimator: str = "average"  # of a site's times: average or median
    alpha: float = 0.8  # weight of the old estimate (cao 4.2)
    pipelining: bool = False
    first_connection_s: float = 0.1  # before any site was measured
    first_response_s: float = 0.1
    first_requests: int = 50  # requests per connection of a site not seen yet (cao 4.2)

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
    def address_rest_s(self) -> float:
        """Of an address after a visit."""
        return self.delay_s if self.ip_delay_s is None else self.ip_delay_s

    @property
    def pipeline_gain(self) -> float:
        return 1.2 if self.pipelining else 1.0  # cao 4.2: p
