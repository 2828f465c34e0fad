"""What each connection of a crawl does or waits for: the values, and how they are divided and averaged.

The crawl may have r connections open (--connections). At each moment every one of them is in one state, so the numbers of
all states add up to r. A connection that is not open has the reason why no visit uses it as its state. connection_sampler.py
takes samples of a running crawl; inspect/why_not_faster.py makes a sentence of them. This module imports no array, so that
readers of live/status may import it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class ConnectionStates(NamedTuple):
    """The number of connections in each state."""

    fetching: int = 0  # a page was requested and has not arrived completely
    bandwidth: int = 0  # reading is paused, by --bandwidth or --site-bandwidth
    connecting: int = 0  # it is being opened, or about to be
    dns: int = 0  # a site could be visited if its address were known
    robots: int = 0  # robots.txt was requested and has not arrived
    site_delay: int = 0  # the delay of a site after a visit, or the pause within a visit
    address_delay: int = 0  # the delay of an address after a visit to another of its sites
    back_off: int = 0  # a site waits after failed visits, or because its server said so
    store: int = 0  # the store is behind
    handler: int = 0  # the handler or the program that takes the pages is behind
    nothing_to_do: int = 0  # there is no further address with waiting pages
    paused: int = 0  # the crawl is paused, or stopping


STATES = ConnectionStates._fields


class WaitingSites(NamedTuple):
    """The sites with pages that wait and may be fetched."""

    pages: int = 0
    sites: int = 0
    addresses: int = 0  # of these sites; a site whose address is not known counts as one
    ready_addresses: int = 0  # that could be visited now if a connection were free
    by_reason: Mapping[
        str, int
    ] = {}  # addresses that cannot be visited now, by the state of a connection that waits for one
    next_s: float | None = (
        None  # seconds until the first delay or back-off of an address ends; None: none waits for a time
    )


class StoreBacklog(NamedTuple):
    batches: int = 0  # sent and not committed
    bytes: int = 0
    warc_bytes: int = 0  # committed


class CrawlSpeed(NamedTuple):
    """What the speed of a crawl depends on at this moment."""

    now: ConnectionStates
    lately: ConnectionStates  # mean of the last samples
    waiting: WaitingSites
    store: StoreBacklog = StoreBacklog()
    loop_busy: float = 0.0  # share of one processor core that the loop has used lately

    @classmethod
    def read(cls, now: Any, lately: Any, waiting: Any, store: Any, loop_busy: float) -> "CrawlSpeed":
        """Read a value from JSON, in which tuples are lists. Raise `TypeError` or `ValueError` if it is none."""
        pages, sites, addresses, ready, by_reason, next_s = waiting
        found = cls(
            ConnectionStates(*now),
            ConnectionStates(*lately),
            WaitingSites(
                pages, sites, addresses, ready, {name: by_reason[name] for name in STATES if name in by_reason}, next_s
            ),
            StoreBacklog(*store),
            loop_busy,
        )
        numbers = (
            *found.now,
            *found.lately,
            *(pages, sites, addresses, ready),
            *found.waiting.by_reason.values(),
            *found.store,
            loop_busy,
            next_s or 0,
        )
        if not all(isinstance(number, int | float) for number in numbers):
            raise TypeError("not the speed of a crawl")
        return found


def apportioned(total: int, by_reason: Mapping[str, int]) -> dict[str, int]:
    """Divide `total` by the method of the largest remainder. Nobody gets more than its number: if these are fewer than `total`, the
    rest is divided among none.

    >>> apportioned(10, {"dns": 30, "robots": 10, "back_off": 1})
    {'dns': 7, 'robots': 3, 'back_off': 0}
    >>> apportioned(10, {"dns": 3, "robots": 1})
    {'dns': 3, 'robots': 1}
    """
    every = sum(by_reason.values())
    if every <= total:
        return dict(by_reason)
    shares = {name: divmod(total * number, every) for name, number in by_reason.items()}
    found = {name: whole for name, (whole, _) in shares.items()}
    left = total - sum(found.values())
    for name in sorted(shares, key=lambda name: -shares[name][1])[:left]:
        found[name] += 1
    return found


def lately(samples: Sequence[ConnectionStates]) -> ConnectionStates:
    """Return the mean of the samples, rounded so that it adds up to the same number of connections as the last one."""
    sums = {name: sum(values) for name, values in zip(STATES, zip(*samples, strict=True), strict=True)}
    return ConnectionStates(**apportioned(sum(samples[-1]), sums))


def together(every: Sequence[CrawlSpeed]) -> CrawlSpeed | None:
    """Return the speed of all partitions of a crawl, whose connections add up. The busiest loop counts."""
    if not every:
        return None
    sites = [one.waiting for one in every]
    reasons = {name: sum(one.by_reason.get(name, 0) for one in sites) for name in STATES}
    times = [one.next_s for one in sites if one.next_s is not None]
    return CrawlSpeed(
        ConnectionStates(*map(sum, zip(*(one.now for one in every), strict=True))),
        ConnectionStates(*map(sum, zip(*(one.lately for one in every), strict=True))),
        WaitingSites(
            sum(one.pages for one in sites),
            sum(one.sites for one in sites),
            sum(one.addresses for one in sites),
            sum(one.ready_addresses for one in sites),
            {name: number for name, number in reasons.items() if number},
            min(times, default=None),
        ),
        StoreBacklog(*map(sum, zip(*(one.store for one in every), strict=True))),
        max(one.loop_busy for one in every),
    )
