"""A crawl read from its database: by `status`, `explain`, `report`, by a resume, and by the loop that looks up its pages.

It never writes and holds nothing up: what can be long is read in pieces, so that no read lasts long enough to keep the
store's log from being moved into the database. It sees what is committed when it asks.
"""

import json
import math
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from trapline.crawl.records import Passed, Progress, Told
from trapline.crawl.store.folder import DATABASE, connect
from trapline.errors import ConfigError, InvariantError
from trapline.fetch import failure

HAS_LINKS = "(result = 3 and status != 304)"
"""SQL: whether a row of `fetch` says where its page leads. That it has not changed (304) does not."""
IS_UNREACHABLE = "(status = 429 or status not between 200 and 499 or (status < 300 and error != ''))"
"""SQL: whether a row of `robots` leaves open what the file says: `is_unreachable` of fetch/robots_answer.py. A redirect does not."""
_PIECE_ROWS = 4096
_PIECE_BATCHES = 64
_MOST_CHECKED_BYTES = 8 << 30


class SiteRobots(NamedTuple):
    """The latest robots.txt of a site that was asked for."""

    site: int
    address: str  # empty: it lay on another site, and came by way of that
    started: float
    total_s: float
    status: int
    error: str
    body: bytes


class Seen(NamedTuple):
    """One time that a page was had."""

    started: float
    changed: int | None  # 0, 1; None: not known
    status: int


