"""The settings of a live crawl, by the names of the options of `trapline crawl`, for Python programs and for the command line.

`CrawlSettings.options` turns them into `CrawlOptions`, the form that the crawl keeps in its folder. Times are in seconds,
sizes in bytes, shares between 0 and 1. None stands for "no limit", or for the default that docs/crawl.md names.
Which of them a resumed crawl may change is in crawler/files/changed_options.py.
"""

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trapline.crawler.discovery.scope import ANY
from trapline.crawler.discovery.site_settings import SiteSettings, read_tables
from trapline.crawler.engine.options import AGENT, PROTOCOLS, CrawlOptions, RefreshOptions
from trapline.crawler.files.event_log import FORMATS, JSON, LEVELS, LOG_BYTES
from trapline.defaults import CONNECTIONS, QUALITY, STRATEGY
from trapline.defaults import pause_s as default_pause_s
from trapline.errors import ConfigError, nearest
from trapline.fetch.dns import read_hosts
from trapline.fetch.http.proxy import read_proxy
from trapline.fetch.http.user_headers import check_user_agent, read_headers
from trapline.fetch.limits import Limits
from trapline.fetch.urls import MOST_URL, canonical
from trapline.frontier import Rules
from trapline.frontier.rules import RuleSettings
from trapline.refresh.policy import policy_named
from trapline.setting_bounds import BOUNDS
from trapline.strategies.base.choice import absolute

_NOT_A_URL = "not an http or https URL; give one such as https://example.org/"
_BARE = re.compile(r"(?!.*://)\w[^\s@/:]*(:\d+)?(/.*)?")  # example.org, localhost:8000/a

