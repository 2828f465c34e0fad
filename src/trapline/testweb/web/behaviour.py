"""Behaviour of a site as a server: its delays, its limits and its faults.

`Behaviour` describes one site. `Mix` describes how the sites of a web differ, and `behaviours` draws a behaviour for each
site from it. This module knows neither sockets nor pages.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from statistics import NormalDist

from xxhash import xxh3_64_intdigest

from trapline.errors import ConfigError, nearest

# ---- Random draws by number: the behaviour of sites and pages is a hash of (seed, purpose, number), so a test can compute it.
#
# They do not use `trapline.rng`, which would load the compiler: the server process must start quickly.

Shares = tuple[tuple[str, float], ...]
"""Names, each with its share. The shares may add up to less than 1; the remainder has no name."""


def draw(seed: int, purpose: str, number: int) -> float:
    """Return a number in [0, 1), in steps of 2^-53.

    >>> draw(1, "fault", 7) == draw(1, "fault", 7) != draw(2, "fault", 7)
    True
    """
    return (xxh3_64_intdigest(f"{seed} {purpose} {number}".encode()) >> 11) * 2.0**-53


def pick(shares: Iterable[tuple[str, float]], drawn: float) -> str:
    """Return the name whose share the draw falls into; "" if it falls into none.

    >>> [pick((("a", 0.25), ("b", 0.5)), drawn) for drawn in (0.2, 0.25, 0.75)]
    ['a', 'b', '']
    """
    for name, share in shares:
        if drawn < share:
            return name
        drawn -= share
    return ""


# ---- The behaviour of a site

ROBOTS = ("none", "rules", "redirect", "away", "loop", "huge", "error", "reset")
"""Answers to /robots.txt, in this order: 404; rules; rules behind a redirect on this site; the same on another site; endless
redirects; rules at the beginning of a file of 1 MB; 503; a reset connection."""

REDIRECTS = ("plain", "chain", "away", "loop")
"""How other pages link to a page: through one redirect, through four, through one on another site. With "loop" they link to
it directly, and also to a redirect loop."""

VALIDATORS = ("honest", "weak", "date", "fickle", "none")
"""Use of ETag and Last-Modified to identify a page's version (testweb/answers/validators.py)."""

HARMLESS = ("chunked", "gzip", "no-length")
"""Unusual but correct: the page arrives complete."""

REFUSALS = ("not-found", "gone", "error", "unavailable", "unavailable-once", "too-many")
"""Answers with a status of 400 or above: 404, 410, 500, and 503 and 429 with Retry-After. With "unavailable-once" the second
request succeeds."""

ATTACKS = (
    *("empty", "silent", "reset", "short-body", "long-body", "dribble"),
    *("bad-chunks", "broken-gzip", "gzip-bomb", "endless-body", "endless-headers", "garbage"),
)
"""Broken or hostile answers; testweb/answers/answer.py has what each of them sends."""

FAULTS = (*HARMLESS, *REFUSALS, *ATTACKS)

ONE_REQUEST, A_HUNDRED = 0.24, 0.66
"""Shares of servers that allow one request, and a hundred requests, per connection: cao 5.1, figure 3, 500 servers. Servers
with one request speak HTTP/1.0, as the paper infers. The paper does not describe the last tenth; here their limits are
uniform over 2 to 99."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Behaviour of one site. The default is a fast server without limits and faults."""

    latency_s: float = 0.0
    """time from the arrival of a request to the first byte of its answer; runs in parallel for requests sent together"""
    connection_s: float = 0.0
    """additional delay of the first answer on a connection; the handshake cannot be delayed, the kernel completes it"""
    bandwidth: float = math.inf
    """bytes per second on one connection"""
    initial_window: float = 0.0
    """bytes that a new connection sends before it waits for a round trip, which takes `connection_s`; the window doubles with
    every round trip. 0: no slow start"""
    closing_s: float = 0.0
    """additional time of the last answer on a connection"""
    serial: bool = False
    """whether the server works on one request of a connection at a time: of requests sent together, only the round trips run
    in parallel, not the rest of the latency"""
    requests_per_connection: int = 0
    """0: no limit"""
    announced: bool = True
    """whether the limit is announced, by `Keep-Alive: max=` and on the last answer by `Connection: close`"""
    http10: bool = False
    """whether the site speaks HTTP/1.0 and closes after each answer"""
    keep_alive_s: float = 15.0
    """idle time after which a connection is closed; the default is that of Apache up to version 2.0"""
    robots: str = "none"
    """one of ROBOTS"""
    disallowed: float = 0.0
    """share of path prefixes that robots.txt forbids, if it has rules"""
    crawl_delay_s: float = 0.0
    """Crawl-delay in robots.txt, if it has rules; 0: none"""
    retry_after_s: int = 1
    """Retry-After of answers 429 and 503"""
    redirects: Shares = ()
    """names of REDIRECTS, each with the share of the site's pages that are linked this way"""
    faults: Shares = ()
    """names of FAULTS, each with the share of the site's pages that are answered this way"""
    validators: str = "none"
    """one of VALIDATORS"""

    def __post_init__(self) -> None:
        _check_name("robots.txt", self.robots, ROBOTS)
        _check_name("validators", self.validators, VALIDATORS)
        _check_shares("redirect", self.redirects, REDIRECTS)
        _check_shares("fault", self.faults, FAULTS)
        for entry in fields(self):
            value = getattr(self, entry.name)
            if isinstance(value, int | float) and not value >= 0:
                raise ConfigError(f"behaviour: {entry.name} is {value}; it must not be negative")
        if not self.bandwidth >= 1:
            raise ConfigError(f"behaviour: bandwidth is {self.bandwidth}; it must be at least 1 byte per second")


