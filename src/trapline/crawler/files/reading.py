"""Read access to the database of a crawl, row by row: what a resume and the loop need, and those who read as they do.

This module never writes, and does not delay the store: long results are read in pieces, so that no read lasts long enough
to keep SQLite from moving the write-ahead log into the database. Each read returns what is committed at that moment; for a
whole database as of one moment, see crawler/inspect/database_reader.py.
"""

import json
import math
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from trapline.crawler.engine.records import (
    CrawlProgress,
    ExchangeCounts,
    ListedPage,
    PageRequisite,
    PendingLink,
    PublishedList,
)
from trapline.crawler.files.layout import DATABASE, connect
from trapline.errors import ConfigError, InvariantError
from trapline.fetch import failure

HAS_LINKS = "(result = 3 and status != 304)"
"""SQL: whether a row of `fetch` has the links of its page. A 304 answer (not modified) has none."""
IS_UNREACHABLE = "(status in (407, 429) or status not between 200 and 499 or (status < 300 and error != ''))"
"""SQL: whether a row of `robots` says that the file was unreachable (RFC 9309), as `is_unreachable` of fetch/robots/answer.py does.
A redirect is not unreachable."""
_PIECE_ROWS = 4096
_PIECE_BATCHES = 64
_MOST_CHECKED_BYTES = 8 << 30


class SiteRobots(NamedTuple):
    """The robots.txt of a site that was requested last."""

    site: int
    address: str  # empty: the file is on another site, and was fetched from there
    started: float
    total_s: float
    status: int
    error: str
    body: bytes


class PageVersion(NamedTuple):
    """One successful fetch of a page."""

    started: float
    changed: int | None  # 0 or 1; None: not known
    status: int


