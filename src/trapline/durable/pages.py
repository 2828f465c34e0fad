"""The pages of the two durable frontiers as a crawler gives and receives them, and the check of what it gives."""

from typing import NamedTuple

from trapline.durable.schedule import MOST_DATE, PageDates
from trapline.errors import ConfigError
from trapline.fetch.urls import canonical
from trapline.frontier.layout import RANK_LIMIT

# ---- What `DurableFrontier` takes and hands out.


class NewPage(NamedTuple):
    """A URL to be fetched."""

    url: str
    payload: bytes = b""  # returned with the URL
    key: str = ""  # pages with the same key are one page; "": the canonical URL
    site: str = ""  # pages of a site are fetched one after the other, with delays; "": scheme, host and port of the URL
    quality: float = 0.0  # for strategies that know the quality of pages before they are fetched


class KnownPage(NamedTuple):
    """A page that was added before, as `find` returns it: as a link it costs less than its URL."""

    id: int


class QueuedPage(NamedTuple):
    """A page to fetch now."""

    id: int
    url: str  # canonical
    payload: bytes


class UrlVisit(NamedTuple):
    """An order to fetch these pages of a site, one after the other, before `expires_at`."""

    id: int
    site: str
    pages: list[QueuedPage]
    expires_at: float


def with_url(page: str | NewPage) -> tuple[NewPage, str]:
    """Return a page with its canonical URL; "": it is not http or https. With a site and a key of its own, a page may have any URL.

    Raise `ConfigError` if the page could not be written. Later would be too late: the frontier would know a page that the disk does not.
    """
    given = NewPage(page) if isinstance(page, str) else page
    url = canonical(given.url) or (given.url if given.site and given.key else "")
    for name, value in (("url", url), ("key", given.key), ("site", given.site)):
        check_text(name, value)
    check_value(given.url, given.payload, given.quality)
    return given, url


# ---- What `ScheduledFrontier` takes and hands out.


class PutPage(NamedTuple):
    """A page to add, or to schedule again."""

    url: str
    site: str
    payload: bytes = b""
    date: int | None = None  # seconds since 1970 at which it may be handed out; 0: never; None: a new page, at once
    quality: float = 0.0


class ScheduledPage(NamedTuple):
    url: str
    site: str
    payload: bytes
    dates: PageDates


class HandedOut(NamedTuple):
    """Pages of one site that are reserved."""

    site: str
    pages: list[int]


class PageCounts(NamedTuple):
    known: int
    done: int  # never handed out again
    reserved: int
    sites: int


def checked_date(page: PutPage) -> int | None:
    """Return the date of a page in milliseconds; None: it has none; 0: DONE. Raise `ConfigError` if the page cannot be written."""
    check_text("url", page.url)
    check_text("site", page.site)
    check_value(page.url, page.payload, page.quality)
    if page.date is not None and page.date < 0:
        raise ConfigError(
            f"{page.url}: its date {page.date} is negative; give seconds since 1970, or 0 for a page that is done"
        )
    return None if page.date is None else 1000 * min(page.date, MOST_DATE)


# ---- Checks of both.


def check_value(url: str, payload: bytes, quality: float) -> None:
    """Raise `ConfigError` if the payload or the quality of this URL cannot be kept."""
    if not isinstance(payload, bytes):
        raise ConfigError(f"{url}: its payload is of type {type(payload).__name__}; give bytes")
    if not is_quality(quality):
        raise ConfigError(f"{url}: its quality is {quality!r}; give a number under 2^42")


def is_quality(value: float) -> bool:
    """Return whether a rank can be this large: it is a number under 2^42."""
    try:
        return abs(float(value)) < RANK_LIMIT
    except (TypeError, ValueError):
        return False


def check_text(name: str, value: str) -> None:
    """Raise `ConfigError` if a text cannot be written."""
    try:
        value.encode()
    except (AttributeError, UnicodeEncodeError):
        raise ConfigError(f"{name} {value!r}: not a text that can be written as UTF-8") from None
