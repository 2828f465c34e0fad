"""Our copies of pages, as far as the next request needs them: the newest in memory, all others in crawl.db. Step 9 of the way of a URL:
a page is asked for again, "if it is not still this one", and what comes is held against what we have.

It refuses to know bodies, changes and who writes the database. It reads it, as shelf.py does, holding no transaction between two calls.

Who fills it: the crawl loop, with every page that is had, and with those that come from another partition. Who empties it: `committed`,
when the store has made a batch durable; a copy that is not stays in memory, for it can be read nowhere else.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from trapline.crawl.judge import Verdict
from trapline.crawl.records import NOT_KNOWN, KeptCopy
from trapline.crawl.shelf import MOST_AT_ONCE, reader
from trapline.fetch.validators import Validators, validators_of


class Copy(NamedTuple):
    fingerprint: bytes
    validators: Validators


class Compared(NamedTuple):
    changed: int  # 0, 1, or NOT_KNOWN
    copy: Copy | None  # what we have from now on; None: as before


def compared(before: Copy | None, verdict: Verdict, headers: dict[bytes, bytes]) -> Compared:
    """An answer held against what we have of its page."""
    if verdict.unchanged and before is not None:
        return Compared(0, Copy(before.fingerprint, before.validators.renewed(headers)))
    if not verdict.fingerprint:
        return Compared(NOT_KNOWN, None)
    changed = NOT_KNOWN if before is None else int(verdict.fingerprint != before.fingerprint)
    return Compared(changed, Copy(verdict.fingerprint, validators_of(headers)))


class Copies:
    """Without a database all copies stay in memory."""

    def __init__(self, database: Path | None, recent: int = 16_384) -> None:
        self._database, self._recent = database, recent
        self._connection: sqlite3.Connection | None = None
        self._newest: dict[int, tuple[int, Copy]] = {}  # by page: batch and copy, in the order in which they were put
        self._adopted: dict[int, tuple[int, KeptCopy]] = {}  # by page: batch and copy, until it is durable

    def put(self, page: int, copy: Copy, batch: int) -> None:
        """What we have of a page from now on; `batch`: the number of the batch that makes it durable, never less than the last."""
        self._newest.pop(page, None)
        self._newest[page] = batch, copy

    def adopt(self, page: int, copy: KeptCopy, batch: int) -> None:
        self.put(page, Copy(copy.fingerprint, Validators(copy.etag, copy.modified)), batch)
        self._adopted[page] = batch, copy

    def committed(self, batch: int) -> None:
        """This batch, and all before it, can be read in the database now."""
        if self._adopted:
            self._adopted = {page: one for page, one in self._adopted.items() if one[0] > batch}
        surplus = len(self._newest) - self._recent
        if self._database is None or surplus <= self._recent // 4:  # not one by one
            return
        for page in list(self._newest)[:surplus]:
            if self._newest[page][0] > batch:
                break
            del self._newest[page]

    def of(self, pages: Sequence[int]) -> list[Copy | None]:
        """What we have of each page; None: nothing that a request could be made by."""
        newest = self._newest
        elsewhere = [page for page in pages if page not in newest]
        read = self._read(elsewhere) if elsewhere else {}
        return [newest[page][1] if page in newest else read.get(page) for page in pages]

    def rows(self, pages: Sequence[int]) -> dict[int, KeptCopy]:
        """All that the database has of each, or will have; of a page that was fetched since it was opened, as it was before."""
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
            some = pages[start : start + MOST_AT_ONCE]
            marks = ", ".join("?" * len(some))
            yield from self._connection.execute(f"select page, {columns} from copy where page in ({marks})", some)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
