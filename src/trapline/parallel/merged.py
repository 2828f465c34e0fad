"""One database of all partitions: DIR/crawl.db, with the tables of any crawl, so that whatever reads a crawl reads this one.

It is made when the crawl ends, and by whoever looks in while it runs or after it was killed, if partitions have gone on since; whole
or not at all. Sites, pages, visits and archives are numbered anew, partition after partition (numbering.py), and links between
partitions are links like others. What several partitions know, because it moved when the crawl grew, stands here once. Logs and
snapshots stay with the partitions: the frontier of each is its own.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

import numpy as np

from trapline.alone import alone
from trapline.crawl.folder import meta, opened
from trapline.crawl.records import Progress
from trapline.crawl.store.database import INDEXES, SEED
from trapline.crawl.store.folder import DATABASE, FORMAT, connect, new_database, read_only
from trapline.crawl.store.reading import HAS_LINKS
from trapline.errors import ConfigError
from trapline.parallel import numbering
from trapline.parallel.answer import summed
from trapline.parallel.manifest import Manifest, is_parallel, read

# What the numbers of a partition's visits and archives begin with.
_BASE = """select max((select ifnull(max(visit), -1) + 1 from fetch), (select ifnull(max(visit), -1) + 1 from robots)),
(select ifnull(max(id), -1) + 1 from warc)"""
_LOCK = f"{DATABASE}.lock"
_REQUEST = "address, started, first_byte_s, total_s"
_COPY = (
    "insert into site select of_site(id), origin from part.site where of_site(id) >= :site",
    "insert into address select of_address(id), address from part.address where of_address(id) >= :address",
    "insert into page select of_page(id), of_site(site), url from part.page where of_page(id) >= :page",
    "replace into given_up select of_site(site), at, kind, why from part.given_up",
    "insert into left_out select reason, links from part.left_out where true"
    " on conflict (reason) do update set links = links + excluded.links",
    f"insert into fetch select null, of_page(page), visit + :visit, {_REQUEST}, result, status, error, bytes, mime, digest, marks,"
    " found, truncated, file + :file, offset, length, of_links(links), changed, fingerprint from part.fetch order by seq",
    # What moved, moved to a partition that came later: the last row is of the owner.
    "replace into copy select of_page(page), fetched, checked, last_change, fingerprint, digest, etag, modified, refused"
    " from part.copy",
    f"insert into robots select null, of_site(site), visit + :visit, {_REQUEST}, status, error, bytes, body, file + :file, offset,"
    " length from part.robots order by seq",
    "insert into signal select null, of_page(page), at, channel, kind, outcome from part.signal",
    "insert into signal_total select channel, kind, outcome, signals from part.signal_total where true"
    " on conflict (channel, kind, outcome) do update set signals = signals + excluded.signals",
    "replace into told select of_page(page), of_page(by), dated from part.told",
    "insert into elsewhere select of_page(page), visit + :visit, url from part.elsewhere",
    "insert into warc select id + :file, :name || '/warc/' || name, bytes from part.warc",
    "update cdxj set bytes = bytes + (select bytes from part.cdxj)",
    "insert into temp.stood select :name, * from part.progress order by rowid",
)
_STOOD = "create temp table stood (part, at, seconds, pages, errors, bytes, known, waiting, sites, active, quality)"
_AS_BEFORE = "exists (select 1 from elsewhere where elsewhere.page = {0}.page and elsewhere.visit = {0}.visit and elsewhere.url = '')"
# Of which fetch the links to pages of others are those of a fetch too: its own, or those of the last one that has any.
_NEWS = f"""create temp table news as select seq, page, case when {_AS_BEFORE.format("fetch")} then
(select visit from fetch as before where before.page = fetch.page and before.seq < fetch.seq and {HAS_LINKS}
and not {_AS_BEFORE.format("before")} order by seq desc limit 1) else visit end as visit from fetch where {HAS_LINKS}"""
_BETWEEN = """create temp table crossing as select news.seq, page.id from elsewhere join page on page.url = elsewhere.url
join news on news.page = elsewhere.page and news.visit = elsewhere.visit order by news.seq, elsewhere.rowid"""


def brought_up(folder: Path) -> Path:
    """The folder, and if its crawl is in parts, with a database of all of them as they stand."""
    if is_parallel(folder):
        manifest = read(folder)
        if not is_current(manifest):
            merge(manifest)
    return folder


def merge(manifest: Manifest) -> None:
    parts = begun(manifest)
    if not parts:
        raise ConfigError(f"{manifest.folder}: the crawl has not begun; go on with --resume {manifest.folder}")
    lock = alone(manifest.folder / _LOCK, lambda: None)  # a report may be asked for just when the crawl ends
    with lock, new_database(manifest.folder) as database:
        database.execute(_STOOD)
        state = _add_all(database, parts, len(manifest.sizes) > 1)
        for statement in INDEXES.values():
            database.execute(statement)
        _join(database)
        database.executemany("insert into progress values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _progress(database))
        database.executemany("insert into meta values (?, ?)", _meta(manifest, parts, state).items())


def remove(folder: Path) -> None:
    """Whoever asks for the database next makes it anew."""
    with alone(folder / _LOCK, lambda: None):
        for name in (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm"):
            (folder / name).unlink(missing_ok=True)


def parts_of(folder: Path) -> list[Path]:
    """The partitions of a crawl in parts, those that have begun; none: it is in one piece."""
    return begun(read(folder)) if is_parallel(folder) else []


def begun(manifest: Manifest) -> list[Path]:
    """The partitions that have a database."""
    return [part for part in manifest.parts if (part / DATABASE).exists()]


def batches(folder: Path) -> dict[str, int]:
    """The last batch of each partition that is in the database of all; none if there is no such database."""
    if not (folder / DATABASE).exists():
        return {}
    with closing(connect(folder)) as database:
        found: dict[str, int] = json.loads(meta(database).get("merged", "{}"))
        return found


def is_current(manifest: Manifest) -> bool:
    """Return whether the database of all partitions has all of their batches."""
    if not (manifest.folder / DATABASE).exists():
        return False
    with closing(opened(manifest.folder)) as database:
        kept = meta(database)
    now = {part.name: _last_batch(part) for part in begun(manifest)}
    return kept["merged"] == json.dumps(now) and kept.get("stopped_by", "") == manifest.stopped_by


def _last_batch(part: Path) -> int:
    with closing(connect(part)) as database:
        found: int = database.execute("select coalesce(max(batch), 0) from journal").fetchone()[0]
        return found


class NewSites:
    """The sites that the partitions know, those that are new since the last time: numbered as they are met, for whoever counts so."""

    def __init__(self, folder: Path) -> None:
        self._manifest = read(folder)
        self._last: dict[Path, int] = {}
        self._met = 0

    def __call__(self, after: int) -> list[tuple[int, str]]:
        found = [origin for part in begun(self._manifest) for origin in self._of(part)]
        self._met += len(found)
        return list(enumerate(found, self._met - len(found)))

    def _of(self, part: Path) -> list[str]:
        sql = "select id, origin from site where id > ? order by id"
        with closing(connect(part)) as database:
            rows = database.execute(sql, (self._last.get(part, -1),)).fetchall()
        if rows:
            self._last[part] = rows[-1][0]
        return [origin for _, origin in rows]


# ---- what is in it


def _add_all(database: sqlite3.Connection, parts: list[Path], has_grown: bool) -> dict[str, int]:
    """The last batch of each."""
    numbering.prepare(database, has_grown)
    state = {part.name: _add(database, part, has_grown) for part in parts}
    numbering.finish(database, has_grown)
    return state


def _add(database: sqlite3.Connection, part: Path, has_grown: bool) -> int:
    """All of a partition, as it is at one moment; its last batch."""
    visit, file = database.execute(_BASE).fetchone()
    with _attached(database, part):
        (batch,) = database.execute("select coalesce(max(batch), 0) from part.journal").fetchone()
        first = numbering.number(database, has_grown)
        for statement in _COPY:
            database.execute(statement, {**first, "visit": visit, "file": file, "name": part.name})
    return int(batch)


@contextmanager
def _attached(database: sqlite3.Connection, part: Path) -> Iterator[None]:
    """One after the other: SQLite takes ten databases at once at most. None can be taken inside a transaction."""
    connect(part).close()  # says what is wrong with it, if anything is
    database.execute("commit")
    database.execute("attach ? as part", (read_only(part),))
    database.execute("begin")
    yield
    database.execute("commit")
    database.execute("detach part")
    database.execute("begin")


def _join(database: sqlite3.Connection) -> None:
    """Links between partitions become links of the fetches that found them. What the owner never took is not known."""
    database.execute("create index leads_of on elsewhere (page, visit)")
    database.execute(_NEWS)
    database.execute("create index temp.news_of on news (page, visit)")
    database.execute(_BETWEEN)  # apart from what changes while it is read
    for seq, rows in groupby(database.execute("select * from crossing order by rowid"), lambda row: row[0]):
        (links,) = database.execute("select links from fetch where seq = ?", (seq,)).fetchone()
        targets = np.array([page for _, page in rows], "<i4").tobytes()
        more = (links + targets, len(targets) // 4, seq)
        database.execute("update fetch set links = ?, found = found + ? where seq = ?", more)
    database.execute("delete from elsewhere")
    database.execute("drop index leads_of")


def _progress(database: sqlite3.Connection) -> Iterator[Progress]:
    """How all stood each time that one of them said how it stood."""
    latest: dict[str, Progress] = {}
    seconds = 0.0
    for part, *row in database.execute("select * from stood order by at, rowid"):
        latest[part] = progress = Progress(*row)
        seconds = max(seconds, progress.seconds)
        yield summed(latest.values(), progress.at, seconds)


def _meta(manifest: Manifest, parts: list[Path], state: dict[str, int]) -> dict[str, str]:
    kept = []
    for part in parts:
        with closing(connect(part)) as database:
            kept.append(meta(database))
    created, closed = ([float(one[key]) for one in kept if key in one] for key in ("created", "closed"))
    ended = {"stopped_by": manifest.stopped_by, "closed": repr(max(closed))} if manifest.stopped_by and closed else {}
    return {
        "format": str(FORMAT),
        "created": repr(min(created)),
        "options": json.dumps(asdict(manifest.options)),
        "runs": str(manifest.runs),
        "merged": json.dumps(state),
        **{key: value for one in kept for key, value in one.items() if key.startswith(SEED)},
        **ended,
    }
