"""The scope of a crawl: URLs on the hosts or domains of its seeds that match the patterns and do not look like a trap.

The target of a redirected seed counts as a seed too, so that `http://example.org/` leads into `https://www.example.org/`.
The crawl stores such targets (crawler/store/outbox.py) and announces them to all partitions (parallel/live/exchange.py).

This is part of step 1 in docs/architecture.md, for URLs that fetch/urls.py has made canonical. The scope admits a URL or
says why not, and counts neither. The frontier limits the depth of a crawl, because the depth of a page is known only
when it is discovered (Rules.depth_static).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING

from trapline.crawler.discovery.site_settings import SiteTables, settings_of
from trapline.errors import ConfigError, nearest
from trapline.fetch.urls import canonical, has_blocked_port, host_port, origin, trap

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

ANY, HOST, DOMAIN = "any", "host", "domain"
INCLUDE, EXCLUDE, TRAP, PORT, ACCEPT = "include", "exclude", "trap", "port", "accept"
KINDS = (ANY, HOST, DOMAIN)
REASONS = (HOST, DOMAIN, INCLUDE, EXCLUDE, TRAP, PORT, ACCEPT)
MOST_REDIRECTS = 5  # from a seed to a URL that counts as a seed too, as in Heritrix
Patterns = tuple[re.Pattern[str], ...]
_MOST_VERDICTS = 100_000  # sites whose verdict is cached; when there are more, the cache is cleared


@dataclass(frozen=True)
class Scope:
    """The scope of a crawl.

    >>> scope = Scope("domain", seeds=("http://www.example.co.uk/",), exclude=(r"\\.pdf$",))
    >>> scope.admits("https://shop.example.co.uk/a")
    ''
    >>> scope.admits("http://other.co.uk/")
    'domain'
    >>> scope.admits("http://www.example.co.uk/a.pdf")
    'exclude'
    """

    kind: str = HOST  # host: the hosts of the seeds, with any scheme and port; domain: their registered domains
    seeds: tuple[str, ...] = ()  # canonical
    include: tuple[str, ...] = ()  # regular expressions: at least one must be found anywhere in the URL
    exclude: tuple[str, ...] = ()  # regular expressions: none may be found in the URL
    own_hosts: tuple[str, ...] = ()  # if any: only these hosts, and hosts whose names end with one of them
    traps: bool = True  # whether URLs that look like a trap are rejected
    extensions: tuple[str, ...] = ()  # of file names: none may be that of the URL's path
    sites: SiteTables = field(default_factory=dict)  # settings of single sites, which have patterns of their own
    accept: Callable[[str], bool] | None = None  # of the program that takes the pages; it is asked last
    _verdicts: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    _site_patterns: dict[str, tuple[Patterns, Patterns]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    # URLs that seeds redirect to, with the number of redirects; 0: the user has added this seed to the running crawl.
    _redirected: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(f"--scope is {self.kind!r}; {nearest(self.kind, KINDS)}")
        # Compiled here and not on first use, so that an invalid expression is reported before the crawl begins.
        _ = self._include_patterns, self._exclude_patterns
        for host, own in self.sites.items():
            _compiled(f'[site."{host}"] include', own.include)
            _compiled(f'[site."{host}"] exclude', own.exclude)

    def admits(self, url: str) -> str:
        """Return why a canonical URL is rejected, as one of REASONS, or "" if the scope admits it."""
        return self._reason_by_host(url) or self._reason_by_form(url)

    def admits_list(self, url: str) -> str:
        """Return why a sitemap or feed is not requested, or "". --include and the rules for traps apply to its entries alone."""
        if reason := self._reason_by_host(url):
            return reason
        if self._exclude_patterns and _any_found(self._exclude_patterns, url):
            return EXCLUDE
        return EXCLUDE if self.sites and _any_found(self._of_site(url)[1], url) else ""

    def admits_requisite(self, url: str) -> str:
        """Return why a file that a page needs is not requested, or "". It may be on any host; --own-hosts and what excludes URLs
        apply to it.

        >>> Scope(seeds=("http://a.org/",), exclude=("ads",)).admits_requisite("http://ads.example/a.png")
        'exclude'
        """
        if self.own_hosts and not is_among(host_port(origin(url))[1], self.own_hosts):
            return HOST
        if self._is_blocked(url):
            return PORT
        is_excluded = bool(self._exclude_patterns) and _any_found(self._exclude_patterns, url)
        has_extension = self._extension_pattern is not None and self._extension_pattern.search(url) is not None
        is_excluded_there = bool(self.sites) and _any_found(self._of_site(url)[1], url)
        return EXCLUDE if is_excluded or has_extension or is_excluded_there else ""

    def is_seed(self, url: str) -> bool:
        """Return whether a canonical URL is a seed, or the target of a redirected one."""
        return url in self._seed_urls or url in self._redirected

    def _reason_by_host(self, url: str) -> str:
        if self.kind != ANY or self.own_hosts:
            site = origin(url)
            verdict = self._verdicts.get(site)
            return self._judge(site) if verdict is None else verdict
        return PORT if self._is_blocked(url) else ""

    def _is_blocked(self, url: str) -> bool:
        return has_blocked_port(url) and origin(url) not in self._seed_sites

    def _reason_by_form(self, url: str) -> str:
        if self._include_patterns and not _any_found(self._include_patterns, url):
            return INCLUDE
        if self._exclude_patterns and _any_found(self._exclude_patterns, url):
            return EXCLUDE
        if self._has_finer_rules and (reason := self._reason_by_finer_rules(url)):
            return reason
        if self.traps and trap(url):
            return TRAP
        return ACCEPT if self.accept is not None and not self.accept(url) else ""

    @cached_property
    def _has_finer_rules(self) -> bool:
        return bool(self.extensions or self.sites)

    def _reason_by_finer_rules(self, url: str) -> str:
        """Return why the extension of the URL, or the settings of its site, reject it, or ""."""
        if self._extension_pattern is not None and self._extension_pattern.search(url):
            return EXCLUDE
        include, exclude = self._of_site(url)
        if include and not _any_found(include, url):
            return INCLUDE
        return EXCLUDE if _any_found(exclude, url) else ""

    def _of_site(self, url: str) -> tuple[Patterns, Patterns]:
        """Return the patterns to include and to exclude of the URL's site."""
        site = origin(url)
        found = self._site_patterns.get(site)
        if found is None:
            if len(self._site_patterns) >= _MOST_VERDICTS:
                self._site_patterns.clear()
            own = settings_of(self.sites, host_port(site)[1])
            found = (_compiled("", own.include), _compiled("", own.exclude)) if own else ((), ())
            self._site_patterns[site] = found
        return found

    def redirects_to(self, url: str, target: str) -> int:
        """Return the number of redirects from a seed through the page at `url` to `target` if that makes `target` a seed too.
        Return 0 if it does not."""
        if self.kind == ANY or target in self._redirected or target in self._seed_urls:
            return 0
        if self.own_hosts and not is_among(host_port(origin(target))[1], self.own_hosts):
            return 0
        before = 0 if url in self._seed_urls else self._redirected.get(url, MOST_REDIRECTS)
        if before == MOST_REDIRECTS or self._is_blocked(target) or self._reason_by_form(target):
            return 0
        return before + 1

    def add_seed(self, url: str, redirects: int) -> bool:
        """Count a URL as a seed: the target of a seed's redirect, or with 0 `redirects` one that the user has added. Return whether the
        scope is wider now."""
        self._redirected[url] = min(redirects, self._redirected.get(url, MOST_REDIRECTS))
        if redirects == 0:
            self._seed_sites.add(origin(url))
        name = self._name(origin(url))
        if self.kind == ANY or name in self._names:
            return False
        self._names.add(name)
        self._verdicts.clear()
        return True

    @property
    def redirected(self) -> Mapping[str, int]:
        """URLs that count as seeds besides the given ones, with their number of redirects."""
        return self._redirected

    @property
    def followed(self) -> tuple[str, ...]:
        """Hosts or domains that are in scope because a seed redirects there, in the order of the redirects."""
        if self.kind == ANY:
            return ()
        given = {self._name(origin(seed)) for seed in self.seeds}
        given |= {self._name(origin(url)) for url, redirects in self._redirected.items() if redirects == 0}
        names = dict.fromkeys(self._name(origin(url)) for url in self._redirected)
        return tuple(name for name in names if name not in given)

    def _judge(self, site: str) -> str:
        if len(self._verdicts) >= _MOST_VERDICTS:
            self._verdicts.clear()
        verdict = self._verdicts[site] = self._reason_by_site(site)
        return verdict

    def _reason_by_site(self, site: str) -> str:
        if self.own_hosts and not is_among(host_port(site)[1], self.own_hosts):
            return HOST
        if self.kind != ANY and self._name(site) not in self._names:
            return self.kind
        return PORT if self._is_blocked(f"{site}/") else ""

    def _name(self, site: str) -> str:
        """Return the part of a site's origin that the scope compares: its host, or its registered domain."""
        host = host_port(site)[1]
        return host if self.kind == HOST else registrable(host)

    @cached_property
    def _names(self) -> set[str]:
        return {self._name(origin(seed)) for seed in self.seeds}

    @cached_property
    def _seed_sites(self) -> set[str]:
        return set(map(origin, self.seeds))

    @cached_property
    def _seed_urls(self) -> frozenset[str]:
        return frozenset(self.seeds)

    @cached_property
    def _include_patterns(self) -> Patterns:
        return _compiled("--include", self.include)

    @cached_property
    def _extension_pattern(self) -> re.Pattern[str] | None:
        names = "|".join(map(re.escape, self.extensions))
        return re.compile(rf"^[^?]*\.(?:{names})(?:\?|$)", re.IGNORECASE) if names else None

    @cached_property
    def _exclude_patterns(self) -> Patterns:
        return _compiled("--exclude", self.exclude)


