"""What a crawl was asked to do: one frozen value, kept as JSON in the crawl's database, so that it can go on as it began."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from trapline import __version__
from trapline.crawl.scope import Scope
from trapline.errors import ConfigError, nearest
from trapline.fetch.limits import Limits
from trapline.frontier import Rules

PROTOCOLS = ("1.0", "1.1", "pipelining")
# Why these. w: castillo04, "under 15 s is impolite". k, and a second between its pages: what a reader with a browser does to a
# site, then leaves it alone. r: cao fig. 4, no gain past 96 connections. Pages of a site: castillo04, against traps.
DELAY_S, PAUSE_S, PER_CONNECTION, CONNECTIONS, PAGES_PER_SITE = 15.0, 1.0, 10, 100, 25_000


def live_rules(**changes: Any) -> Rules:
    return Rules(**{"delay_s": DELAY_S, "per_connection": PER_CONNECTION, "pages_per_site": PAGES_PER_SITE, **changes})


@dataclass(frozen=True, slots=True)
class RefreshOptions:
    """How pages that were fetched are fetched again."""

    policy: str = "residual-life"
    settings: Mapping[str, float] = field(default_factory=dict)  # of the policy
    share: float = 0.5  # of all pages asked for, while new ones wait
    price: float | None = None  # instead of a share: what a page must be worth
    rate: float = math.inf  # pages per second, at most
    continuous: bool = False  # the crawl does not end when nothing new is left


@dataclass(frozen=True, slots=True)
class CrawlOptions:
    seeds: tuple[str, ...]  # canonical URLs
    strategy: str = "crawl-ability"
    page_rank: str | None = None
    site_rank: str | None = None
    quality: str = "opic"
    history: str | None = None
    modules: str = ""  # the folder in which `quality` finds a user's MODULE
    seed: int = 0
    connections: int = CONNECTIONS  # r
    rules: Rules = field(default_factory=live_rules)
    pause_s: float = PAUSE_S  # between two pages of a visit
    http: str = "1.1"
    bandwidth: float = math.inf  # B, bytes per second in all
    site_bandwidth: float = math.inf
    max_pages: float = math.inf
    max_seconds: float = math.inf
    max_bytes: float = math.inf
    scope: str = "host"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    allow_private: bool = False
    insecure: bool = False
    give_up: int = 5  # visits in a row that fail, until a site is left alone
    contact: str = ""
    hosts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    nameservers: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    refresh: RefreshOptions | None = None  # None: every page is fetched once
    metadata: bool = False  # a WARC record of the links of each page
    # Between two snapshots: replay is some microseconds a page, so a resume takes a second.
    snapshot_pages: int = 100_000

    @property
    def user_agent(self) -> str:
        """
        >>> CrawlOptions((), contact="https://example.org/bot").user_agent.split(" ", 1)[1]
        '(+https://example.org/bot)'
        """
        return f"{AGENT}/{__version__}" + (f" (+{self.contact})" if self.contact else "")

    def scope_of_crawl(self) -> Scope:
        """`ConfigError` if there is no such scope or a pattern cannot be read."""
        return Scope(self.scope, self.seeds, self.include, self.exclude)

    def to_json(self) -> str:
        # Python's JSON writes infinity as Infinity and reads it back.
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "CrawlOptions":
        try:
            values = _known(cls, json.loads(text))
        except ValueError as error:
            raise ConfigError(f"the crawl's options cannot be read: {error}; restore crawl.db from a copy") from None
        values["rules"] = Rules(**_known(Rules, values["rules"]))
        values["limits"] = Limits(**_known(Limits, values["limits"]))
        if values.get("refresh") is not None:
            values["refresh"] = RefreshOptions(**_known(RefreshOptions, values["refresh"]))
        for name in ("seeds", "include", "exclude", "nameservers"):
            values[name] = tuple(values[name])
        return cls(**values)


AGENT = "trapline"  # the product token that robots.txt files know us by


def _known(kind: Any, values: dict[str, Any]) -> dict[str, Any]:
    """The values, if each is a field of that class."""
    names = {field.name for field in fields(kind)}
    for name in values.keys() - names:
        raise ConfigError(f"the crawl has an option {name!r} that this version does not know; {nearest(name, names)}")
    return values
