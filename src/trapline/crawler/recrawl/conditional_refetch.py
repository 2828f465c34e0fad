"""Conditional refetches: how fetched pages are requested again, and whether they changed. Step 9 in docs/architecture.md.

The agenda (refresh/live/agenda.py) decides which pages are fetched again and when, and knows which of them are under way.
This module opens no socket, reads no clock, and knows nothing of signals from content providers (signal_intake.py).

A fetched page that is not available now (404, 410, robots.txt) still counts as fetched. The frontier is not told, so that
the page stays as it was there, and the refresher tries again after a long pause.

`Copies` holds our copy of each page. `_before` holds the copies of the pages that are being fetched again; they are read
when the visit begins. `ForbiddenPages` holds the pages that robots.txt forbids now, until it allows them again.
"""

import math
import sqlite3
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trapline.crawler.discovery.sites import Site
from trapline.crawler.discovery.url_store import MOST_AT_ONCE, reader
from trapline.crawler.engine.records import NOT_KNOWN, Fetched, KeptCopy
from trapline.crawler.store.outbox import Outbox
from trapline.crawler.visits.judge import FetchVerdict
from trapline.fetch import failure
from trapline.fetch.http.headers import Validators, conditional, modified_at, validators_of
from trapline.fetch.http.response import Response
from trapline.frontier import FETCHED, REFUSED, Visit
from trapline.refresh.live.agenda import Agenda
from trapline.refresh.live.refresher import Refresher

if TYPE_CHECKING:
    from trapline.fetch.robots.parser import Robots

# ---- Our copies of pages, as far as the next request needs them: the newest in memory, the others in crawl.db.
#
# A page is requested again on the condition that it has changed, and the answer is compared with our copy. `Copies` knows nothing of
# bodies, of changes over time, or of the writer of the database. Like crawler/discovery/url_store.py, it reads the database and holds no
# transaction between two calls.
#
# The crawl loop adds every fetched page, and the pages that come from another partition. `committed` removes copies when the store has
# made their batch durable. A copy that is not durable stays in memory, because it can be read nowhere else.


class Copy(NamedTuple):
    fingerprint: bytes
    validators: Validators


class Compared(NamedTuple):
    changed: int  # 0, 1, or NOT_KNOWN
    copy: Copy | None  # our copy from now on; None: as before


def compared(before: Copy | None, verdict: FetchVerdict, headers: dict[bytes, bytes]) -> Compared:
    """Compare an answer with our copy of its page."""
    if verdict.unchanged and before is not None:
        return Compared(0, Copy(before.fingerprint, before.validators.renewed(headers)))
    if not verdict.fingerprint:
        return Compared(NOT_KNOWN, None)
    changed = NOT_KNOWN if before is None else int(verdict.fingerprint != before.fingerprint)
    return Compared(changed, Copy(verdict.fingerprint, validators_of(headers)))


class Copies:
    """Our copies of pages. Without a database all copies stay in memory."""

    def __init__(self, database: Path | None, recent: int = 16_384) -> None:
        self._database, self._recent = database, recent
        self._connection: sqlite3.Connection | None = None
        self._newest: dict[int, tuple[int, Copy]] = {}  # by page: batch and copy, in the order in which they were added
        self._adopted: dict[int, tuple[int, KeptCopy]] = {}  # by page: batch and copy, until the batch is durable

    def put(self, page: int, copy: Copy, batch: int) -> None:
        """Set our copy of a page. `batch`: the number of the batch that makes it durable; it never decreases."""
        self._newest.pop(page, None)
        self._newest[page] = batch, copy

    def adopt(self, page: int, copy: KeptCopy, batch: int) -> None:
        self.put(page, Copy(copy.fingerprint, Validators(copy.etag, copy.modified)), batch)
        self._adopted[page] = batch, copy

    def committed(self, batch: int) -> None:
        """Note that this batch, and all before it, can be read from the database."""
        if self._adopted:
            self._adopted = {page: adopted for page, adopted in self._adopted.items() if adopted[0] > batch}
        surplus = len(self._newest) - self._recent
        if self._database is None or surplus <= self._recent // 4:  # many at a time
            return
        for page in list(self._newest)[:surplus]:
            if self._newest[page][0] > batch:
                break
            del self._newest[page]

    def of(self, pages: Sequence[int]) -> list[Copy | None]:
        """Return our copy of each page. None: there is none that could make a request conditional."""
        newest = self._newest
        in_database = [page for page in pages if page not in newest]
        read = self._read(in_database) if in_database else {}
        return [newest[page][1] if page in newest else read.get(page) for page in pages]

    def rows(self, pages: Sequence[int]) -> dict[int, KeptCopy]:
        """Return the row of each page as the database has it, or will have it. The row of a page that was just fetched may
        not be in the database yet; then the earlier one is returned."""
        found = {page: KeptCopy(*row) for page, *row in self._select(", ".join(KeptCopy._fields), pages)}
        return found | {page: self._adopted[page][1] for page in pages if page in self._adopted}

    def _read(self, pages: list[int]) -> dict[int, Copy]:
        rows = self._select("fingerprint, etag, modified", pages)
        return {page: Copy(print_, Validators(etag, modified)) for page, print_, etag, modified in rows}

    def _select(self, columns: str, pages: Sequence[int]) -> Iterator[Any]:
        if self._database is None:
            return
        if self._connection is None:
            self._connection = reader(self._database)
        for start in range(0, len(pages), MOST_AT_ONCE):
            ids = pages[start : start + MOST_AT_ONCE]
            marks = ", ".join("?" * len(ids))
            yield from self._connection.execute(f"select page, {columns} from copy where page in ({marks})", ids)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


