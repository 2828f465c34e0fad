"""Which URLs belong to a crawl: those of its seeds' hosts or domains, of a wanted form, and in no trap.

A seed that redirects stands for what it redirects to: that counts as a seed too, so that `http://example.org/` leads into
`https://www.example.org/`. What was added so is kept by the crawl (outbox.py) and told to all partitions (parallel/exchange.py).

Step 1 of the way of a URL, for what fetch/urls.py has made canonical. It says yes, or why not, and keeps no count of either.
How deep a crawl goes is the frontier's to say, for that is known of a page only as it is discovered (Rules.depth_static).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING

from trapline.errors import ConfigError, nearest
from trapline.fetch.traps import trap
from trapline.fetch.urls import has_blocked_port, host_port, origin

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

ANY, HOST, DOMAIN = "any", "host", "domain"
INCLUDE, EXCLUDE, TRAP, PORT = "include", "exclude", "trap", "port"
KINDS = (ANY, HOST, DOMAIN)
REASONS = (HOST, DOMAIN, INCLUDE, EXCLUDE, TRAP, PORT)
MOST_REDIRECTS = 5  # from a seed to what counts as one too; so has Heritrix
_MOST_VERDICTS = 100_000  # sites whose verdict is kept; beyond, all are forgotten and found anew


@dataclass(frozen=True)
class Scope:
    """What a crawl keeps to.

    >>> scope = Scope("domain", seeds=("http://www.example.co.uk/",), exclude=(r"\\.pdf$",))
    >>> scope.admits("https://shop.example.co.uk/a")
    ''
    >>> scope.admits("http://other.co.uk/")
    'domain'
    >>> scope.admits("http://www.example.co.uk/a.pdf")
    'exclude'
    """

    kind: str = HOST  # host: hosts of the seeds, by any scheme and port; domain: what is registered with them
    seeds: tuple[str, ...] = ()  # canonical
    include: tuple[str, ...] = ()  # regular expressions, found anywhere in the URL: one of them must be
    exclude: tuple[str, ...] = ()  # none of them may be
    traps: bool = True  # whether what looks like a trap is left out
    _verdicts: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    # URLs that seeds redirect to, with the number of redirects.
    _redirected: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(f"--scope is {self.kind!r}; {nearest(self.kind, KINDS)}")
        # Compiled here and not on first use: a bad expression is to be heard of before the crawl begins.
        _ = self._wanted, self._unwanted

    def admits(self, url: str) -> str:
        """Why a canonical URL is left out: one of REASONS; "" if it is not."""
        if self.kind != ANY:
            site = origin(url)
            verdict = self._verdicts.get(site)
            if verdict is None:
                verdict = self._judge(site)
            if verdict:
                return verdict
        elif self._is_blocked(url):
            return PORT
        return self._reason_by_form(url)

    def _is_blocked(self, url: str) -> bool:
        return has_blocked_port(url) and origin(url) not in self._seed_sites

    def _reason_by_form(self, url: str) -> str:
        if self._wanted and not _any_found(self._wanted, url):
            return INCLUDE
        if self._unwanted and _any_found(self._unwanted, url):
            return EXCLUDE
        return TRAP if self.traps and trap(url) else ""

    def redirects_to(self, url: str, target: str) -> int:
        """How many redirects lead from a seed by the page at `url` to `target`, if that makes `target` a seed too. 0: it does not."""
        if self.kind == ANY or target in self._redirected or target in self._given:
            return 0
        before = 0 if url in self._given else self._redirected.get(url, MOST_REDIRECTS)
        if before == MOST_REDIRECTS or self._is_blocked(target) or self._reason_by_form(target):
            return 0
        return before + 1

    def add_seed(self, url: str, redirects: int) -> bool:
        """Count the target of a seed's redirect as a seed. Return whether the scope is wider now."""
        self._redirected[url] = min(redirects, self._redirected.get(url, MOST_REDIRECTS))
        name = self._name(origin(url))
        if self.kind == ANY or name in self._names:
            return False
        self._names.add(name)
        self._verdicts.clear()
        return True

    @property
    def redirected(self) -> Mapping[str, int]:
        """What counts as a seed beside those that were given, and by how many redirects."""
        return self._redirected

    def _judge(self, site: str) -> str:
        if len(self._verdicts) >= _MOST_VERDICTS:
            self._verdicts.clear()
        verdict = self.kind
        if self._name(site) in self._names:
            verdict = PORT if self._is_blocked(f"{site}/") else ""
        self._verdicts[site] = verdict
        return verdict

    def _name(self, site: str) -> str:
        """What the kind of scope goes by."""
        host = host_port(site)[1]
        return host if self.kind == HOST else registrable(host)

    @cached_property
    def _names(self) -> set[str]:
        return {self._name(origin(seed)) for seed in self.seeds}

    @cached_property
    def _seed_sites(self) -> frozenset[str]:
        return frozenset(map(origin, self.seeds))

    @cached_property
    def _given(self) -> frozenset[str]:
        return frozenset(self.seeds)

    @cached_property
    def _wanted(self) -> tuple[re.Pattern[str], ...]:
        return _compiled("--include", self.include)

    @cached_property
    def _unwanted(self) -> tuple[re.Pattern[str], ...]:
        return _compiled("--exclude", self.exclude)


def _compiled(option: str, expressions: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    compiled = []
    for expression in expressions:
        try:
            compiled.append(re.compile(expression))
        except (re.error, OverflowError, RecursionError) as error:
            raise ConfigError(f"{option} {expression!r} is not a regular expression of Python's: {error}") from None
    return tuple(compiled)


def _any_found(patterns: tuple[re.Pattern[str], ...], url: str) -> bool:
    for pattern in patterns:  # noqa: SIM110  # a loop takes half the time of any() and its generator
        if pattern.search(url):
            return True
    return False


def registrable(host: str) -> str:
    """The part of a host's name that somebody registered, by the Public Suffix List; an address or `localhost` whole.

    >>> registrable("a.b.example.co.uk"), registrable("192.0.2.1"), registrable("localhost"), registrable("co.uk")
    ('example.co.uk', '192.0.2.1', 'localhost', 'co.uk')
    """
    name = host.rstrip(".")
    if ":" in name or name.rpartition(".")[2].isdigit():  # IPv6; or IPv4, for no name ends in a number
        return host
    return _suffixes().privatesuffix(name) or name


@cache
def _suffixes() -> "PublicSuffixList":
    from publicsuffixlist import PublicSuffixList  # late: the list takes 0.2 s to read

    return PublicSuffixList()