class Reading:
    def __init__(self, folder: Path, connection: sqlite3.Connection | None = None) -> None:
        """`connection`: an open connection to use. If it is in a transaction, all results are of the same moment."""
        self.folder = folder
        self.connection: sqlite3.Connection = connection or connect(folder)

    def check(self) -> None:
        """Raise `ConfigError` if the database is damaged.

        This reads the whole file, about a gigabyte per second. A very large database is not checked.
        """
        if (self.folder / DATABASE).stat().st_size > _MOST_CHECKED_BYTES:
            return
        try:
            (found,) = self.connection.execute("pragma quick_check(1)").fetchone()
        except sqlite3.DatabaseError as error:
            found = str(error)
        if found != "ok":
            self.close()
            raise ConfigError(
                f"{self.folder / DATABASE}: is damaged ({found.splitlines()[-1]}); crawl anew into another folder"
            )

    def meta(self) -> dict[str, str]:
        return dict(self.connection.execute("select key, value from meta"))

    def options(self) -> dict[str, Any]:
        """Return the options of the crawl."""
        return json.loads(self.meta()["options"])

    def last_batch(self) -> int:
        return self.connection.execute("select coalesce(max(batch), 0) from journal").fetchone()[0]

    def sites(self, after: int = -1) -> Iterator[tuple[int, str]]:
        return self._pieces("select id, origin from site where id > ? order by id", after)

    def addresses(self, after: int = -1) -> Iterator[tuple[int, str]]:
        return self._pieces("select id, address from address where id > ? order by id", after)

    def pages(self, after: int = -1) -> Iterator[tuple[int, int, str]]:
        return self._pieces("select id, site, url from page where id > ? order by id", after)

    def journal(self, after: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield the frontier's log, batch by batch. Raise `ConfigError` if a batch is missing."""
        return self._log("calls", after)

    def refresh_log(self, after: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield the refresher's log in the same way."""
        return self._log("refresh", after)

    def _log(self, column: str, after: int) -> Iterator[tuple[int, bytes]]:
        sql = f"select batch, {column} from journal where batch > ? order by batch"
        for expected, (batch, calls) in enumerate(self._pieces(sql, after, _PIECE_BATCHES), after + 1):
            if batch != expected:
                raise ConfigError(
                    f"{self.folder}: the log of batch {expected} is missing, and no snapshot is newer; "
                    "restore the folder from a copy, or crawl anew into another"
                )
            yield batch, calls

    def last_signals(self) -> tuple[int, int]:
        """Return the id of the last signal taken from an inbox, 0: none; and of the last signal that the crawl read itself.

        The ids of the latter count downwards from 0.
        """
        last, own = self.connection.execute("select coalesce(max(id), 0), coalesce(min(id), 0) from signal").fetchone()
        return max(last, 0), min(own, 0)

    def inbox(self) -> tuple[str, int]:
        """Return the identity of the inbox that the crawl reads, "": none yet; and the last signal from the inboxes before it."""
        identity, before = json.loads(self.meta().get("inbox", '["", 0]'))
        return identity, before

    def noted(self, kind: str, outcome: str, after: int) -> Iterator[tuple[int, int]]:
        """Yield id and page of each signal of this kind and outcome with an id above `after`."""
        condition = f"kind = '{kind}' and outcome = '{outcome}'"
        return self._pieces(f"select id, page from signal where id > ? and {condition} order by id", after)

    def listed_pages(self) -> Iterator[ListedPage]:
        """Yield the pages that sitemaps and feeds list."""
        rows = self._pieces("select page, by, dated from listed_page where page > ? order by page", -1)
        return (ListedPage(page, by, math.inf if dated is None else dated) for page, by, dated in rows)

    def requisites(self) -> Iterator[PageRequisite]:
        """Yield the requisites of pages."""
        rows = self._pieces("select * from requisite where page > ? order by page", -1)
        return (PageRequisite(*row) for row in rows)

    def published_lists(self) -> Iterator[PublishedList]:
        """Yield the sitemaps and feeds that the crawl knows."""
        rows = self._pieces("select * from published_list where page > ? order by page", -1)
        return (PublishedList(*row)._replace(rejected=json.loads(row[-1])) for row in rows)

    def whole(self) -> list[int]:
        """Return the pages to fetch without conditions the next time, changed or not."""
        return json.loads(self.meta().get("whole", "[]"))

    def forbidden(self) -> Iterator[tuple[int, int]]:
        """Yield each page that we have a copy of and that robots.txt forbids now, with its site."""
        sql = (
            "select copy.page, page.site from copy join page on page.id = copy.page"
            f" where refused = '{failure.ROBOTS}' and copy.page > ? order by copy.page"
        )
        return self._pieces(sql, -1)

    def history(self, page: int) -> list[PageVersion]:
        """Return all successful fetches of a page, the oldest first."""
        sql = "select started, changed, status from fetch where page = ? and result = 3 order by seq"
        return [PageVersion(*row) for row in self.connection.execute(sql, (page,))]

    def links(self) -> Iterator[tuple[int, bytes]]:
        """Yield each fetched page with its links; a refetched page once for each fetch that returned a body."""
        sql = f"select seq, page, links from fetch where seq > ? and {HAS_LINKS} order by seq"
        return ((page, links) for _, page, links in self._pieces(sql, -1))

    def fetches_with_links(self) -> Iterator[tuple[int, int, int, bytes]]:
        """Yield number, page, status and links of each fetch that returned a body or a redirect."""
        return self._pieces(
            f"select seq, page, status, links from fetch where seq > ? and {HAS_LINKS} order by seq", -1
        )

    def last_fetch(self) -> int:
        return self.connection.execute("select coalesce(max(seq), 0) from fetch").fetchone()[0]

    def robots(self) -> Iterator[SiteRobots]:
        sql = (
            "select site, address, started, total_s, status, error, body from robots"
            " where seq in (select max(seq) from robots group by site) and site > ? order by site"
        )
        return (SiteRobots(*row) for row in self._pieces(sql, -1, _PIECE_BATCHES))

    def robots_unreachable(self, after: float) -> dict[int, float]:
        """Return the sites whose robots.txt has been unreachable in all fetches since some moment, each with that moment.

        Only sites whose last such fetch began after `after` are included. A redirect ends the time of being
        unreachable: its row does not have the final result, and a site must not be treated as allowed by mistake.
        """
        sql = (
            f"with known as (select site, max(seq) as last from robots where not {IS_UNREACHABLE} group by site)"
            " select site, min(started) from robots left join known using (site)"
            f" where {IS_UNREACHABLE} and seq > coalesce(last, -1) group by site having max(started) > ?"
        )
        return dict(self.connection.execute(sql, (after,)))

    def message_batches(self, receiver: int, after: int, most: int) -> list[tuple[int, bytes]]:
        """Return at most `most` message batches after number `after` that the receiver has not acknowledged, in order."""
        sql = "select number, data from message_batch where receiver = ? and number > ? order by number limit ?"
        return self.connection.execute(sql, (receiver, after, most)).fetchall()

    def partitions(self) -> dict[int, ExchangeCounts]:
        """Return the numbers of message batches exchanged with each other partition."""
        rows = self.connection.execute("select id, made, received, ended from partition")
        return {id: ExchangeCounts(made, received, bool(ended)) for id, made, received, ended in rows}

    def pending_links(self, most: int | None = None) -> list[PendingLink]:
        """Return the links to pages of other partitions that wait, in the order in which their URLs were found: all, or the
        first `most`."""
        sql = "select url, links, depth, share from pending_link order by id limit ?"
        rows = self.connection.execute(sql, (-1 if most is None else most,))
        return [PendingLink(*row) for row in rows]

    def unplaced_urls(self) -> dict[int, str]:
        """Return the URLs that other partitions sent and that are no pages of ours, by fingerprint."""
        return dict(self.connection.execute("select fingerprint, url from unplaced_url"))

    def assigned(self) -> dict[str, str]:
        """Return each host whose address had to be looked up to find its owner, with that address."""
        return dict(self.connection.execute("select host, address from assigned"))

    def size(self) -> int:
        """Return the number of partitions in the crawl at the last hand-over from this one; 0: it never handed over."""
        return int(self.meta().get("size", 0))

    def most_partitions(self) -> int:
        """Return the largest number of partitions that this one has known."""
        (known,) = self.connection.execute("select coalesce(max(id) + 1, 0) from partition").fetchone()
        return max(int(known), self.size())

    def progress(self) -> CrawlProgress | None:
        """Return the latest progress."""
        row = self.connection.execute("select * from progress order by rowid desc limit 1").fetchone()
        return None if row is None else CrawlProgress(*row)

    def abandoned_sites(self) -> dict[str, int]:
        """Return the number of abandoned sites by kind."""
        return dict(self.connection.execute("select kind, count(*) from abandoned_site group by kind"))

    def why_abandoned(self, site: int) -> str:
        """Return the kind of an abandoned site; "": the site is not abandoned."""
        row = self.connection.execute("select kind from abandoned_site where site = ?", (site,)).fetchone()
        return "" if row is None else row[0]

    def sites_abandoned_as(self, kind: str) -> list[int]:
        return [site for (site,) in self.connection.execute("select site from abandoned_site where kind = ?", (kind,))]

    def rejected_links(self) -> dict[str, int]:
        """Return the number of rejected links by reason."""
        return dict(self.connection.execute("select reason, links from rejected_link"))

    def url(self, page: int) -> str:
        row = self.connection.execute("select url from page where id = ?", (page,)).fetchone()
        if row is None:
            raise InvariantError(f"page {page} is not in the database")
        return row[0]

    def close(self) -> None:
        self.connection.close()

    def _pieces(self, sql: str, after: int, rows: int = _PIECE_ROWS) -> Iterator[Any]:
        """Yield all rows in order of their first column, an increasing number, by queries of `rows` rows each."""
        while piece := self.connection.execute(f"{sql} limit {rows}", (after,)).fetchall():
            yield from piece
            after = piece[-1][0]
