"""A fetched page, and a failed fetch, as a program receives them. Whatever takes time is computed when it is first used."""

from datetime import UTC, datetime
from functools import cached_property

from trapline.crawler.engine.page_stream import StreamedFetch
from trapline.fetch.html.encoding import decode, encoding_of
from trapline.fetch.html.page import is_html
from trapline.fetch.html.visible_text import title_of, visible_text
from trapline.fetch.http.content import decoded
from trapline.fetch.http.headers import content_type
from trapline.fetch.http.response import headers_of
from trapline.fetch.limits import Limits
from trapline.fetch.urls import canonical

_MOST_HEADERS = 1 << 16  # the crawl has applied its own limit


class Page:
    """A fetched page.

    `requested_url` is the URL that a link or a seed named, and `url` the one that answered, after redirects, as in Scrapy, requests
    and httpx. `final_url` is another name of `url`: a redirect is a fetch, but no page, so a page is always the one at the end of
    the redirects. `depth` is the number of links from a seed, `referrer` the URL of the page
    whose link was found first ("" for a seed), and `quality` the quality that the page had when it was fetched. NaN: the page
    was fetched in an earlier run, which did not hand it over.
    """

    def __init__(self, fetch: StreamedFetch) -> None:
        self._fetch, self._record = fetch, fetch.record

    def __repr__(self) -> str:
        return f"Page({self.url!r}, status={self.status})"

    # ---- known without any work

    @property
    def url(self) -> str:
        return self._record.url

    @property
    def final_url(self) -> str:
        return self._record.url

    @property
    def requested_url(self) -> str:
        return self._fetch.requested_url

    @property
    def status(self) -> int:
        return self._record.status

    @property
    def content_type(self) -> str:
        """The media type without its parameters, such as "text/html"; "": the server sent none."""
        return self._record.mime

    @property
    def depth(self) -> int:
        return self._fetch.depth

    @property
    def referrer(self) -> str:
        return self._fetch.referrer

    @property
    def quality(self) -> float:
        return self._fetch.details.quality

    @property
    def seconds(self) -> float:
        """From sending the request to the last byte."""
        return self._record.total_s

    @property
    def first_byte_seconds(self) -> float:
        return self._record.first_byte_s

    @property
    def truncated(self) -> str:
        """Why the body is incomplete: "length" or "time"; "": it is complete."""
        return self._record.truncated

    @property
    def changed(self) -> bool | None:
        """Whether a page that was fetched again has changed. None: it was fetched for the first time."""
        return None if self._record.changed < 0 else self._record.changed == 1

    # ---- computed

    @property
    def fetched_at(self) -> datetime:
        """When the request was sent, in UTC."""
        return datetime.fromtimestamp(self._record.started, UTC)

    @cached_property
    def headers(self) -> dict[str, str]:
        """The response headers: names in lower case, repeated ones joined by a comma."""
        found = headers_of(self._record.head, _MOST_HEADERS) or {}
        return {name.decode("latin-1"): value.decode("latin-1") for name, value in found.items()}

    @cached_property
    def body(self) -> bytes:
        """The body without its content coding; as received, if it cannot be decoded."""
        coding = self.headers.get("content-encoding", "").encode("latin-1")
        found = decoded(self._record.body, coding, Limits.expanded_bytes, cut=True)
        return self._record.body if isinstance(found, str) else found

    @cached_property
    def encoding(self) -> str:
        """The character encoding that browsers would use."""
        _, charset = content_type(self.headers.get("content-type", "").encode("latin-1"))
        return encoding_of(self.body, charset)

    @cached_property
    def text(self) -> str:
        """The body as text."""
        return decode(self.body, self.encoding)

    @property
    def is_html(self) -> bool:
        return is_html(self.content_type, self.body)

    @cached_property
    def title(self) -> str:
        """The title of an HTML page, in one line; "": it has none."""
        return title_of(self.text) if self.is_html else ""

    @cached_property
    def visible_text(self) -> str:
        """The text of an HTML page that a reader sees, without markup, scripts and styles."""
        return visible_text(self.text).text if self.is_html else ""

    @cached_property
    def links(self) -> list[str]:
        """The URLs that the page links to, canonical and each once. A page with "nofollow" has none."""
        details = self._fetch.details
        found = (canonical(href, details.base or self.url) for href in details.hrefs)
        return list(dict.fromkeys(url for url in found if url is not None))


class FailedFetch:
    """A page that could not be fetched, that robots.txt forbids, or whose media type is not wanted. The crawl may try again to fetch
    one that failed."""

    def __init__(self, fetch: StreamedFetch) -> None:
        self._fetch = fetch

    def __repr__(self) -> str:
        return f"FailedFetch({self.url!r}, {self.error!r}, status={self.status})"

    @property
    def url(self) -> str:
        return self._fetch.record.url

    @property
    def error(self) -> str:
        """The kind of error: "http" (see `status`), "dns", "connect", "timeout" and others (docs/crawl-summary.md). "robots":
        robots.txt forbids the page. "mime": its media type is not wanted, and its body was not read.
        "archive": the page was fetched in an earlier run, and its record cannot be read."""
        return self._fetch.record.error

    @property
    def status(self) -> int:
        """The HTTP status; 0: there was no answer."""
        return self._fetch.record.status

    @property
    def depth(self) -> int:
        return self._fetch.depth

    @property
    def referrer(self) -> str:
        return self._fetch.referrer
