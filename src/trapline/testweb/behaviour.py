"""How a site behaves as a server: what it takes, what it allows, what goes wrong. It knows neither sockets nor pages.

`Behaviour` is one site's; `Mix` says how the sites of a web differ, and `behaviours` draws them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from statistics import NormalDist

from trapline.errors import ConfigError, nearest
from trapline.testweb.draws import Shares, draw, pick
from trapline.testweb.validators import VALIDATORS

ROBOTS = ("none", "rules", "redirect", "away", "loop", "huge", "error", "reset")
"""What a site answers to /robots.txt: 404; rules; rules behind a redirect, on this or another site; redirects without end;
rules at the head of a file of 1 MB; 503; a reset connection."""

REDIRECTS = ("plain", "chain", "away", "loop")
"""How a page is linked that is not linked directly: through one redirect, through four, through one on another site; loop: it
is linked directly, and beside it stands a link that goes round in circles."""

HARMLESS = ("chunked", "gzip", "no-length")
"""Odd, and right: the page arrives whole."""

REFUSALS = ("not-found", "gone", "error", "unavailable", "unavailable-once", "too-many")
"""An answer of 400 or above: 404, 410, 500, 503 and 429 with Retry-After. Once: the second request is answered well."""

ATTACKS = (
    *("empty", "silent", "reset", "short-body", "long-body", "dribble"),
    *("bad-chunks", "broken-gzip", "gzip-bomb", "endless-body", "endless-headers", "garbage"),
)
"""Broken or hostile: what each sends is in faults.py."""

FAULTS = (*HARMLESS, *REFUSALS, *ATTACKS)

ONE_REQUEST, A_HUNDRED = 0.24, 0.66
"""Shares of the servers that allow so many requests per connection: cao 5.1, figure 3, 500 servers. Those with one speak
HTTP/1.0, as the paper infers. On the last tenth it is silent: here they are spread evenly over 2 to 99."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    latency_s: float = 0.0
    """from the arrival of a request to the first byte of its answer: requests sent together wait together, as in a network"""
    connection_s: float = 0.0
    """the first answer on a connection comes so much later: the kernel completes a handshake without asking us"""
    bandwidth: float = math.inf
    """bytes per second on one connection"""
    requests_per_connection: int = 0
    """0: no limit"""
    announced: bool = True
    """whether the limit is: by `Keep-Alive: max=`, and on the last answer by `Connection: close`"""
    http10: bool = False
    """speaks HTTP/1.0 and closes after each answer"""
    keep_alive_s: float = 15.0
    """idle time after which a connection is closed. Apache's default up to version 2.0"""
    robots: str = "none"
    """one of ROBOTS"""
    disallowed: float = 0.0
    """share of the paths' beginnings that robots.txt forbids, if it has rules"""
    crawl_delay_s: float = 0.0
    """as robots.txt says, if it has rules; 0: it does not"""
    retry_after_s: int = 1
    """as 429 and 503 say"""
    redirects: Shares = ()
    """names of REDIRECTS, and the share of the site's pages that are linked so"""
    faults: Shares = ()
    """names of FAULTS, and the share of the site's pages that are answered so"""
    validators: str = "none"
    """one of VALIDATORS: what answers say of the page's version"""

    def __post_init__(self) -> None:
        _check_name("robots", self.robots, ROBOTS)
        _check_name("validators", self.validators, VALIDATORS)
        _check_shares("redirect", self.redirects, REDIRECTS)
        _check_shares("fault", self.faults, FAULTS)
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, int | float) and not value >= 0:
                raise ConfigError(f"behaviour: {one.name} is {value}, must not be negative")
        if not self.bandwidth >= 1:
            raise ConfigError(f"behaviour: bandwidth is {self.bandwidth}, must be at least 1 byte per second")


def _check_name(what: str, name: str, valid: Sequence[str]) -> None:
    if name not in valid:
        raise ConfigError(f"no {what} {name!r}; {nearest(name, valid)}")


def _check_shares(what: str, shares: Shares, valid: Sequence[str]) -> None:
    for name, _ in shares:
        _check_name(what, name, valid)
    if any(not share >= 0 for _, share in shares) or not sum(share for _, share in shares) <= 1 + 1e-9:
        raise ConfigError(f"behaviour: the shares of {what}s must lie in 0..1 and add up to at most 1")


@dataclass(frozen=True, slots=True)
class Mix:
    """How the sites of a web differ from `base`, and how many of them do."""

    base: Behaviour = field(default_factory=Behaviour)
    latency_spread: float = 0.0
    """standard deviation of the natural logarithm between sites; `base` has the median"""
    bandwidth_spread: float = 0.0
    """likewise"""
    measured_requests: bool = False
    """requests per connection as ONE_REQUEST and A_HUNDRED say"""
    http10: float = 0.0
    """share of the sites that speak HTTP/1.0, beyond those with one request"""
    robots: Shares = ()
    """names of ROBOTS, and the share of the sites; the others are as `base` says"""
    validators: Shares = ()
    """names of VALIDATORS, likewise"""
    faulty: float = 1.0
    """share of the sites that have the faults of `base`; the others have none"""

    def __post_init__(self) -> None:
        _check_shares("robots", self.robots, ROBOTS)
        _check_shares("validator", self.validators, VALIDATORS)
        if not (self.latency_spread >= 0 and self.bandwidth_spread >= 0):
            raise ConfigError("behaviour: a spread must not be negative")


def behaviours(mix: Mix, sites: int, seed: int) -> tuple[Behaviour, ...]:
    """One a site; sites that behave alike share one object."""
    known: dict[Behaviour, Behaviour] = {}
    drawn = (_drawn(mix, site, seed) for site in range(sites))
    return tuple(known.setdefault(one, one) for one in drawn)


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
    """
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
