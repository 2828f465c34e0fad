"""The tables that an export reads from the archives: the text of each page, and its links.

The responses are parsed and judged as the crawl did it, by the same functions. A page of which the database says that there is a record,
but whose record cannot be read, is yielded without contents, and counted.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

import numpy as np

from trapline.crawler.discovery.link_resolver import KNOWN_PER_FETCHED
from trapline.crawler.engine.records import FULL, TOO_MANY
from trapline.crawler.files.archived_responses import ArchivedResponses
from trapline.crawler.store.archive import RecordPlace
from trapline.crawler.visits.judge import FetchVerdict, judge
from trapline.export.database_tables import moment
from trapline.export.source import ExportSource, Row
from trapline.fetch import failure
from trapline.fetch.html.anchors import PageLink, read_anchors
from trapline.fetch.html.encoding import decode, encoding_of
from trapline.fetch.html.markup import BYTES_OF_A_PAGE
from trapline.fetch.html.page import NOFOLLOW, is_html
from trapline.fetch.html.visible_text import VisibleText, visible_text
from trapline.fetch.http.content import decoded
from trapline.fetch.http.headers import content_type, link_targets
from trapline.fetch.http.response import Response
from trapline.fetch.urls import canonical, origin
from trapline.frontier import REFUSED

# ---- The contents of pages, one page at a time, in the order in which they were archived

_PAGES = """select seq, fetch.page, url, started, links, digest, file, offset, length
from last_body join fetch using (seq) join page on page.id = fetch.page where seq > ? and seq <= ? order by seq"""


class ArchivedPage(NamedTuple):
    id: int
    url: str
    started: float
    links: bytes  # pages that its links lead to, as in the table `fetch`
    response: Response | None  # None: its record cannot be read
    verdict: FetchVerdict | None  # None if and only if there is no response


def archived_pages(source: ExportSource, what: str) -> Iterator[ArchivedPage]:
    """Yield each page whose last successful fetch brought contents or a redirect. `what`: the name of the table, for progress."""
    source.need("last_body")
    limits, refetches = source.options.limits, source.options.refresh is not None
    responses = ArchivedResponses(source.database, source.folder, limits, lambda: source.need("first_of_digest"))
    with closing(responses) as archives:
        for _, page, url, started, links, digest, *place in source.rows(what, _PAGES, source.bounds.fetch):
            response = archives.response(RecordPlace(*place), digest) if place[0] is not None else "its record was lost"
            if isinstance(response, str):
                source.unreadable.add(page, f"{url}: {response}")
                yield ArchivedPage(page, url, started, links, None, None)
            else:
                verdict = judge(response, source.options.robots_token, limits.expanded_bytes, started, False, refetches)
                yield ArchivedPage(page, url, started, links, response, verdict)


# ---- Table `text`: title and text of each HTML page and plain text file

_PLAIN = "text/plain"


def text(source: ExportSource) -> Iterator[Row]:
    for page in archived_pages(source, "fetches, for their text"):
        found = _text_of(page, source.options.limits.expanded_bytes)
        if found is not None:
            yield page.id, page.url, moment(page.started), found.title or None, found.text


def _text_of(page: ArchivedPage, expanded_bytes: int) -> VisibleText | None:
    """Return the text of a page, or None if it is neither HTML nor plain text, or cannot be read."""
    response, verdict = page.response, page.verdict
    if response is None or verdict is None or verdict.error or not 200 <= response.status < 300:
        return None
    mime, charset = content_type(response.headers.get(b"content-type", b""))
    if is_html(mime, verdict.body):
        body = verdict.body[:BYTES_OF_A_PAGE]
        return visible_text(decode(body, encoding_of(body, charset)).lstrip("\ufeff"))
    if mime != _PLAIN:
        return None
    body_or_error = decoded(response.body, response.codings, expanded_bytes) if response.codings else response.body
    if isinstance(body_or_error, str):
        return None
    plain = decode(body_or_error, encoding_of(body_or_error, charset)).lstrip("\ufeff")
    return VisibleText("", plain.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n"))


# ---- Table `links`.
#
# Each link of each page, with its anchor text, and whether the crawl follows it or why not. Links are read from the archives again,
# because the database has only the pages that they lead to. These pages decide: a link whose URL is one of them was accepted. Why
# another one was not is found by the rules of the crawl itself: the scope (crawler/discovery/scope.py), and the limits of the link
# resolver. So the links of each reason are those that the crawl counted in `rejected_link`. If a record cannot be read, the table
# has only the pages that its links lead to.

# Why a link is not followed, besides the reasons of the scope and of the link resolver.
LINK_NOFOLLOW = "nofollow"  # its rel says so
PAGE_NOFOLLOW = "page nofollow"  # its page says so
NO_URL = "no url"  # no http or https URL, or one that is too long
ROBOTS = "robots"  # robots.txt forbids the target
PAGE_LIMIT = "page limit"  # beyond the part of a page that the crawl reads
REQUISITE = "requisite"  # the target was fetched already, as a requisite of a page
OTHER_PARTITION = "other partition"  # the partition of the target did not accept it, or was not told

_IDS_AT_ONCE = 500
_MOST_KNOWN = 200_000  # targets that are remembered, because most pages of a site have many links in common
_TARGETS = f"""select page.id, url, status, result = {REFUSED} and error = '{failure.ROBOTS}'
from page left join last_fetch on last_fetch.page = page.id left join fetch using (seq) where page.id in """
_IS_FETCHED_REQUISITE = "select exists (select 1 from fetched_requisite where url = ?)"
_FULL_SITES = "select origin from site where id in (select site from page group by site having count(*) >= ?)"


class LinkTarget(NamedTuple):
    id: int
    url: str
    status: int | None  # of its last fetch
    is_forbidden: int | None  # by robots.txt


def links(source: ExportSource) -> Iterator[Row]:
    """Yield one row per link of each page, in source order."""
    source.need("last_fetch")
    targets, reasons = _Targets(source), _Reasons(source)
    for page in archived_pages(source, "fetches, for their links"):
        accepted = targets.of(page.links)
        if page.response is None:
            for known in accepted.values():
                yield _row(page, known.url, known, None, ROBOTS if known.is_forbidden else "")
            continue
        base, found = _links_of(page, source.options.robots_token)
        for link, reason in found:
            url = canonical(link.href, base)
            target = accepted.get(url) if url else None
            yield _row(page, url, target, link, reason or reasons.why_not(url, target))


def _row(page: ArchivedPage, url: str | None, target: LinkTarget | None, link: PageLink | None, reason: str) -> Row:
    """Return a row. `link` is None if the record of the page cannot be read."""
    described = (link.text, link.rel or None, link.element, link.href) if link else (None,) * 4
    known = (target.id, target.status or None) if target else (None, None)
    return page.url, url, *described, not reason, reason or None, page.id, *known


# ---- The links of a page, and those among them that the crawl never resolved.


def _links_of(page: ArchivedPage, agent: str) -> tuple[str, list[tuple[PageLink, str]]]:
    """Return the base URL of a page, and its links, each with the reason for which the page itself excludes it, or "". `agent`:
    the product token of the crawl."""
    response, verdict = page.response, page.verdict
    assert response is not None and verdict is not None
    base = (canonical(verdict.base, page.url) or page.url) if verdict.base else page.url
    if 300 <= response.status < 400:
        return base, [(PageLink("redirect", href, "", "", False), "") for href in verdict.links]
    header = link_targets(response.headers.get(b"link", b""))
    in_header = [PageLink("header", target, rel, "", False) for target, rel in header]
    in_page: list[PageLink] = []
    if is_html(verdict.mime, verdict.body) and not verdict.error:
        charset = content_type(response.headers.get(b"content-type", b""))[1]
        in_page = read_anchors(verdict.body, charset, agent)
    if verdict.marks & NOFOLLOW:
        return base, [(link, LINK_NOFOLLOW if link.is_nofollow else PAGE_NOFOLLOW) for link in (*in_page, *in_header)]
    return base, [*_judged(in_page, len(verdict.links) - len(in_header)), *((link, "") for link in in_header)]


def _judged(links: list[PageLink], read: int) -> Iterator[tuple[PageLink, str]]:
    """Yield links with the reason not to follow them. `read`: number of links to follow that the crawl has read."""
    for link in links:
        read -= not link.is_nofollow
        yield link, LINK_NOFOLLOW if link.is_nofollow else PAGE_LIMIT if read < 0 else ""


# ---- Targets


class _Targets:
    """The pages that links lead to."""

    def __init__(self, source: ExportSource) -> None:
        self._source = source
        self._known: dict[int, LinkTarget] = {}

    def of(self, links: bytes) -> dict[str, LinkTarget]:
        """Return the pages in a blob of the column `links`, by URL."""
        ids = np.frombuffer(links, "<i4").tolist()
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        new = [id for id in ids if id not in self._known]
        for first in range(0, len(new), _IDS_AT_ONCE):
            some = ", ".join(map(str, new[first : first + _IDS_AT_ONCE]))
            self._known.update(
                (row[0], LinkTarget(*row)) for row in self._source.database.execute(f"{_TARGETS} ({some})")
            )
        found = (self._known[id] for id in ids if id in self._known)
        return {target.url: target for target in found}


class _Reasons:
    def __init__(self, source: ExportSource) -> None:
        self._scope = source.scope
        # A link that was found before a seed was redirected was rejected by the scope of that time.
        self._scope_at_first = source.options.scope_of_crawl()
        self._is_parallel = source.is_parallel
        source.need("fetched_requisite")
        self._database = source.database
        self._has_requisites = self._is_true("select exists (select 1 from fetched_requisite)")
        most = KNOWN_PER_FETCHED * source.options.rules.pages_per_site  # 0: no limit
        self._full = {name for (name,) in source.database.execute(_FULL_SITES, (most,))} if most else frozenset()

    def why_not(self, url: str | None, target: LinkTarget | None) -> str:
        """Return why the crawl does not follow a link to `url`, or "". `target`: the page that the crawl took it for, if it did."""
        if url is None:
            return NO_URL
        if target is not None:
            return ROBOTS if target.is_forbidden else ""
        if reason := self._scope.admits(url):
            return reason
        if self._has_requisites and self._is_true(_IS_FETCHED_REQUISITE, url):
            return REQUISITE
        if reason := self._scope_at_first.admits(url):
            return reason
        if origin(url) in self._full:
            return FULL
        return OTHER_PARTITION if self._is_parallel else TOO_MANY

    def _is_true(self, sql: str, *values: str) -> bool:
        return bool(self._database.execute(sql, values).fetchone()[0])