def _compiled(option: str, expressions: tuple[str, ...]) -> Patterns:
    compiled = []
    for expression in expressions:
        try:
            compiled.append(re.compile(expression))
        except (re.error, OverflowError, RecursionError) as error:
            raise ConfigError(
                f"{option} {expression!r} is not a regular expression: {error}; use Python's syntax"
            ) from None
    return tuple(compiled)


def _any_found(patterns: Patterns, url: str) -> bool:
    for pattern in patterns:  # noqa: SIM110  # a loop takes half the time of any() and its generator
        if pattern.search(url):
            return True
    return False


def is_among(host: str, names: tuple[str, ...]) -> bool:
    """Return whether the host is one of the names, or a subdomain of one.

    >>> is_among("www.example.org", ("example.org",)), is_among("badexample.org", ("example.org",))
    (True, False)
    """
    return any(host == name or host.endswith(f".{name}") for name in names)


def seeds_elsewhere(seeds: Sequence[str], own_hosts: tuple[str, ...]) -> list[str]:
    """Return the seeds that are on none of the user's own hosts. Raise `ConfigError` if one of those is no host name."""
    for name in own_hosts:
        url = canonical(
            name if "://" in name else f"http://[{name}]" if ":" in name.partition(":")[2] else f"http://{name}"
        )
        host = host_port(origin(url))[1] if url else ""
        if host != name:
            raise ConfigError(f"--own-hosts {name}: not a host name; give {host or 'one such as example.org'}")
    return [seed for seed in seeds if not is_among(host_port(origin(seed))[1], own_hosts)]


def registrable(host: str) -> str:
    """Return the registered domain of a host by the Public Suffix List. An address or `localhost` is returned whole.

    >>> registrable("a.b.example.co.uk"), registrable("192.0.2.1"), registrable("localhost"), registrable("co.uk")
    ('example.co.uk', '192.0.2.1', 'localhost', 'co.uk')
    """
    name = host.rstrip(".")
    if ":" in name or name.rpartition(".")[2].isdigit():  # IPv6; or IPv4, because no host name ends in a number
        return host
    return _suffixes().privatesuffix(name) or name


@cache
def _suffixes() -> "PublicSuffixList":
    from publicsuffixlist import PublicSuffixList  # imported on first use: reading the list takes 0.2 s

    return PublicSuffixList()
