"""The records that the crawl loop sends to the store. Plain tuples, because a pipe carries thousands a second; no behaviour.

The loop fills a batch in the order of events. The store makes all of a batch durable, or none of it. A batch carries the
frontier's log of the same period. The database and the replayed frontier therefore always show the same moment.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from trapline.processor import ProcessorTime

VISITS = "visits"  # why a site was abandoned: its visits failed
BLOCKED = "blocked"  # why a site was abandoned: the user has blocked it
BY_SETTINGS = "blocked by its settings"
NOT_ABANDONED = ""  # in place of why a site was abandoned: it is not abandoned any more
# Why a link was rejected (crawler/discovery/link_resolver.py). TOO_MANY: it comes after the first MOST_NEW new links of its page, or after
# MOST_NEW_BYTES (link_urls.py there). FULL: its site has KNOWN_PER_FETCHED times as many known pages as may be fetched.
TOO_MANY = "too many"
FULL = "site full"


# Results that are not reported to the frontier; the page waits there as before. RETURNED: requested and not answered, and nobody is to
# blame. OUT_OF_BAND: any result of an out-of-band fetch (crawler/visits/out_of_band.py). SITE_FAILED: never requested, because its site
# failed first; the failure of the site was reported.
RETURNED, OUT_OF_BAND, SITE_FAILED = 0, -1, -2
AS_BEFORE = ("",)  # a value of Fetched.elsewhere
NOT_KNOWN = -1  # a value of Fetched.changed: the page was not fetched before, or was not fetched now
ROBOTS_FILE = 8  # a bit of Fetched.marks: the URL was requested because the robots.txt of another site redirects to it


class Fetched(NamedTuple):
    """The result of one page of a visit: an answer, a failure, a refusal, or nothing."""

    page: int
    site: int
    visit: int
    url: str
    address: str  # of the server; "": no request was sent
    started: float  # wall clock, seconds: when the request was sent, or refused
    first_byte_s: float  # since `started`; NaN: no byte arrived
    total_s: float
    # FETCHED, FAILED or REFUSED, as reported to the frontier (but see crawler/recrawl/conditional_refetch.py for refetched pages); or
    # RETURNED, OUT_OF_BAND, SITE_FAILED.
    result: int
    status: int  # of HTTP; 0: no answer
    error: str  # a kind of fetch/failure.py; "": no error
    request: bytes  # as sent; b"": none was sent
    # The following fields describe the answer, if there is one.
    head: bytes = b""  # status line and headers as received, to the empty line
    wire: bytes = b""  # body as received
    body: bytes = b""  # without its transfer coding; the same object as `wire` if it has none
    truncated: str = ""  # "", "length" or "time": why the body is incomplete (WARC-Truncated)
    mime: str = ""
    marks: int = 0  # NOINDEX, NOFOLLOW, NOARCHIVE of fetch/html/page.py; ROBOTS_FILE
    hrefs: Sequence[str] = ()  # links as written on the page, for its metadata record, if there is to be one
    links: bytes = b""  # the pages that they lead to, as reported to the frontier: int32, little-endian
    # The following fields are for crawls that fetch pages again.
    changed: int = NOT_KNOWN  # 1: the text that people read differs from our copy; 0: it is the same
    # Of the text that people read (fetch/html/fingerprint.py); for an unchanged page that of our copy; b"": not known.
    fingerprint: bytes = b""
    etag: bytes = b""  # for the next conditional request (fetch/http/headers.py)
    modified: bytes = b""  # likewise
    # URLs that the page links to and other partitions own. AS_BEFORE: those of its last fetch with another value.
    elsewhere: Sequence[str] = ()
    further: bytes = b""  # of more such URLs, which their owners have: the fingerprints, int64, little-endian


class RobotsFetched(NamedTuple):
    """A robots.txt that was requested."""

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
    body: bytes  # decoded, at most 500 KiB: the text that is parsed


class AbandonedSite(NamedTuple):
    """A site that the crawl no longer waits for."""

    site: int
    at: float  # wall clock
    kind: str  # DNS or ADDRESS of fetch/failure.py, or VISITS, BLOCKED, NOT_ABANDONED
    why: str  # for people


class SignalNoted(NamedTuple):
    """The outcome of a signal so far. A later record with the same id replaces it."""

    id: int  # its number in the inbox, counted on from earlier inboxes; below 0: the crawl itself read it from a page
    page: int  # -1: the crawl knows no such page
    at: float  # wall clock
    channel: str
    kind: str
    outcome: str  # one or more words, for people


class ListedPage(NamedTuple):
    """A page that a sitemap or a feed lists."""

    page: int
    by: int  # the page that lists it
    dated: float  # the latest date of a change given there or in another list; infinity: none


class PublishedList(NamedTuple):
    """A sitemap or feed that the crawl knows, and what became of it. A later record with the same page replaces it."""

    page: int  # the number of its URL
    named_by: str  # ROBOTS, GUESS, LINK, INDEX, REDIRECT or SEED of crawler/recrawl/list_queue.py
    speaks_for: str  # the sites on whose hosts it may list any page, separated by spaces; "": only pages of its folder; "*": all sites
    level: int  # number of indexes and redirects that lead to it
    requests: int = 0
    state: str = "waiting"  # one of the states of crawler/visits/extra_queue.py and crawler/recrawl/list_queue.py
    entries: int = 0  # entries that were admitted
    is_page: bool = False  # whether its URL is a page of the crawl as well
    rejected: Mapping[str, int] = {}  # entries that were not admitted, by reason


class PageRequisite(NamedTuple):
    """A file that a page needs, and what became of it. A later record with the same page replaces its state and its requests."""

    page: int  # the number of its URL
    role: str  # STYLESHEET or another role of fetch/css.py
    level: int  # number of stylesheets and redirects that lead from a page to it
    needed_by: int  # the page, stylesheet or redirect that named it first; -1: it is in another partition
    requests: int
    state: str  # one of the states of crawler/visits/extra_queue.py and crawler/requisites/requisite_queue.py


class KeptCopy(NamedTuple):
    """Our copy of a page, as a row of the table `copy`."""

    fetched: float
    checked: float
    last_change: float | None
    fingerprint: bytes
    digest: bytes
    etag: bytes
    modified: bytes
    refused: str


class MessageBatch(NamedTuple):
    """Messages for another partition, as bytes: links to its pages, control messages, or sites handed over to it when
    partitions were added."""

    receiver: int
    number: int  # 1, 2, ... for each receiver
    data: bytes


class ExchangeCounts(NamedTuple):
    """Numbers of message batches between this partition and another, since the crawl began."""

    made: int  # message batches for the other partition
    received: int  # message batches from it
    ended: bool = False  # whether it has handed over all that became ours when partitions were added


class PendingLink(NamedTuple):
    """Links to a page of another partition that were not sent yet, or not followed yet."""

    url: str
    links: int
    depth: int  # least depth of the pages that have the links
    share: float  # sum of what the links hand on


class PartitionTraffic(NamedTuple):
    """The traffic between this partition and the others, for one batch."""

    made: Sequence[MessageBatch] = ()
    # Receiver, number: the receiver has all message batches up to that number.
    delivered: Sequence[tuple[int, int]] = ()
    received: Sequence[tuple[int, int]] = ()  # sender, number: we have all of the sender's up to that number
    # Host, and the address that decides its owner: looked up by us, or sent by the partition that did.
    assigned: Sequence[tuple[str, str]] = ()
    ended: Sequence[int] = ()  # partitions that have handed over to us all that became ours when partitions were added
    size: int = 0  # we have handed over all that is not ours in a crawl of this number of partitions; 0: nothing new
    urls: Sequence[tuple[int, int]] = ()  # receiver, number of URLs of links in message batches made for it
    pending: Sequence[PendingLink] = ()  # links to add to those that wait for their URLs
    not_pending: Sequence[str] = ()  # URLs that were pending, and are no longer
    # Fingerprint, URL: sent to us, but not a page of ours. Others may send the fingerprint alone from now on.
    unplaced: Sequence[tuple[int, str]] = ()


class CrawlProgress(NamedTuple):
    """The state of the crawl after a batch."""

    at: float  # wall clock
    seconds: float  # of crawling, over all runs
    pages: int  # tally.py defines what counts as a page, as an error, and as a byte
    errors: int
    bytes: int
    known: int  # pages
    waiting: int  # pages
    sites: int
    active: int  # visits under way
    quality: float  # sum over the fetched pages of the quality that each had when it was fetched


class Batch(NamedTuple):
    number: int  # 1, 2, ... over the whole life of the crawl
    sites: list[tuple[int, str]]  # id, origin ("http://host:port", without a default port)
    addresses: list[tuple[int, str]]  # group, address
    pages: list[tuple[int, int, str]]  # id, site, url
    fetches: list[Fetched]
    robots: list[RobotsFetched]
    calls: bytes  # the frontier's log since the last batch
    progress: CrawlProgress | None
    abandoned_sites: Sequence[AbandonedSite] = ()
    rejected_links: Sequence[tuple[str, int]] = ()  # reason, number of links over all runs
    refresh: bytes = b""  # the refresher's log since the last batch
    signals: Sequence[SignalNoted] = ()
    listed_pages: Sequence[ListedPage] = ()
    whole: Sequence[int] | None = None  # pages whose next request has no condition; None: as before
    # A new inbox: its identity, and the id of the last signal before its first one. None: as before.
    inbox: tuple[str, int] | None = None
    traffic: PartitionTraffic = PartitionTraffic()
    forget: int = 0  # the logs of batches up to this one are no longer needed
    copies: Sequence[tuple[int, KeptCopy]] = ()  # of pages that came from another partition
    # Targets of redirected seeds, which count as seeds too (crawler/discovery/scope.py), with the number of redirects.
    seeds: Sequence[tuple[str, int]] = ()
    processor: ProcessorTime | None = None  # of the loop in this run
    published_lists: Sequence[PublishedList] = ()
    meta: Mapping[str, str | None] = {}  # keys of the table `meta` that change; None: the key is deleted
    requisites: Sequence[PageRequisite] = ()
    # For each fetch, the depth of its page and the page that linked to it first, -1: none; (): the log does not need them.
    origins: Sequence[tuple[int, int]] = ()
    qualities: Sequence[tuple[int, int, float]] = ()  # page, run, score of its content
