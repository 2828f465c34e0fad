"""The durable frontier: tells a crawler which URLs to fetch next, and survives its process.

Its folder (folder.py) gives URLs their page numbers, and keeps them with the log of calls. What is fetched next, and when, is decided by
`trapline.frontier`. The crawler fetches.

Everything that a call has changed is committed when the call returns (or the block of `one_commit` ends), except for `next`: a page that
was handed out but not reported when the process ended is handed out again.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self

from trapline.durable.database import PageRow
from trapline.durable.folder import FrontierFolder
from trapline.durable.pages import KnownPage, NewPage, QueuedPage, UrlVisit, check_text, with_url
from trapline.errors import ConfigError
from trapline.fetch.urls import MOST_URL, canonical, is_dynamic, origin
from trapline.frontier import FETCHED, REFUSED, Drained, Outcome, Rescore, Rules, Visit, WaitUntil
from trapline.frontier.layout import FETCHED as FETCHED_PAGE
from trapline.strategies import Strategy


class DurableFrontier:
    """A frontier of URLs in a folder.

    If the folder cannot be written, for example because the disk is full, a call raises `sqlite3.Error`. Do not repeat the call: the
    frontier has done what it asked for, and the next call that can write writes that too.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp() + "/frontier"
    >>> with DurableFrontier(folder, "breadth-first", Rules(delay_s=0.0)) as frontier:
    ...     frontier.add(["http://a.example/", "http://b.example/"])
    2
    >>> with DurableFrontier(folder, "breadth-first", Rules(delay_s=0.0)) as frontier:
    ...     visit = frontier.next()
    ...     _ = frontier.report(visit, visit.pages[0], FETCHED, ["http://a.example/1"])
    ...     _ = frontier.finish(visit)
    ...     visit.pages[0].url, frontier.known, frontier.waiting
    ('http://a.example/', 3, 2)
    """

    def __init__(
        self,
        folder: str | Path,
        strategy: str | Strategy = "opic",
        rules: Rules | None = None,
        *,
        by_address: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open the frontier in a folder, or make a new one.

        `strategy`: its name, a Python file of yours, or the strategy itself. `by_address`: sites on the same IP address share a delay;
        `resolve` must name the address of each site (`unresolved`) before it is visited. `clock`: returns seconds since 1970.

        All calls must come from the thread that opened the frontier.
        """
        self._by_address, self._rules = by_address, rules or Rules()
        self._folder = FrontierFolder(
            folder, "DurableFrontier", strategy, self._rules, _key, clock, by_address=by_address
        )
        self._frontier, self._database = self._folder.frontier, self._folder.database
        self._addresses = self._database.address_numbers()
        self.unresolved = self._folder.unresolved

    # ---- pages

    def add(self, pages: Iterable[str | NewPage], *, sync: bool = False) -> int:
        """Add URLs that no fetched page links to, such as seeds, and return how many are new. `sync`: wait until they are on disk, so
        that they survive a power failure."""
        given, known, now = list(map(with_url, pages)), self.known, self._folder.now()
        for page, url in given:
            if not url:
                raise ConfigError(f"{page.url[:MOST_URL]}: not an http or https URL of at most {MOST_URL} characters")
        self._frontier.discover(self._numbers(given, now), now)
        self._folder.commit(sync)
        return self.known - known

    def report(
        self,
        visit: UrlVisit,
        page: QueuedPage,
        result: int,
        links: Iterable[str | NewPage | KnownPage] = (),
        response_s: float = math.nan,
        payload: bytes | None = None,
    ) -> bool:
        """Report the result of a page: FETCHED, FAILED (it may be tried again) or REFUSED (never again), with its links. Links that are
        not http or https are left out. `payload`: replaces that of a page that is tried again. Return False if the visit has already
        ended: its time had run out."""
        now = self._folder.now()
        is_taken = self._frontier.report(self._visit(visit), page.id, result, now, self._linked(links, now), response_s)
        if is_taken and result in (FETCHED, REFUSED) and page.payload:
            self._database.payloads[page.id] = None
        elif is_taken and payload is not None:
            self._database.payloads[page.id] = payload
        self._folder.count_reported()
        self._folder.commit()
        return is_taken

    def set_payload(self, page: QueuedPage, payload: bytes) -> None:
        """Replace the payload of a page that is being visited, for its next visit."""
        self._database.payloads[page.id] = payload
        self._folder.commit()

    def finish(self, visit: UrlVisit, outcome: Outcome | None = None) -> bool:
        """End a visit. Pages that were not reported wait again, and the delay of the site begins."""
        is_taken = self._frontier.finish(self._visit(visit), outcome or Outcome(), self._folder.now())
        self._folder.commit()
        return is_taken

    def next(self) -> UrlVisit | WaitUntil | Drained:
        """Return what to do now: make a visit, wait, or end because nothing is left."""
        answer = self._frontier.next(self._folder.now())
        if isinstance(answer, Visit):
            rows = self._database.rows_of(answer.pages)
            pages = [QueuedPage(row.id, row.url, row.payload or b"") for row in rows]
            return UrlVisit(answer.id, self._folder.site_names[answer.site], pages, answer.expires_at)
        assert not isinstance(answer, Rescore)  # the folder has refused such strategies
        return answer

    def one_commit(self) -> AbstractContextManager[None]:
        """Commit what the calls in this block change when the block ends, in one transaction, which takes less time than one for each."""
        return self._folder.one_commit()

    # ---- sites

    def set_site(
        self,
        site: str,
        *,
        delay_s: float | None = None,
        per_connection: int | None = None,
        max_pages: int | None = None,
        not_before: float | None = None,
    ) -> None:
        """Set the rules of one site: the delay between two visits, the pages of a visit, the pages in all (0 blocks the site), and a time
        before which it is not visited. None leaves a rule as it is; AS_RULES removes the site's own."""
        check_text("site", site)
        now = self._folder.now()
        (number,) = self._folder.number_sites([site], now)
        rules = {"delay_s": delay_s, "per_connection": per_connection, "pages": max_pages, "not_before": not_before}
        self._frontier.set_site(number, now, **rules)  # type: ignore[arg-type]
        self._folder.commit()

    def resolve(self, site: str, address: str) -> None:
        """Name the IP address of a site. Sites on the same address share its delay. With an unknown address, give the site's own name."""
        number = self._folder.site_numbers.get(site)
        if not self._by_address or number is None:
            reason = (
                "is not a site of this frontier" if self._by_address else "needs no address without by_address=True"
            )
            raise ConfigError(f"site {site!r} {reason}")
        check_text("address", address)
        if address not in self._addresses:
            self._addresses[address] = len(self._addresses)
            self._database.addresses.append((self._addresses[address], address))
        if not self._frontier.is_visited(number):
            self._frontier.resolve(number, self._addresses[address], self._folder.now())
            self.unresolved.discard(site)
        self._folder.commit()

    # ---- numbers

    @property
    def known(self) -> int:
        """Number of known pages."""
        return self._frontier.pages

    @property
    def waiting(self) -> int:
        """Number of pages that wait to be fetched."""
        return self._frontier.waiting

    @property
    def sites(self) -> int:
        """Number of known sites."""
        return len(self._folder.site_names)

    @property
    def done(self) -> int:
        """Number of pages that were fetched, or that are never tried again."""
        return int((self._frontier.page_states >= FETCHED_PAGE).sum())

    @property
    def now(self) -> float:
        """The frontier's time: that of its clock, until the clock is set back. The frontier's time then goes on, and stays ahead."""
        return self._folder.now()

    @property
    def is_drained(self) -> bool:
        """Whether no page is left that could ever be handed out, and none is being fetched."""
        return not self._frontier.has_new

    def opens_at(self) -> float:
        """Return when a visit could begin: now, a later time, or infinity if time alone changes nothing."""
        return self._frontier.opens_at(self._folder.now())

    def find(self, key: str) -> KnownPage | None:
        """Return the page with this key, or this URL; None: it was never added."""
        page = self._find(key)
        return KnownPage(page) if page >= 0 else None

    def knows(self, key: str) -> bool:
        """Return whether a page with this key, or this URL, was added before."""
        return self.find(key) is not None

    def is_done(self, key: str) -> bool:
        """Return whether the page with this key, or this URL, was fetched, or is never tried again."""
        page = self._find(key)
        return page >= 0 and self._frontier.page_state(page) >= FETCHED_PAGE

    def retries_left(self, page: QueuedPage) -> int:
        """Return how often this page may fail and is still tried again."""
        return self._rules.retries - self._frontier.failed_tries(page.id)

    # ---- the end

    def close(self) -> None:
        """End. The next process begins at this point."""
        self._folder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- private

    def _find(self, key: str) -> int:
        """Return the page with this key, or else with this URL; -1: there is none."""
        check_text("key", key)
        page = self._folder.find(key)
        if page < 0 and ":" in key and (url := canonical(key)) not in (None, key):
            page = self._folder.find(url)
        return page

    def _visit(self, visit: UrlVisit) -> Visit:
        return Visit(
            visit.id, self._folder.site_numbers[visit.site], [page.id for page in visit.pages], visit.expires_at
        )

    def _linked(self, links: Iterable[str | NewPage | KnownPage], now: float) -> list[int]:
        """Return the pages that these links lead to, in order. New ones are registered; links that are not http or https are left out."""
        pages: list[int] = []
        given: list[tuple[NewPage, str]] = []
        places: list[int] = []  # of these in `pages`
        for link in links:
            if isinstance(link, KnownPage):
                pages.append(link.id)
            elif (one := with_url(link))[1]:
                places.append(len(pages))
                pages.append(-1)
                given.append(one)
        for place, page in zip(places, self._numbers(given, now), strict=True):
            pages[place] = page
        return pages

    def _numbers(self, given: Sequence[tuple[NewPage, str]], now: float) -> list[int]:
        """Return the page of each of these pages with their canonical URLs. New pages, and new sites, are registered."""
        numbers, places = self._folder.page_numbers([page.key or url for page, url in given])
        new = [(numbers[place], *given[place]) for place in places]
        sites = self._folder.number_sites([page.site or origin(url) for _, page, url in new], now)
        rows = [
            PageRow(number, site, url, page.key if page.key not in ("", url) else None, page.payload or None)
            for site, (number, page, url) in zip(sites, new, strict=True)
        ]
        self._folder.register(rows, [page.quality for _, page, _ in new], [is_dynamic(url) for _, _, url in new])
        return numbers


def _key(site: int, url: str, key: str | None) -> str:
    return key or url
