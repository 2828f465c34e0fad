"""Crawl folders for tests of exports: pages with given contents, written by the store, without a crawl."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.records import OUT_OF_BAND, Batch, Fetched, PageRequisite, PublishedList, RobotsFetched
from trapline.crawler.files.layout import claim_new
from trapline.crawler.store.keeper import Keeper
from trapline.crawler.store.settings import StoreSettings
from trapline.fetch.urls import origin

BEGAN = 1_700_000_000.0
FETCHED, FAILED, REFUSED = 3, 5, 6


class WrittenCrawl:
    """Pages, sites and fetches of a crawl, numbered as they come. `write` makes a folder of them."""

    def __init__(self, *seeds: str, **options: Any) -> None:
        self.options = CrawlOptions(seeds=seeds, **options)
        self._sites: dict[str, int] = {}
        self._pages: dict[str, int] = {}
        self._fetches: list[Fetched] = []
        self._robots: list[RobotsFetched] = []
        self._requisites: list[PageRequisite] = []
        self._lists: list[PublishedList] = []

    def page(self, url: str) -> int:
        """Return the number of a page, which is known from now on."""
        self._sites.setdefault(origin(url), len(self._sites))
        return self._pages.setdefault(url, len(self._pages))

    def fetched(
        self,
        url: str,
        body: bytes = b"",
        links: Sequence[str] = (),
        head: str = "Content-Type: text/html",
        **changes: Any,
    ) -> None:
        """Add an answer. `links`: the pages that its links lead to."""
        status = changes.get("status", 200)
        page, at = self.page(url), BEGAN + len(self._fetches)
        answer = Fetched(
            page=page,
            site=self._sites[origin(url)],
            visit=len(self._fetches),
            url=url,
            address="192.0.2.7",
            started=at,
            first_byte_s=0.25,
            total_s=0.5,
            result=FETCHED,
            status=status,
            error="",
            request=b"GET / HTTP/1.1\r\n\r\n",
            head=f"HTTP/1.1 {status} X\r\n{head}\r\n\r\n".encode(),
            wire=body,
            body=body,
            mime=head.partition("Content-Type: ")[2].partition(";")[0].partition("\r")[0],
            links=np.array([self.page(link) for link in links], "<i4").tobytes(),
        )
        self._fetches.append(answer._replace(**changes))

    def requisite(self, url: str, needed_by: str) -> None:
        """Add an image that a page needs."""
        self.fetched(url, b"x", head="Content-Type: image/png", result=OUT_OF_BAND)
        self._requisites.append(PageRequisite(self.page(url), "image", 0, self.page(needed_by), 1, "fetched"))

    def sitemap(self, url: str) -> None:
        """Add a sitemap that was requested besides the pages."""
        self.fetched(url, b"<urlset>", head="Content-Type: text/xml", result=OUT_OF_BAND)
        self._lists.append(PublishedList(self.page(url), "robots.txt", "", 0, 1, "read"))

    def refused(self, url: str, status: int) -> None:
        self.fetched(url, b"no", status=status, result=REFUSED, error="http")

    def forbidden(self, url: str) -> None:
        self._without_answer(url, result=REFUSED, error="robots", address="", request=b"")

    def failed(self, url: str, error: str) -> None:
        self._without_answer(url, result=FAILED, error=error)

    def _without_answer(self, url: str, **changes: Any) -> None:
        self.fetched(url, head="", **{"status": 0, "mime": "", **changes})
        self._fetches[-1] = self._fetches[-1]._replace(head=b"", first_byte_s=float("nan"))

    def robots(self, site: str, body: bytes) -> None:
        self._sites.setdefault(site, len(self._sites))
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
        self._robots.append(
            RobotsFetched(
                *(self._sites[site], 1, f"{site}/robots.txt", "192.0.2.7", BEGAN - 1, 0.25, 0.5),
                *(200, "", b"GET /robots.txt\r\n\r\n", head, body, body),
            )
        )

    def write(self, folder: Path, settings: Mapping[str, Any] | None = None) -> Path:
        claim_new(folder, asdict(self.options)).release()
        keeper = Keeper(folder, StoreSettings(**(settings or {})))
        keeper.commit(
            [
                Batch(
                    1,
                    [(number, name) for name, number in self._sites.items()],
                    [],
                    [(number, self._sites[origin(url)], url) for url, number in self._pages.items()],
                    self._fetches,
                    self._robots,
                    b"calls",
                    None,
                    requisites=self._requisites,
                    published_lists=self._lists,
                )
            ]
        )
        keeper.leave()
        return folder