def _check_name(what: str, name: str, valid: Sequence[str]) -> None:
    if name not in valid:
        raise ConfigError(f"unknown kind of {what} {name!r}; {nearest(name, valid)}")


def _check_shares(what: str, shares: Shares, valid: Sequence[str]) -> None:
    for name, _ in shares:
        _check_name(what, name, valid)
    for name, share in shares:
        if not share >= 0:
            raise ConfigError(f"{what} share {name}={share:g}: a share must be at least 0")
    whole = sum(share for _, share in shares)
    if not whole <= 1 + 1e-9:
        raise ConfigError(f"the {what} shares add up to {whole:g}; give shares with a sum of at most 1")


@dataclass(frozen=True, slots=True)
class Mix:
    """How the sites of a web differ from `base`, and what share of them does."""

    base: Behaviour = field(default_factory=Behaviour)
    latency_spread: float = 0.0
    """standard deviation, between sites, of the natural logarithm of latency; `base` has the median"""
    bandwidth_spread: float = 0.0
    """the same for bandwidth"""
    measured_requests: bool = False
    """draw requests per connection from the measured distribution (ONE_REQUEST, A_HUNDRED)"""
    http10: float = 0.0
    """share of the sites that speak HTTP/1.0, in addition to those with one request per connection"""
    robots: Shares = ()
    """names of ROBOTS, each with its share of the sites; the other sites have the value of `base`"""
    validators: Shares = ()
    """the same for VALIDATORS"""
    faulty: float = 1.0
    """share of the sites that have the faults of `base`; the others have none"""

    def __post_init__(self) -> None:
        _check_shares("robots.txt", self.robots, ROBOTS)
        _check_shares("validator", self.validators, VALIDATORS)
        if not (self.latency_spread >= 0 and self.bandwidth_spread >= 0):
            spreads = f"{self.latency_spread:g} and {self.bandwidth_spread:g}"
            raise ConfigError(f"behaviour: the spreads are {spreads}; they must not be negative")


def behaviours(mix: Mix, sites: int, seed: int) -> tuple[Behaviour, ...]:
    """Draw a behaviour for each site. Sites with equal behaviours share one object."""
    known: dict[Behaviour, Behaviour] = {}
    drawn = (_drawn(mix, site, seed) for site in range(sites))
    return tuple(known.setdefault(behaviour, behaviour) for behaviour in drawn)


def _drawn(mix: Mix, site: int, seed: int) -> Behaviour:
    base = mix.base
    requests = _measured(draw(seed, "requests", site)) if mix.measured_requests else base.requests_per_connection
    return replace(
        base,
        latency_s=base.latency_s * _spread(mix.latency_spread, draw(seed, "latency", site)),
        bandwidth=max(1.0, base.bandwidth * _spread(mix.bandwidth_spread, draw(seed, "bandwidth", site))),
        requests_per_connection=requests,
        http10=base.http10 or (mix.measured_requests and requests == 1) or draw(seed, "http10", site) < mix.http10,
        robots=pick(mix.robots, draw(seed, "robots", site)) or base.robots,
        validators=pick(mix.validators, draw(seed, "validators", site)) or base.validators,
        faults=base.faults if draw(seed, "faulty", site) < mix.faulty else (),
    )


def _measured(drawn: float) -> int:
    """Return the requests per connection of the measured distribution for a draw in [0, 1).

    >>> [_measured(drawn) for drawn in (0.1, 0.24, 0.899, 0.901, 0.999)]
    [1, 100, 100, 2, 99]
    """
    if drawn < ONE_REQUEST:
        return 1
    if drawn < ONE_REQUEST + A_HUNDRED:
        return 100
    beyond = (drawn - ONE_REQUEST - A_HUNDRED) / (1 - ONE_REQUEST - A_HUNDRED)
    return min(2 + int(98 * beyond), 99)


def _spread(spread: float, drawn: float) -> float:
    if spread == 0:
        return 1.0
    return math.exp(spread * NormalDist().inv_cdf(min(max(drawn, 1e-12), 1 - 1e-12)))