class Reading:
    def __init__(self, folder: Path, connection: sqlite3.Connection | None = None) -> None:
        """`connection`: one that is open already; in a transaction, all that is read is of one moment."""
        self.folder = folder
        self.connection: sqlite3.Connection = connection or connect(folder)

    def check(self) -> None:
        """`ConfigError` if the database is damaged. It reads all of it, at a gigabyte or so a second; a very large one is not."""
        if (self.folder / DATABASE).stat().st_size > _MOST_CHECKED_BYTES:
            return
        try:
            (found,) = self.connection.execute("pragma quick_check(1)").fetchone()
        except sqlite3.DatabaseError as error:
            found = str(error)
        if found != "ok":
            self.close()
            raise ConfigError(
                f"{self.folder / DATABASE}: it is damaged ({found.splitlines()[-1]}); crawl anew into another folder"
            )

    def meta(self) -> dict[str, str]:
        return dict(self.connection.execute("select key, value from meta"))

    def options(self) -> dict[str, Any]:
        """What the crawl was started with."""
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
        """The frontier's log, by batches. `ConfigError` if one of them is missing."""
        return self._log("calls", after)

    def refresh_log(self, after: int = 0) -> Iterator[tuple[int, bytes]]:
        """The refresher's log, in the same way."""
        return self._log("refresh", after)

    def _log(self, column: str, after: int) -> Iterator[tuple[int, bytes]]:
        sql = f"select batch, {column} from journal where batch > ? order by batch"
        for expected, (batch, calls) in enumerate(self._pieces(sql, after, _PIECE_BATCHES), after + 1):
            if batch != expected:
                raise ConfigError(
                    f"{self.folder}: the log of batch {expected} is missing, and no snapshot reaches beyond it; "
                    "restore the folder from a copy, or crawl anew into another"
                )
            yield batch, calls

    def heard(self) -> tuple[int, int]:
        """The last signal that the crawl has taken from its inboxes, 0: none; and the last that it read itself, which count downwards."""
        last, own = self.connection.execute("select coalesce(max(id), 0), coalesce(min(id), 0) from signal").fetchone()
        return max(last, 0), min(own, 0)

    def inbox(self) -> tuple[str, int]:
        """Which one the crawl hears, "": none yet; and the last signal that it had taken before that one was there."""
        identity, before = json.loads(self.meta().get("inbox", '["", 0]'))
        return identity, before

    def noted(self, kind: str, outcome: str, after: int) -> Iterator[tuple[int, int]]:
        """Signals of which this became, with ids above `after`, each with its page."""
        of_these = f"kind = '{kind}' and outcome = '{outcome}'"
        return self._pieces(f"select id, page from signal where id > ? and {of_these} order by id", after)

    def told(self) -> Iterator[Told]:
        """The pages that sitemaps and feeds list."""
        rows = self._pieces("select page, by, dated from told where page > ? order by page", -1)
        return (Told(page, by, math.inf if dated is None else dated) for page, by, dated in rows)

    def whole(self) -> list[int]:
        """Pages to be had whole the next time, changed or not."""
        return json.loads(self.meta().get("whole", "[]"))

    def forbidden(self) -> Iterator[tuple[int, int]]:
        """Pages that we have and robots.txt has come to forbid, each with its site."""
        sql = (
            "select copy.page, page.site from copy join page on page.id = copy.page"
            f" where refused = '{failure.ROBOTS}' and copy.page > ? order by copy.page"
        )
        return self._pieces(sql, -1)

    def history(self, page: int) -> list[Seen]:
        """Every time that a page was had, the first time first."""
        sql = "select started, changed, status from fetch where page = ? and result = 3 order by seq"
        return [Seen(*row) for row in self.connection.execute(sql, (page,))]

    def links(self) -> Iterator[tuple[int, bytes]]:
        """Every page that was fetched, and where it leads; of one that was fetched again, each time that it came whole."""
        sql = f"select seq, page, links from fetch where seq > ? and {HAS_LINKS} order by seq"
        return ((page, links) for _, page, links in self._pieces(sql, -1))

    def robots(self) -> Iterator[SiteRobots]:
        sql = (
            "select site, address, started, total_s, status, error, body from robots"
            " where seq in (select max(seq) from robots group by site) and site > ? order by site"
        )
        return (SiteRobots(*row) for row in self._pieces(sql, -1, _PIECE_BATCHES))

    def robots_unreachable(self, after: float) -> dict[int, float]:
        """Sites whose rules were left open by all answers since a moment, the last of them given after `after`: that moment. A redirect
        ends the time: its row does not say what came of it, and a site must not be opened by mistake."""
        sql = (
            f"with known as (select site, max(seq) as last from robots where not {IS_UNREACHABLE} group by site)"
            " select site, min(started) from robots left join known using (site)"
            f" where {IS_UNREACHABLE} and seq > coalesce(last, -1) group by site having max(started) > ?"
        )
        return dict(self.connection.execute(sql, (after,)))

    def parcels(self, receiver: int, after: int, most: int) -> list[tuple[int, bytes]]:
        """Those that the receiver is not known to have, in order."""
        sql = "select number, data from parcel where receiver = ? and number > ? order by number limit ?"
        return self.connection.execute(sql, (receiver, after, most)).fetchall()

    def partitions(self) -> dict[int, Passed]:
        """What passed between us and each other partition."""
        rows = self.connection.execute("select id, made, received, ended from partition")
        return {id: Passed(made, received, bool(ended)) for id, made, received, ended in rows}

    def assigned(self) -> dict[str, str]:
        """Hosts whose address had to be asked for, each with the one that its owner goes by."""
        return dict(self.connection.execute("select host, address from assigned"))

    def size(self) -> int:
        """The number of partitions for which this one has last handed over what was not its own any more; 0: it never had to."""
        return int(self.meta().get("size", 0))

    def most_partitions(self) -> int:
        """As many as it has ever known that the crawl has."""
        (known,) = self.connection.execute("select coalesce(max(id) + 1, 0) from partition").fetchone()
        return max(int(known), self.size())

    def progress(self) -> Progress | None:
        """The latest."""
        row = self.connection.execute("select * from progress order by rowid desc limit 1").fetchone()
        return None if row is None else Progress(*row)

    def given_up(self) -> dict[str, int]:
        """Sites that were given up, by kind."""
        return dict(self.connection.execute("select kind, count(*) from given_up group by kind"))

    def left_out(self) -> dict[str, int]:
        """Links that were not to be crawled, by reason."""
        return dict(self.connection.execute("select reason, links from left_out"))

    def url(self, page: int) -> str:
        row = self.connection.execute("select url from page where id = ?", (page,)).fetchone()
        if row is None:
            raise InvariantError(f"page {page} is not in the database")
        return row[0]

    def close(self) -> None:
        self.connection.close()

    def _pieces(self, sql: str, after: int, rows: int = _PIECE_ROWS) -> Iterator[Any]:
        """All rows, in order of their first column, which is their number."""
        while piece := self.connection.execute(f"{sql} limit {rows}", (after,)).fetchall():
            yield from piece
            after = piece[-1][0]
