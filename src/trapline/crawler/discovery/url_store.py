"""The URL store: the text of each page's URL, the newest in memory and the others in crawl.db.

It is used in step 4 in docs/architecture.md: the frontier names pages by number, and requests need URLs. The URL store
knows nothing of sites, fingerprints, or the writer of the database. It reads the database through a read-only connection
that holds no transaction between two calls: a lasting reader would prevent SQLite from emptying its write-ahead log.

The crawl loop adds the URL of every new page. `committed` removes URLs that the store has made durable. A URL that is not
durable stays in memory, because it can be read nowhere else.
"""

import sqlite3
from pathlib import Path

from trapline.errors import InvariantError

MOST_AT_ONCE = 500  # most ids in one SQL statement


class UrlStore:
    """URLs of pages, which must be added in the order of their ids. Without a database all of them stay in memory."""

    def __init__(self, database: Path | None, recent: int = 32_768) -> None:
        self._database, self._recent = database, recent
        self._connection: sqlite3.Connection | None = None
        self._urls: list[str] = []  # of pages _first, _first + 1, ...
        self._first = 0
        self._committed = 0

    def put(self, page: int, url: str) -> None:
        if not self._urls:
            self._first = page
        elif page != self._first + len(self._urls):
            raise InvariantError(
                f"page {page} is added after page {self._first + len(self._urls) - 1}; ids must be consecutive"
            )
        self._urls.append(url)

    def committed(self, before: int) -> None:
        """Note that pages with ids below `before` can be read from the database."""
        self._committed = max(self._committed, before)
        if self._database is not None:
            surplus = min(self._committed - self._first, len(self._urls)) - self._recent
            # Many at a time: each deletion moves the remaining URLs to the front.
            if surplus > self._recent // 4:
                del self._urls[:surplus]
                self._first += surplus

    def urls(self, pages: list[int]) -> list[str]:
        """Return the URL of each page."""
        first, kept = self._first, self._urls
        here = len(kept)
        if all(0 <= page - first < here for page in pages):
            return [kept[page - first] for page in pages]
        read = self._read([page for page in pages if not 0 <= page - first < here])
        return [kept[page - first] if 0 <= page - first < here else read[page] for page in pages]

    def _read(self, pages: list[int]) -> dict[int, str]:
        unknown = [page for page in pages if not 0 <= page < self._committed]
        if unknown or self._database is None:
            raise InvariantError(f"page {(unknown or pages)[0]} has no URL: it was never added")
        if self._connection is None:
            self._connection = reader(self._database)
        found: dict[int, str] = {}
        for start in range(0, len(pages), MOST_AT_ONCE):
            ids = pages[start : start + MOST_AT_ONCE]
            # One statement for many: measured 8 us per URL one by one, 2 us per URL with twenty in a statement.
            found.update(
                self._connection.execute(f"select id, url from page where id in ({', '.join('?' * len(ids))})", ids)
            )
        missing = set(pages) - found.keys()
        if missing:
            raise InvariantError(f"page {min(missing)} has no URL in {self._database}")
        return found

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def reader(database: Path) -> sqlite3.Connection:
    uri = f"{database.absolute().as_uri()}?mode=ro"
    return sqlite3.connect(uri, uri=True, isolation_level=None)
