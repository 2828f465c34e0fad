"""The options of a crawl: one frozen value, stored as JSON in the crawl's database, so that a resumed crawl has the same ones."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from trapline import __version__
from trapline.crawler.discovery.scope import ANY, Scope
from trapline.crawler.discovery.site_settings import SiteSettings, SiteTables
from trapline.crawler.store.settings import StoreSettings
from trapline.defaults import CONNECTIONS, DELAY_S, PAGES_PER_SITE, PAUSE_S, PER_CONNECTION, QUALITY, STRATEGY
from trapline.errors import ConfigError, nearest
from trapline.fetch.limits import Limits
from trapline.frontier import Rules

_TYPES = ("exclude_extensions", "include_mimes", "exclude_mimes")
AGENT = (
    "trapline"  # the name of the crawler in its user agent and, unless the user says otherwise, for robots.txt files
)
PROTOCOLS = ("1.0", "1.1", "pipelining")


def live_rules(**changes: Any) -> Rules:
    return Rules(**{"delay_s": DELAY_S, "per_connection": PER_CONNECTION, "pages_per_site": PAGES_PER_SITE, **changes})


# A connection is kept between two visits if the delays are no longer than this: common servers close idle ones after 5 s or more.
KEPT_S = 5.0


@dataclass(frozen=True, slots=True)
class RefreshOptions:
    """How fetched pages are fetched again."""

    policy: str = "residual-life"
    settings: Mapping[str, float] = field(default_factory=dict)  # of the policy
    share: float = 0.5  # of all requests, while new pages wait
    price: float | None = None  # instead of a share: the least value for which a page is fetched again
    rate: float = math.inf  # most pages per second
    continuous: bool = False  # whether the crawl goes on when no new page is left


@dataclass(frozen=True, slots=True)
class CrawlOptions:
    seeds: tuple[str, ...]  # canonical URLs
    strategy: str = STRATEGY
    page_rank: str | None = None
    site_rank: str | None = None
    quality: str = QUALITY
    quality_processes: int = 1  # processes that score pages, with content:NAME
    history: str | None = None
    modules: str = ""  # the folder of the user's module, if `quality` names one
    # The user's function for each page, MODULE:NAME or FILE.py:NAME, and the folder in which a module is looked up.
    handler: str | None = None
    handler_folder: str = ""
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
    exclude_extensions: tuple[str, ...] = ()  # of file names; such URLs are not requested
    include_mimes: tuple[str, ...] = ()  # media types whose bodies are read; (): all
    exclude_mimes: tuple[str, ...] = ()  # media types whose bodies are not read
    # Whether sitemaps and feeds are read. None: in a crawl that fetches pages again, because they say what has changed.
    sitemaps: bool | None = None
    requisites: bool = False  # whether stylesheets, images, scripts and the like of pages are fetched too
    # Hosts of the user, which several processes may visit at once; the crawl stays on them.
    own_hosts: tuple[str, ...] = ()
    allow_private: bool = False
    insecure: bool = False
    abandon: int = 5  # number of consecutive failed visits after which a site is abandoned
    contact: str = ""
    user_agent: str = ""  # without the contact; "": trapline/VERSION
    robots_token: str = AGENT  # the product token by which robots.txt files address this crawler
    headers: tuple[str, ...] = ()  # NAME: VALUE, of every request
    # Files with secrets. Only their names are options: the secrets are read when a run begins, and kept nowhere.
    credentials: str = ""
    cookies: str = ""
    accept_cookies: bool = False  # whether cookies that servers set are sent back to them
    proxy: str = ""  # URL, without password
    proxy_names: bool = False  # whether the proxy gets names instead of addresses
    no_robots: bool = False  # whether robots.txt files of `own_hosts` are ignored
    sites: SiteTables = field(default_factory=dict)  # settings of single sites, by host
    hosts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    nameservers: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    refresh: RefreshOptions | None = None  # None: every page is fetched once
    metadata: bool = False  # whether to write a WARC metadata record with the links of each page
    warc_prefix: str = StoreSettings.name  # archives are PREFIX-00000.warc.gz, ...
    warc_bytes: int = StoreSettings.warc_bytes  # when an archive has reached this size, the next one is begun
    log_level: str = StoreSettings.log_level  # events below this level are not written to crawl.log
    log_format: str = StoreSettings.log_format  # of crawl.log
    log_bytes: int = StoreSettings.log_bytes  # when crawl.log has reached this size, the next one is begun
    # Pages between two snapshots. Replay takes a few microseconds per page, so a resume takes a second.
    snapshot_pages: int = 100_000

    @property
    def whole_user_agent(self) -> str:
        """The header User-Agent, with the contact.

        >>> CrawlOptions((), contact="https://example.org/bot", user_agent="my-bot/1.0").whole_user_agent
        'my-bot/1.0 (+https://example.org/bot)'
        """
        return (self.user_agent or f"{AGENT}/{__version__}") + (f" (+{self.contact})" if self.contact else "")

    def scope_of_crawl(self, accept: Callable[[str], bool] | None = None) -> Scope:
        """Return the scope of the crawl. Raise `ConfigError` if the scope is unknown or a pattern is invalid. `accept`: rejects
        URLs that the options admit."""
        return Scope(
            self.scope,
            self.seeds,
            self.include,
            self.exclude,
            self.own_hosts,
            extensions=self.exclude_extensions,
            sites=self.sites,
            accept=accept,
        )

    @property
    def reads_lists(self) -> bool:
        """Whether the crawl looks for sitemaps and feeds. One that is a seed is read in any case."""
        return self.refresh is not None if self.sitemaps is None else self.sitemaps

    @property
    def guesses_sitemaps(self) -> bool:
        """Whether /sitemap.xml is requested from sites whose robots.txt names no sitemap."""
        return bool(self.sitemaps) and self.scope != ANY

    @property
    def without_robots(self) -> tuple[str, ...]:
        """Hosts, with their subdomains, whose robots.txt does not hold."""
        return self.own_hosts if self.no_robots else ()

    def to_json(self) -> str:
        # Python's JSON writes infinity as Infinity and reads it back.
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "CrawlOptions":
        try:
            return cls._from_values(_known(cls, json.loads(text)))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ConfigError(f"the crawl's options cannot be read: {error!r}; restore crawl.db from a copy") from None

    @classmethod
    def _from_values(cls, values: dict[str, Any]) -> "CrawlOptions":
        values["rules"] = Rules(**_known(Rules, values["rules"]))
        values["limits"] = Limits(**_known(Limits, values["limits"]))
        if values.get("refresh") is not None:
            values["refresh"] = RefreshOptions(**_known(RefreshOptions, values["refresh"]))
        values["sites"] = {
            host: SiteSettings.from_values(_known(SiteSettings, table))
            for host, table in values.get("sites", {}).items()
        }
        for name in ("seeds", "include", "exclude", "own_hosts", "nameservers", "headers", *_TYPES):
            values[name] = tuple(values.get(name, ()))
        return cls(**values)


# ---- What the crawler itself needs of the options.


@dataclass(frozen=True, slots=True)
class Goals:
    """Numbers of pages and bytes at which a crawl stops. Infinity: no limit."""

    pages: float = math.inf
    bytes: float = math.inf


@dataclass(frozen=True, slots=True)
class CrawlerSettings:
    """Settings that stay the same during a run."""

    connections: int  # most connections at the same time
    agent: str  # the product token by which robots.txt files address this crawler
    expanded_bytes: int  # largest size of a page after its content coding is removed; a longer page is not read
    abandon: int  # number of consecutive failed visits after which a site is abandoned
    goals: Goals = field(default_factory=Goals)
    keep_hrefs: bool = False  # whether the store also receives the links as they are written on the page


def _known(kind: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values. Raise `ConfigError` if one of them is no field of the class."""
    names = {field.name for field in fields(kind)}
    for name in values.keys() - names:
        raise ConfigError(f"the crawl has an option {name!r} that this version does not know; {nearest(name, names)}")
    return values