_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/(?:\*|[a-z0-9!#$&^_.+-]+)")
_PASSWORD = re.compile(r"(?!mailto:)(?:\w+:[/\\]+)?[^/\\?#:]*:[^/\\?#]*@")  # http://name:password@


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlSettings(RuleSettings):
    """See `trapline crawl --help`: every field is the option of the same name. `archive` sets those of `requisites`, `sitemaps`
    and `metadata` that are None."""

    connections: int = CONNECTIONS
    max_pages: int | None = None
    max_time: float | None = None
    max_bytes: float | None = None
    seed: int = 0
    # strategy
    strategy: str = STRATEGY
    page_rank: str | None = None
    site_rank: str | None = None
    quality: str = QUALITY
    quality_processes: int = 1
    history: str | Path | None = None
    # scope
    scope: str = "host"
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    exclude_extension: Sequence[str] = ()
    include_mime: Sequence[str] = ()
    exclude_mime: Sequence[str] = ()
    own_hosts: Sequence[str] = ()
    sitemaps: bool | None = None
    requisites: bool | None = None
    archive: bool = False
    # refresh
    refresh: bool = False
    continuous: bool = False
    refresh_policy: str = "residual-life"
    refresh_option: Mapping[str, Any] = field(default_factory=dict)
    refresh_share: float = 0.5
    refresh_price: float | None = None
    refresh_rate: float | None = None
    # network
    pause: float | None = None
    http: str = "1.1"
    bandwidth: float | None = None
    site_bandwidth: float | None = None
    timeout: float = 120.0
    max_body: int = 10 * 2**20
    max_failed_visits: int = 5
    hosts: str | Path | Mapping[str, Sequence[str]] | None = None
    nameserver: Sequence[str] = ()
    allow_private: bool = False
    insecure: bool = False
    # requests
    contact: str = ""
    user_agent: str = ""
    robots_token: str = AGENT
    header: Sequence[str] = ()
    credentials: str | Path | None = None
    cookies: str | Path | None = None
    accept_cookies: bool = False
    proxy: str = ""
    proxy_names: bool = False
    no_robots: bool = False
    site: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # settings of single sites, by host
    # output
    metadata: bool | None = None
    warc_size: int = 1_000_000_000
    warc_prefix: str = "trapline"
    log_level: str = "info"
    log_format: str = JSON
    log_size: int = LOG_BYTES

    def options(self, seeds: Iterable[str]) -> CrawlOptions:
        """Return the options of a crawl from these seeds, which are canonical. Raise `ConfigError` if a setting is invalid, or
        has no effect without another one."""
        self._check()
        pause_s = default_pause_s(self.delay) if self.pause is None else self.pause
        quality = str(Path(self.quality).absolute()) if Path(self.quality).is_file() else self.quality
        return CrawlOptions(
            seeds=tuple(dict.fromkeys(seeds)),
            strategy=absolute(self.strategy),
            page_rank=self.page_rank and absolute(self.page_rank),
            site_rank=self.site_rank and absolute(self.site_rank),
            quality=quality,
            quality_processes=self.quality_processes,
            history=str(Path(self.history).absolute()) if self.history else None,
            modules=os.getcwd(),
            seed=self.seed,
            connections=self.connections,
            rules=self._rules(),
            pause_s=pause_s,
            http=self.http,
            bandwidth=_limit(self.bandwidth),
            site_bandwidth=_limit(self.site_bandwidth),
            max_pages=_limit(self.max_pages),
            max_seconds=_limit(self.max_time),
            max_bytes=_limit(self.max_bytes),
            scope=self.scope,
            include=_several(self.include),
            exclude=_several(self.exclude),
            exclude_extensions=self._extensions(),
            include_mimes=_types("--include-mime", _several(self.include_mime)),
            exclude_mimes=_types("--exclude-mime", _several(self.exclude_mime)),
            own_hosts=tuple(host.strip(".").lower() for host in _several(self.own_hosts)),
            sitemaps=True if self.sitemaps is None and (self.archive or self.scope != ANY) else self.sitemaps,
            requisites=self.archive if self.requisites is None else self.requisites,
            allow_private=self.allow_private,
            insecure=self.insecure,
            abandon=self.max_failed_visits,
            contact=self.contact,
            user_agent=self.user_agent,
            robots_token=self.robots_token,
            headers=self._headers(),
            credentials=_absolute(self.credentials),
            cookies=_absolute(self.cookies),
            accept_cookies=self.accept_cookies,
            proxy=self._proxy(),
            proxy_names=self.proxy_names,
            no_robots=self.no_robots,
            sites=self._sites(pause_s),
            hosts=read_hosts(Path(self.hosts)) if isinstance(self.hosts, str | Path) else dict(self.hosts or {}),
            nameservers=_several(self.nameserver),
            limits=Limits(total_s=self.timeout, body_bytes=int(self.max_body)),
            refresh=self._refresh(),
            metadata=self.archive if self.metadata is None else self.metadata,
            warc_bytes=int(self.warc_size),
            warc_prefix=self.warc_prefix,
            log_level=self.log_level,
            log_format=self.log_format,
            log_bytes=int(self.log_size),
        )

    def _check(self) -> None:
        self.check(BOUNDS)
        if self.http not in PROTOCOLS:
            raise ConfigError(f"http is {self.http!r}; {nearest(self.http, PROTOCOLS)}")
        for name, value, known in (("log_level", self.log_level, LEVELS), ("log_format", self.log_format, FORMATS)):
            if value not in known:
                raise ConfigError(f"{name} is {value!r}; {nearest(value, known)}")
        if self.no_robots and not self.own_hosts:
            raise ConfigError("--no-robots works for your own hosts only; name these hosts with --own-hosts HOST")
        check_user_agent(self.user_agent, self.contact, self.robots_token)

    def _headers(self) -> tuple[str, ...]:
        return tuple(f"{name}: {value}" for name, value in read_headers(_several(self.header)).items())

    def _extensions(self) -> tuple[str, ...]:
        names = tuple(name.strip().removeprefix(".").lower() for name in _several(self.exclude_extension))
        for name in names:
            if not name or not name.isascii() or not name.replace(".", "").isalnum():
                raise ConfigError(f"--exclude-extension {name!a}: not an extension; give one such as pdf")
        return names

    def _proxy(self) -> str:
        if not self.proxy:
            if self.proxy_names:
                raise ConfigError("--proxy-names has no effect without a proxy; also give --proxy URL")
            return ""
        return read_proxy(self.proxy).url

    def _sites(self, pause_s: float) -> dict[str, SiteSettings]:
        tables = read_tables(self.site, pause_s)
        address_s = self.delay if self.ip_delay is None else self.ip_delay
        for host, own in tables.items():
            if own.delay_s is not None and own.delay_s < address_s:
                raise ConfigError(
                    f'[site."{host}"]: its delay of {own.delay_s:g} s is shorter than the delay of its address, {address_s:g} s; '
                    f"also give --ip-delay {own.delay_s:g}"
                )
            if own.per_connection not in (None, 1) and self.http == "1.0":
                raise ConfigError(f'[site."{host}"]: per-connection has no effect with --http 1.0; omit it')
        return tables

    def _rules(self) -> Rules:
        own_k = {"per_connection": 1} if self.http == "1.0" else {}
        return self.rules(pipelining=self.http == "pipelining", **own_k)

    def _refresh(self) -> RefreshOptions | None:
        if not self.refresh and not self.continuous:
            return None
        policy = policy_named(self.refresh_policy).with_options(**self.refresh_option)  # ConfigError for unknown names
        if self.refresh_rate == 0.0:
            raise ConfigError("--refresh-rate 0 would refetch no page; give a rate above 0, or do not refresh")
        return RefreshOptions(
            policy=self.refresh_policy,
            settings={name: policy.options[name] for name in self.refresh_option},
            share=self.refresh_share,
            price=self.refresh_price,
            rate=_limit(self.refresh_rate),
            continuous=self.continuous,
        )


def _several(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return the values of a setting that may have several. A single text is one value."""
    return (given,) if isinstance(given, str) else tuple(given)


def _types(option: str, given: Iterable[str]) -> tuple[str, ...]:
    """Return media types in lower case. Raise `ConfigError` if one is invalid."""
    types = tuple(dict.fromkeys(text.strip().lower() for text in given))
    for text in types:
        if not _MEDIA_TYPE.fullmatch(text):
            raise ConfigError(f"{option} {text!a}: not a media type; give one such as text/html or image/*")
    return types


def _absolute(file: str | Path | None) -> str:
    return str(Path(file).absolute()) if file else ""


def _limit(value: float | None) -> float:
    return math.inf if value is None else value


def seed_of(url: str, where: str = "") -> str:
    """Return the canonical form of a seed URL. A URL without a scheme gets http. Raise `ConfigError` if it is no URL; `where`
    begins the message.

    >>> seed_of("Example.org"), seed_of("https://example.org/a/../b")
    ('http://example.org/', 'https://example.org/b')
    """
    if _PASSWORD.match(url):
        shown = f"{where}a seed URL has a password"  # without the URL
        raise ConfigError(f"{shown}; omit it, and put user and password into a file for --credentials FILE")
    found = canonical(f"http://{url}" if _BARE.fullmatch(url) else url)
    if found is None:
        why = f"longer than {MOST_URL:,} characters" if len(url) > MOST_URL else _NOT_A_URL
        # As ASCII: text that is not a URL may contain control characters that move the cursor.
        raise ConfigError(f"{where}{url if len(url) <= 80 else f'{url[:77]}...'!a}: {why}")
    return found