# ---- Fetched pages that robots.txt forbids now: they are fetched again as soon as the site's robots.txt allows them.
#
# `ForbiddenPages` does not fetch robots.txt: it checks the one in force whenever a visit to the site has ended. Each page is also
# tried again after a long pause (`Refresher.gone`), so that a site with nothing but forbidden pages is visited at some time.
#
# `ConditionalRefetch` adds pages, and a resume adds those of crawl.db. `look` removes them. Invariant: a page is here at
# most once, under its site.


_MOST_PAGES = 10_000  # per site; further pages are tried again only after their pause


class ForbiddenPages:
    def __init__(
        self,
        refresher: Refresher,
        urls: Callable[[list[int]], list[str]],
        pages: Iterable[tuple[int, int]] = (),
    ) -> None:
        """`pages`: the pages forbidden so far, each with its site."""
        self._refresher, self._urls = refresher, urls
        self._pages: dict[int, set[int]] = {}  # by site
        self._checked: dict[int, Robots] = {}  # by site: the robots.txt that the pages were last checked against
        for page, site in pages:
            self.add(page, site)

    def add(self, page: int, site: int) -> None:
        pages = self._pages.setdefault(site, set())
        if len(pages) < _MOST_PAGES:
            pages.add(page)

    def look(self, site: Site, now: float) -> None:
        """Recall the pages that the site's robots.txt allows now."""
        robots = site.robots
        if site.id not in self._pages or robots is None or robots is self._checked.get(site.id):
            return
        self._checked[site.id] = robots
        pages = sorted(self._pages.pop(site.id))
        for page, url in zip(pages, self._urls(pages), strict=True):
            if not robots.allows(url[len(site.origin) :]):
                self.add(page, site.id)
            elif page in self._refresher:
                self._refresher.recalled(page, now)


# ---- Conditional refetches.


class ConditionalRefetch:
    def __init__(
        self,
        agenda: Agenda,
        copies: Copies,
        outbox: Outbox,
        forbidden: ForbiddenPages,
        whole: Container[int] = (),
        ahead_s: Callable[[float], float] = lambda now: 0.0,
    ) -> None:
        """`whole`: pages to request without a condition. `ahead_s`: returns how far the crawl's time is ahead of the servers'."""
        self.agenda, self.copies, self._outbox = agenda, copies, outbox
        self._forbidden, self._whole, self._ahead_s = forbidden, whole, ahead_s
        self._before: dict[int, Copy | None] = {}  # by page

    def conditions(self, visit: Visit) -> list[bytes]:
        """Return the headers that make the request of each page conditional. []: the pages are new."""
        if not self.is_refetch(visit.pages[0]):
            return []
        copies = self.copies.of(visit.pages)
        self._before.update(zip(visit.pages, copies, strict=True))
        return [
            b"" if copy is None or page in self._whole else conditional(copy.validators)
            for page, copy in zip(visit.pages, copies, strict=True)
        ]

    def is_refetch(self, page: int) -> bool:
        return page in self.agenda.under_way

    def stands(self, record: Fetched) -> bool:
        """Return whether the record is a refusal of a page that we have. Then our copy stays."""
        return record.result == REFUSED and self.is_refetch(record.page)

    def compared(self, record: Fetched, verdict: FetchVerdict, response: Response) -> Fetched:
        """Return the record of an answer, completed by the comparison with our copy."""
        if record.result != FETCHED:
            return record
        changed, copy = compared(self._before.get(record.page), verdict, response.headers)
        if copy is None:
            return record._replace(changed=changed)
        etag, modified = copy.validators
        return record._replace(changed=changed, fingerprint=copy.fingerprint, etag=etag, modified=modified)

    def came(self, record: Fetched, now: float, page_quality: float) -> None:
        """Report the result of a page to the agenda. The frontier knows it already, unless our copy `stands`. `page_quality`:
        by the crawl's own measure."""
        if record.fingerprint:
            copy = Copy(record.fingerprint, Validators(record.etag, record.modified))
            self.copies.put(record.page, copy, self._outbox.number + 1)
        self._before.pop(record.page, None)
        if self.stands(record):
            if record.error == failure.ROBOTS:
                self._forbidden.add(record.page, record.site)
            self.agenda.gone(record.page, now)
            return
        changed = None if record.changed == NOT_KNOWN else record.changed == 1
        age_s = self._age_s(Validators(record.etag, record.modified), now)
        self.agenda.came(record.page, record.site, record.result, now, changed, page_quality, age_s)

    def adopt(self, page: int, site: int, copy: KeptCopy) -> None:
        """Take over the copy of a page that another partition fetched and that is ours from now on."""
        self.copies.adopt(page, copy, self._outbox.number + 1)
        self._outbox.copies.append((page, copy))
        if copy.refused == failure.ROBOTS:
            self._forbidden.add(page, site)

    def _age_s(self, validators: Validators, now: float) -> float:
        """Return the seconds since the page's last change, by its server's word and clock. Infinity: the server does not say."""
        servers_now = now - self._ahead_s(now)
        modified = modified_at(validators, servers_now)
        return math.inf if modified is None else servers_now - modified

    def over(self, visit: Visit, site: Site, now: float) -> None:
        for page in visit.pages:
            self._before.pop(page, None)
        self.agenda.over(visit, now)
        self._forbidden.look(site, now)
