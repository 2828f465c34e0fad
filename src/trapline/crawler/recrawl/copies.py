"""Our copies of pages, as far as the next request needs them: the newest in memory, the others in crawl.db.

They are used in step 9 in docs/architecture.md: a page is requested again on the condition that it has changed, and the
answer is compared with our copy. This module knows nothing of bodies, of changes over time, or of the writer of the
database. Like crawler/discovery/url_store.py, it reads the database and holds no transaction between two calls.

The crawl loop adds every fetched page, and the pages that come from another partition. `committed` removes copies when the
store has made their batch durable. A copy that is not durable stays in memory, because it can be read nowhere else.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from trapline.crawler.discovery.url_store import MOST_AT_ONCE, reader
from trapline.crawler.engine.records import NOT_KNOWN, KeptCopy
from trapline.crawler.visits.judge import FetchVerdict
from trapline.fetch.http.headers import Validators, validators_of


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
