"""Requisites of pages: which files pages and stylesheets need, and what follows from the answers. Steps 5 and 6 in docs/architecture.md.

A page that was fetched names requisites in its HTML, a stylesheet names more, and a requisite may redirect to another URL. Their
URLs may be on any host: a page of a site often needs files of others. Each URL that was never seen gets a page number, is no
page of the frontier, and waits in requisite_queue.py until a visit requests it (crawler/visits/extra_requests.py).

What a page can cause is bounded: MOST_OF_A_PAGE URLs of a page or stylesheet (fetch/css.py), MOST_URL_BYTES of their
text, MOST_LEVELS stylesheets and redirects in a row, and as many requisites of a site as it may have known pages.
"""

from collections.abc import Callable, Iterable

from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.crawler.engine.records import PageRequisite
from trapline.crawler.files.reading import Reading
from trapline.crawler.requisites import requisite_queue
from trapline.crawler.requisites.requisite_queue import RequisiteQueue
from trapline.crawler.store.outbox import Outbox
from trapline.crawler.visits.judge import FetchVerdict
from trapline.fetch.css import MOST_CHARACTERS, MOST_OF_A_PAGE, STYLESHEET, Requisite, is_usable, read_style
from trapline.fetch.html.encoding import decode, encoding_of
from trapline.fetch.html.page import is_html
from trapline.fetch.http.content import decoded
from trapline.fetch.http.headers import content_type
from trapline.fetch.http.response import Response
from trapline.fetch.urls import canonical, origin
from trapline.frontier import FAILED, FETCHED, Frontier

MOST_LEVELS = 5  # stylesheets and redirects that lead from a page to a requisite
MOST_URL_BYTES = 1 << 20  # of the requisites of one page or stylesheet
_MOST_STYLE_BYTES = 4 * MOST_CHARACTERS  # the rest of a stylesheet is not decoded
_CSS = "text/css"
SendRequisite = Callable[[str, str, int], None]  # URL, role, level


class PageRequisites:
    reads_all = False  # stylesheets are decoded here, and other types are not read

    def __init__(
        self,
        frontier: Frontier,
        link_resolver: LinkResolver,
        outbox: Outbox,
        expanded_bytes: int,
        send: SendRequisite | None = None,
    ) -> None:
        """`expanded_bytes`: largest size of a stylesheet after its content coding is removed. `send`: passes on requisites that
        other partitions own."""
        self._link_resolver, self._expanded_bytes, self._send = link_resolver, expanded_bytes, send
        self.queue = RequisiteQueue(frontier, link_resolver, outbox)

    def restore(self, reading: Reading) -> None:
        self.queue.restore(reading.requisites())

    def are_left_without_pages(self) -> bool:
        """Return whether requisites are left to fetch, now that the crawl fetches no more pages."""
        self.queue.take_over_pages()
        return len(self.queue) > 0

    # ---- what names requisites

    def read_page(self, page: int, url: str, verdict: FetchVerdict, response: Response, now: float) -> None:
        """Take in a page that was fetched. It may be a file that other pages need, because a link or a sitemap leads to it too."""
        requisite = self.queue.fetched_as_page(page)
        if requisite is not None and 300 <= response.status < 400:
            self._want_targets(requisite, url, verdict, now)
        if not 200 <= response.status < 300:
            return
        if verdict.mime == _CSS:
            self._read_style(page, url, response, 0, now)
        if not verdict.body or not is_html(verdict.mime, verdict.body):
            return
        from trapline.fetch.html.requisites import (
            read_requisites,  # imported late, because its kernel is only needed here
        )

        base = (canonical(verdict.base, url) or url) if verdict.base else url
        self._want(read_requisites(verdict.body, _charset(response)), base, 0, page, now)

    def _read_style(self, page: int, url: str, response: Response, level: int, now: float) -> None:
        body = decoded(response.body, response.codings, min(self._expanded_bytes, _MOST_STYLE_BYTES), cut=True)
        if isinstance(body, bytes):
            css = decode(body[:_MOST_STYLE_BYTES], encoding_of(body, _charset(response)))
            self._want(read_style(css), url, level + 1, page, now)

    def received(self, url: str, role: str, level: int, now: float) -> None:
        """Take in a requisite of ours that another partition found."""
        self._want([Requisite(role, url)], url, level, -1, now)

    def send_moved(self) -> None:
        """Send the waiting requisites of sites that other partitions own now to their owners."""
        for site in self.queue.sites:
            if self._send is not None and not self._link_resolver.is_ours(self._link_resolver.sites[site].origin + "/"):
                for url, role, level in self.queue.moved(site):
                    self._send(url, role, level)

    def _want(self, found: Iterable[Requisite], base: str, level: int, needed_by: int, now: float) -> None:
        """Let requisites be requested. `level`: number of stylesheets and redirects that lead to them from a page."""
        if level > MOST_LEVELS:
            return
        roles = self._by_url(found, base)
        if self._send is not None:
            for url in [url for url in roles if not self._link_resolver.is_ours(url)]:
                self._send(url, roles.pop(url), level)
        urls = list(roles)
        for page, role in zip(self._link_resolver.requisite_pages(urls, now), roles.values(), strict=True):
            if page >= 0:
                self.queue.add(page, role, level, needed_by)

    def _by_url(self, found: Iterable[Requisite], base: str) -> dict[str, str]:
        """Return the roles of requisites by their canonical URLs, up to the limits."""
        roles: dict[str, str] = {}
        room = MOST_URL_BYTES
        for role, href in found:
            room -= len(href)
            if room < 0 or len(roles) == MOST_OF_A_PAGE:
                break
            url = canonical(href, base) if is_usable(href) else None
            if url is not None and not self._is_full(url):
                roles.setdefault(url, role)
        return roles

    def _is_full(self, url: str) -> bool:
        """Return whether the site of a URL has too many requisites. This comes before the URL gets a page number."""
        site = self._link_resolver.sites.named(origin(url))
        return site is not None and self.queue.is_full(site.id)

    # ---- answers to requests, as `ExtraSource` of crawler/visits/extra_requests.py

    def came(self, page: int, url: str, verdict: FetchVerdict, response: Response, now: float) -> None:
        """Take in the answer to the request for a requisite."""
        if verdict.result == FAILED:
            self.queue.retry(page)
            return
        requisite = self.queue.taken(page)
        if verdict.result != FETCHED:
            self.queue.finished(page, requisite_queue.MISSING)
            return
        is_redirect, html = 300 <= response.status < 400, is_html(verdict.mime, response.body)
        self.queue.finished(page, requisite_queue.WITH_LINKS if html or is_redirect else requisite_queue.FETCHED)
        if is_redirect:
            self._want_targets(requisite, url, verdict, now)
        elif verdict.mime == _CSS or (requisite.role == STYLESHEET and not html):
            self._read_style(page, url, response, requisite.level, now)

    def _want_targets(self, requisite: PageRequisite, url: str, verdict: FetchVerdict, now: float) -> None:
        """Let the target of a requisite that redirects be requested."""
        targets = (Requisite(requisite.role, href) for href in verdict.links)
        self._want(targets, url, requisite.level + 1, requisite.page, now)


def _charset(response: Response) -> str | None:
    return content_type(response.headers.get(b"content-type", b""))[1]
