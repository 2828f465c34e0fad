"""What the crawl loop tells the store. Plain tuples, for they cross a pipe by the thousand a second; no behaviour.

Who fills a batch: the loop, in the order in which things happened. Who empties it: the store, which makes all of a batch
durable or none of it. A batch carries the frontier's log of the same stretch of time, so that what is in the database and
what replay gives back are always of one moment.
"""

from collections.abc import Sequence
from typing import NamedTuple

VISITS = "visits"  # a kind of site given up: its visits failed
TOO_MANY = "too many"  # why a link is left out: behind the first MOST_NEW of its page (known.py)
FULL = "site full"  # why a link is left out: its site has KNOWN_PER_FETCHED times as many known pages as may be fetched (known.py)


# Results that the frontier is not told of a page, which waits as before. Asked for and not answered, by nobody's fault; an errand
# (errands.py), whatever came of it; never asked for, because its site failed first: the frontier was told that.
RETURNED, ERRAND, SITE_FAILED = 0, -1, -2
AS_BEFORE = ("",)  # of Fetched.elsewhere
NOT_KNOWN = -1  # whether a page has changed: it was never had before, or it was not had now


class Fetched(NamedTuple):
    """What came of one page that a visit took: an answer, a failure, a refusal, or nothing."""

    page: int
    site: int
    visit: int
    url: str
    address: str  # of the server; "" if it was not asked
    started: float  # wall clock, seconds: the request was sent, or refused
    first_byte_s: float  # from there; NaN: none came
    total_s: float
    # FETCHED, FAILED or REFUSED, as the frontier was told (but of a page that it has: upkeep.py); or RETURNED, ERRAND, SITE_FAILED.
    result: int
    status: int  # of HTTP; 0: no answer
    error: str  # a kind of fetch/failure.py; "": nothing was wrong
    request: bytes  # as sent; b"": none was
    # What follows is of the answer, if there is one.
    head: bytes = b""  # status line and headers as received, to the empty line
    wire: bytes = b""  # body as received
    body: bytes = b""  # without its transfer coding; the same object as `wire` if it had none
    truncated: str = ""  # "", "length" or "time": why the body is not whole (WARC-Truncated)
    mime: str = ""
    marks: int = 0  # NOINDEX, NOFOLLOW, NOARCHIVE of fetch/page.py
    hrefs: Sequence[str] = ()  # for its metadata record, if there is to be one: as they stand on the page
    links: bytes = b""  # the pages that they lead to, as the frontier was told: int32, little-endian
    # What follows is of crawls that fetch pages again.
    changed: int = NOT_KNOWN  # what people read is another than in our copy: 1; the same: 0
    fingerprint: bytes = (
        b""  # of what people read (fetch/fingerprint.py), of an unchanged page that of our copy; b"": not known
    )
    etag: bytes = b""  # to ask by the next time (fetch/validators.py)
    modified: bytes = b""
    # The pages that its links lead to and other partitions of the crawl own; AS_BEFORE: those of its last fetch that has others.
    elsewhere: Sequence[str] = ()


class RobotsFetched(NamedTuple):
    """A robots.txt that was asked for."""

    site: int
    visit: int
    url: str
    address: str
    started: float
    first_byte_s: float
    total_s: float
    status: int
    error: str
    request: bytes
    head: bytes
    wire: bytes
    body: bytes  # decoded, at most 500 KiB: what its rules are read from


class GivenUp(NamedTuple):
    """A site that the crawl does not wait for any more."""

    site: int
    at: float  # wall clock
    kind: str  # DNS or ADDRESS of fetch/failure.py, or VISITS
    why: str  # for people


class SignalNoted(NamedTuple):
    """What became of a signal, so far: a later note of the same id replaces it."""

    id: int  # in the inbox, after those of the inboxes before; below 0: read by the crawl itself
    page: int  # -1: the crawl knows no such page
    at: float  # wall clock
    channel: str
    kind: str
    outcome: str  # in a word or two, for people


class Told(NamedTuple):
    """A page that a sitemap or a feed lists."""

    page: int
    by: int  # the page that lists it
    dated: float  # the latest date of a change that stood there or in another list; infinity: none did


class KeptCopy(NamedTuple):
    """What we have of a page, as the table `copy` has it."""

    fetched: float
    checked: float
    last_change: float | None
    fingerprint: bytes
    digest: bytes
    etag: bytes
    modified: bytes
    refused: str


class Parcel(NamedTuple):
    """For another partition, on its way there, as bytes: links to its pages, letters, or what became its own when the crawl grew."""

    receiver: int
    number: int  # 1, 2, ... for each receiver
    data: bytes


class Passed(NamedTuple):
    """Between this partition of a crawl and another, so far."""

    made: int  # parcels for it
    received: int  # parcels of its
    ended: bool = False  # it has handed over all that became ours when the crawl grew


class Between(NamedTuple):
    """What passed between this partition of a crawl and the others."""

    made: Sequence[Parcel] = ()
    delivered: Sequence[tuple[int, int]] = ()  # receiver, number: it has all parcels up to that one
    received: Sequence[tuple[int, int]] = ()  # sender, number: we have
    # Host, the address that its owner goes by: asked for by us, or told by who did.
    assigned: Sequence[tuple[str, str]] = ()
    ended: Sequence[int] = ()  # partitions that have handed over to us all that became ours when the crawl grew
    size: int = 0  # we have handed over all that was not ours any more in a crawl of so many partitions; 0: nothing new


class Progress(NamedTuple):
    """How the crawl stands after a batch."""

    at: float  # wall clock
    seconds: float  # of crawling, over all runs
    pages: int  # FETCHED
    errors: int  # what is one, and what is a byte: tally.py
    bytes: int
    known: int  # pages
    waiting: int
    sites: int
    active: int  # visits under way
    quality: float  # sum over fetched pages of what each was worth when it was taken


class Batch(NamedTuple):
    number: int  # 1, 2, ... over the whole life of the crawl
    sites: list[tuple[int, str]]  # id, origin ("http://host:port", default port left out)
    addresses: list[tuple[int, str]]  # group, address
    pages: list[tuple[int, int, str]]  # id, site, url
    fetches: list[Fetched]
    robots: list[RobotsFetched]
    calls: bytes  # the frontier's log since the last batch
    progress: Progress | None
    given_up: Sequence[GivenUp] = ()
    left_out: Sequence[tuple[str, int]] = ()  # reason, links so far over all runs
    refresh: bytes = b""  # the refresher's log since the last batch
    signals: Sequence[SignalNoted] = ()
    told: Sequence[Told] = ()
    whole: Sequence[int] | None = None  # pages to be had whole the next time, changed or not; None: as before
    # Another one: which, and the id of the last signal before its first; None: as before.
    inbox: tuple[str, int] | None = None
    between: Between = Between()
    forget: int = 0  # the logs of batches up to this one are not needed any more
    copies: Sequence[tuple[int, KeptCopy]] = ()  # of pages that came from another partition
    seeds: Sequence[tuple[str, int]] = ()  # what seeds redirect to, and by how many redirects: seeds too (scope.py)
