"""The database of a crawl, read for an export: everything as of one moment, in pieces, with flat memory.

Rows of `site`, `page` and `fetch` are only appended, and a batch is committed whole. The largest numbers at one moment therefore cut all
three tables at the same commit. No transaction lasts longer than one query, so that an export of hours does not keep the store of a
running crawl from moving its write-ahead log into the database.

What needs an index is sorted into temporary tables, on disk: the indexes of `crawl.db` exist only when a crawl is closed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from trapline.crawler.engine.records import OUT_OF_BAND
from trapline.crawler.engine.row_kinds import EXTRAS
from trapline.crawler.files.archived_responses import FIRST_OF_DIGEST
from trapline.crawler.files.layout import connect
from trapline.crawler.files.reading import HAS_LINKS
from trapline.crawler.inspect.database_reader import options, scope
from trapline.parallel.folder.manifest import is_parallel
from trapline.parallel.folder.merged import brought_up
from trapline.progress import ProgressCallback, no_progress

Row = tuple[Any, ...]
_PIECE_ROWS = 4096

_LAST_FETCH = f"""create temp table last_fetch (page integer primary key, seq integer not null, body integer);
insert into last_fetch select page, max(seq), max(case when {HAS_LINKS} then seq end) from fetch
where result > 0 and seq <= {{last}} group by page"""
_LAST_BODY = f"""create temp table last_body (seq integer primary key);
insert into last_body select max(seq) from fetch where {HAS_LINKS} and seq <= {{last}} group by page"""
_LAST_REQUEST = f"""create temp table last_request (page integer primary key, seq integer not null);
insert into last_request select page, max(seq) from fetch where result = {OUT_OF_BAND} and seq <= {{last}} group by page"""
_FETCHED_REQUISITE = """create temp table fetched_requisite (url text primary key) without rowid;
insert into fetched_requisite select url from requisite join page on page.id = requisite.page where state = 'fetched'"""
_EXTRA_PAGE = f"create temp table extra_page (page integer primary key); insert into extra_page {EXTRAS}"
_TEMPORARY = {
    "last_fetch": _LAST_FETCH,
    "last_request": _LAST_REQUEST,
    "last_body": _LAST_BODY,
    "fetched_requisite": _FETCHED_REQUISITE,
    "extra_page": _EXTRA_PAGE,
    "first_of_digest": FIRST_OF_DIGEST,
}


class LastRows(NamedTuple):
    """The last row of each table that belongs to the export; -1: there is none."""

    site: int
    page: int
    fetch: int


class Unreadable:
    """Records of pages that cannot be read. Several tables may need the same one."""

    def __init__(self) -> None:
        self.pages: set[int] = set()
        self.first = ""  # says which record was the first, and what is wrong with it

    def add(self, page: int, why: str) -> None:
        self.pages.add(page)
        self.first = self.first or why


class ExportSource:
    """A crawl that is exported."""

    def __init__(self, folder: Path, progress: ProgressCallback = no_progress) -> None:
        """`progress`: is called with a row's number, the last one, and the name of the table."""
        self.folder = brought_up(folder)
        self.is_parallel = is_parallel(folder)
        self.database = connect(self.folder)
        self.progress = progress
        self.options, self.scope = options(self.database), scope(self.database)
        self.bounds = LastRows(
            *self.database.execute(
                "select ifnull((select max(id) from site), -1), ifnull((select max(id) from page), -1),"
                " ifnull((select max(seq) from fetch), -1)"
            ).fetchone()
        )
        self.unreadable = Unreadable()
        self._made: set[str] = set()

    def close(self) -> None:
        self.database.close()

    def need(self, *tables: str) -> None:
        """Make temporary tables, unless they exist. `last_fetch`: the last fetch of each page, and the last that brought its
        contents. `last_request`: the last request for each URL that is no page. `last_body`: the last fetch of each page that
        brought its contents, in order. `fetched_requisite`: the URLs that were fetched as requisites.
        `extra_page`: the sitemaps, feeds and requisites, which are no pages.
        `first_of_digest`: the first fetch of each digest that several have."""
        for table in tables:
            if table not in self._made:
                self._made.add(table)
                for statement in _TEMPORARY[table].format(last=self.bounds.fetch).split(";"):
                    self.database.execute(statement)

    def rows(self, what: str, sql: str, last: int) -> Iterator[Row]:
        """Yield all rows of a query in pieces, and report progress. The query has `?` and `?` for the numbers of the first column
        above which and up to which a piece reads, and ends with `order by` that column."""
        after = -1
        while piece := self.database.execute(f"{sql} limit {_PIECE_ROWS}", (after, last)).fetchall():
            yield from piece
            after = piece[-1][0]
            self.progress(after + 1, last + 1, what)
