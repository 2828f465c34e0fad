"""The merged database of all partitions: DIR/crawl.db. It has the tables of any crawl, so that all programs that read a
crawl read it too.

The database is merged when the crawl ends. A command that reads a running or killed crawl merges it again if partitions
have new batches. It is replaced as a whole or not at all. Sites, pages, visits and archives are renumbered, partition
after partition, and links between partitions become ordinary links. Rows that several partitions have, because a site
moved when the crawl grew, appear once. Logs and snapshots stay with the partitions: each partition has its own
frontier.
"""

import json
import sqlite3
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trapline.compiled.file_lock import alone
from trapline.crawler.discovery.seen import SeenTable
from trapline.crawler.engine.records import BLOCKED, CrawlProgress
from trapline.crawler.engine.row_kinds import IS_FETCHED
from trapline.crawler.files.layout import DATABASE, FORMAT, LATER_TABLES, connect, new_database, read_only
from trapline.crawler.files.reading import HAS_LINKS
from trapline.crawler.files.run_options import RUN, merged_actions
from trapline.crawler.inspect.database_reader import meta, open_database
from trapline.crawler.store.database import INDEXES, PROCESSOR, SEED
from trapline.errors import ConfigError
from trapline.parallel.folder.link_policy import shares_hosts
from trapline.parallel.folder.manifest import Manifest, is_parallel, read

# ---- Numbers in the merged database of the sites, addresses and pages of one partition.
#
# They are renumbered, partition after partition. Sites of several partitions may be on one address; and if the crawl
# has grown, several partitions may have the same site and the same pages. Rows with the same name are the same, and get
# one number. Both databases must be attached, as `main` and `part`.

Numbers = NDArray[np.int64]  # number in the merged database, by the number in the partition; those have no gaps
_NAMES = {"site": "origin", "address": "address", "page": "url"}


def prepare(database: sqlite3.Connection, is_shared: bool) -> None:
    """Create the indexes by which rows with the same name are found."""
    for table in _shared(is_shared):
        database.execute(f"create index {table}_by_name on {table} ({_NAMES[table]})")


def finish(database: sqlite3.Connection, is_shared: bool) -> None:
    for table in _shared(is_shared):
        database.execute(f"drop index {table}_by_name")


def _shared(is_shared: bool) -> tuple[str, ...]:
    """Return the tables whose rows several partitions may have."""
    return tuple(_NAMES) if is_shared else ("address",)


def number(database: sqlite3.Connection, is_shared: bool) -> dict[str, int]:
    """Define SQL functions that translate the numbers of the attached partition: `of_site(id)`, `of_address(id)`,
    `of_page(id)` and `of_links(blob)`. Return, for each table, the first number that is new."""
    first = {}
    for table in _NAMES:
        (first[table],) = database.execute(f"select ifnull(max(id), -1) + 1 from main.{table}").fetchone()
        numbers = _numbers(database, table, first[table], table in _shared(is_shared))
        database.create_function(f"of_{table}", 1, _lookup(numbers), deterministic=True)
        if table == "page":
            database.create_function("of_links", 1, lambda links, pages=numbers: renumbered(links, pages))
    return first


def _numbers(database: sqlite3.Connection, table: str, first: int, is_shared: bool) -> Numbers:
    (count,) = database.execute(f"select ifnull(max(id), -1) + 1 from part.{table}").fetchone()
    numbers = np.full(count, -1, np.int64)
    if is_shared:
        same = f"whole.{_NAMES[table]} = mine.{_NAMES[table]}"
        sql = f"select mine.id, whole.id from part.{table} as mine join main.{table} as whole on {same}"
        for own, whole in database.execute(sql):
            numbers[own] = whole
    new = numbers < 0
    numbers[new] = first + np.arange(np.count_nonzero(new))
    return numbers


def _lookup(numbers: Numbers) -> Callable[[int | None], int | None]:
    return lambda own: None if own is None else int(numbers[own])


def renumbered(links: bytes, pages: Numbers) -> bytes:
    """Translate the page numbers in a blob of links.

    >>> renumbered(b"\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00", np.array([256, 7])).hex(" ", 4)
    '07000000 00010000'
    """
    return pages[np.frombuffer(links, "<i4")].astype("<i4").tobytes()


# ---- merged

# The first numbers of the next partition's visits and archives.
_BASE = """select max((select ifnull(max(visit), -1) + 1 from fetch), (select ifnull(max(visit), -1) + 1 from robots)),
(select ifnull(max(id), -1) + 1 from warc)"""
_LOCK = f"{DATABASE}.lock"
_REQUEST = "address, started, first_byte_s, total_s"
_COPY = (
    "insert into site select of_site(id), origin from part.site where of_site(id) >= :site",
    "insert into address select of_address(id), address from part.address where of_address(id) >= :address",
    "insert into page select of_page(id), of_site(site), url from part.page where of_page(id) >= :page",
    "insert into abandoned_site select of_site(site), at, kind, why from part.abandoned_site where true"
    " on conflict (site) do update set (at, kind, why) = (excluded.at, excluded.kind, excluded.why) where excluded.at > at",
    "insert into rejected_link select reason, links from part.rejected_link where true"
    " on conflict (reason) do update set links = links + excluded.links",
    f"insert into fetch select null, of_page(page), visit + :visit, {_REQUEST}, result, status, error, bytes, mime, digest, marks,"
    " found, truncated, file + :file, offset, length, of_links(links), changed, fingerprint from part.fetch order by seq",
    # A page moves only to a partition with a larger number, so the last row is that of the owner.
    "replace into copy select of_page(page), fetched, checked, last_change, fingerprint, digest, etag, modified, refused"
    " from part.copy",
    f"insert into robots select null, of_site(site), visit + :visit, {_REQUEST}, status, error, bytes, body, file + :file, offset,"
    " length from part.robots order by seq",
    "insert into signal select null, of_page(page), at, channel, kind, outcome from part.signal",
    "insert into signal_total select channel, kind, outcome, signals from part.signal_total where true"
    " on conflict (channel, kind, outcome) do update set signals = signals + excluded.signals",
    "replace into listed_page select of_page(page), of_page(by), dated from part.listed_page",
    # If two partitions know a list, because its site moved or is shared, the row of the one that requested it counts.
    "insert into published_list select of_page(page), named_by, speaks_for, level, requests, state, entries, is_page, rejected"
    " from part.published_list where true on conflict (page) do update set (named_by, speaks_for, level, requests, state, entries,"
    " is_page, rejected) = (excluded.named_by, excluded.speaks_for, excluded.level, excluded.requests, excluded.state, excluded.entries,"
    " excluded.is_page, excluded.rejected) where excluded.requests >= requests",
    # If two partitions know a requisite, because its site moved, the row of the new owner counts.
    "insert into requisite select of_page(page), role, level, ifnull(of_page(nullif(needed_by, -1)), -1), requests, state from"
    " part.requisite where true on conflict (page) do update set (role, level, requests, state) = (excluded.role, excluded.level,"
    " excluded.requests, excluded.state) where requisite.state = 'moved'",
    "replace into page_quality select of_page(page), run, quality from part.page_quality",
    "insert into foreign_link select of_page(page), visit + :visit, url from part.foreign_link",
    "insert into further_link select of_page(page), visit + :visit, fingerprints from part.further_link",
    "insert into warc select id + :file, :name || '/warc/' || name, bytes from part.warc",
    "update cdxj set bytes = bytes + (select bytes from part.cdxj)",
    "insert into temp.stood select :name, * from part.progress order by rowid",
)
_STOOD = "create temp table stood (part, at, seconds, pages, errors, bytes, known, waiting, sites, active, quality)"
# Another partition may have fetched pages of a site after the last one abandoned it. `cross join` fixes the order of the
# tables, so that they are read once.
_NOT_ABANDONED = f"""delete from abandoned_site where site in (select page.site from fetch cross join page on page.id = fetch.page
cross join abandoned_site as gone on gone.site = page.site where {IS_FETCHED} and started + total_s > gone.at
and gone.kind != '{BLOCKED}')"""
_AS_BEFORE = "exists (select 1 from foreign_link as link where link.page = {0}.page and link.visit = {0}.visit and link.url = '')"
# For each fetch, the visit whose links to pages of other partitions are also its own. That is the fetch's own visit;
# or, if the page had the same links as before, the last earlier visit whose links were recorded.
_NEWS = f"""create temp table news as select seq, page, case when {_AS_BEFORE.format("fetch")} then
(select visit from fetch as before where before.page = fetch.page and before.seq < fetch.seq and {HAS_LINKS}
and not {_AS_BEFORE.format("before")} order by seq desc limit 1) else visit end as visit from fetch where {HAS_LINKS}"""
_BETWEEN = """create temp table crossing as select news.seq, page.id from foreign_link join page on page.url = foreign_link.url
join news on news.page = foreign_link.page and news.visit = foreign_link.visit order by news.seq, foreign_link.rowid"""
_FURTHER = """select news.seq, further_link.fingerprints from further_link
join news on news.page = further_link.page and news.visit = further_link.visit"""
_URLS_AT_ONCE = 4096


def brought_up(folder: Path) -> Path:
    """Return the folder; if it holds a parallel crawl, bring its merged database up to date first."""
    if is_parallel(folder):
        manifest = read(folder)
        if not is_current(manifest):
            merge(manifest)
    return folder


def merge(manifest: Manifest) -> None:
    parts = begun(manifest)
    if not parts:
        raise ConfigError(f"{manifest.folder}: the crawl has not begun; resume it with --resume {manifest.folder}")
    lock = alone(manifest.folder / _LOCK, lambda: None)  # a report may be requested just when the crawl ends
    with lock, new_database(manifest.folder) as database:
        database.execute(_STOOD)
        is_shared = shares_sites(manifest)
        state = _add_all(database, parts, is_shared)
        for statement in INDEXES.values():
            database.execute(statement)
        if is_shared:
            database.execute(_NOT_ABANDONED)
        _join(database, bytes.fromhex(manifest.seen_key))
        database.executemany("insert into progress values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _progress(database))
        database.executemany("insert into meta values (?, ?)", _meta(manifest, parts, state).items())


def shares_sites(manifest: Manifest) -> bool:
    """Return whether several partitions may have the same site: by their mode or function, or because the crawl has grown."""
    return len(manifest.sizes) > 1 or shares_hosts(manifest.policy, manifest.partitioning)


def remove(folder: Path) -> None:
    """Remove the merged database. The next command that needs it merges it again."""
    with alone(folder / _LOCK, lambda: None):
        for name in (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm"):
            (folder / name).unlink(missing_ok=True)


def parts_of(folder: Path) -> list[Path]:
    """Return the partitions of a parallel crawl that have begun; an empty list for a crawl of one process."""
    return begun(read(folder)) if is_parallel(folder) else []


def begun(manifest: Manifest) -> list[Path]:
    """Return the partitions that have a database."""
    return [part for part in manifest.parts if (part / DATABASE).exists()]


def batches(folder: Path) -> dict[str, int]:
    """Return the last batch of each partition that is in the merged database; empty if there is no merged database."""
    if not (folder / DATABASE).exists():
        return {}
    with closing(connect(folder)) as database:
        found: dict[str, int] = json.loads(meta(database).get("merged", "{}"))
        return found


def is_current(manifest: Manifest) -> bool:
    """Return whether the merged database has all batches of all partitions."""
    if not (manifest.folder / DATABASE).exists():
        return False
    with closing(open_database(manifest.folder)) as database:
        kept = meta(database)
    now = {part.name: _last_batch(part) for part in begun(manifest)}
    return kept["merged"] == json.dumps(now) and kept.get("stopped_by", "") == manifest.stopped_by


def _last_batch(part: Path) -> int:
    with closing(connect(part)) as database:
        found: int = database.execute("select coalesce(max(batch), 0) from journal").fetchone()[0]
        return found


class NewSites:
    """Returns, on each call, the sites of all partitions that are new since the last call. They are numbered in the
    order in which they are found; the argument `after` is not needed."""

    def __init__(self, folder: Path) -> None:
        self._manifest = read(folder)
        self._last: dict[Path, int] = {}
        self._count = 0

    def __call__(self, after: int) -> list[tuple[int, str]]:
        found = [origin for part in begun(self._manifest) for origin in self._of(part)]
        self._count += len(found)
        return list(enumerate(found, self._count - len(found)))

    def _of(self, part: Path) -> list[str]:
        sql = "select id, origin from site where id > ? order by id"
        with closing(connect(part)) as database:
            rows = database.execute(sql, (self._last.get(part, -1),)).fetchall()
        if rows:
            self._last[part] = rows[-1][0]
        return [origin for _, origin in rows]


# ---- contents


def _add_all(database: sqlite3.Connection, parts: list[Path], is_shared: bool) -> dict[str, int]:
    """Add all partitions. Return the last batch of each."""
    prepare(database, is_shared)
    state = {part.name: _add(database, part, is_shared) for part in parts}
    finish(database, is_shared)
    return state


def _add(database: sqlite3.Connection, part: Path, is_shared: bool) -> int:
    """Add one partition, in a single consistent read. Return its last batch."""
    visit, file = database.execute(_BASE).fetchone()
    with _attached(database, part):
        (batch,) = database.execute("select coalesce(max(batch), 0) from part.journal").fetchone()
        first = number(database, is_shared)
        missing = _missing_tables(database)
        for statement in _COPY:
            if any(f"part.{name}" in statement for name in missing):
                continue
            database.execute(statement, {**first, "visit": visit, "file": file, "name": part.name})
    return int(batch)


def _missing_tables(database: sqlite3.Connection) -> list[str]:
    """Return the tables that the attached partition does not have, because an earlier version wrote it."""
    known = {name for (name,) in database.execute("select name from part.sqlite_master")}
    return [name for name in LATER_TABLES if name not in known]


@contextmanager
def _attached(database: sqlite3.Connection, part: Path) -> Iterator[None]:
    """Attach the database of a partition as `part`. Partitions are attached one after the other: SQLite attaches at
    most ten databases at once. It attaches none inside a transaction."""
    connect(part).close()  # raises a clear error if the database is not usable
    database.execute("commit")
    database.execute("attach ? as part", (read_only(part),))
    database.execute("begin")
    yield
    database.execute("commit")
    database.execute("detach part")
    database.execute("begin")


def _join(database: sqlite3.Connection, seen_key: bytes) -> None:
    """Turn links between partitions into links of the fetches that found them. A link whose target the owner never
    accepted has no page in the database, and is dropped."""
    database.execute("create index leads_of on foreign_link (page, visit)")
    database.execute(_NEWS)
    database.execute("create index temp.news_of on news (page, visit)")
    database.execute(_BETWEEN)  # into a table of its own, because `fetch` changes while the links are read
    database.executemany("insert into crossing values (?, ?)", _further_links(database, seen_key))
    for seq, rows in groupby(database.execute("select * from crossing order by seq, rowid"), lambda row: row[0]):
        (links,) = database.execute("select links from fetch where seq = ?", (seq,)).fetchone()
        targets = np.array([page for _, page in rows], "<i4").tobytes()
        more = (links + targets, len(targets) // 4, seq)
        database.execute("update fetch set links = ?, found = found + ? where seq = ?", more)
    database.execute("delete from foreign_link")
    database.execute("delete from further_link")
    database.execute("drop index leads_of")


def _further_links(database: sqlite3.Connection, seen_key: bytes) -> list[tuple[int, int]]:
    """Return the number of a fetch and a target for each link of `further_link` whose target is a page."""
    found = database.execute(_FURTHER).fetchall()
    if not found:
        return []
    seen, ids = SeenTable(seen_key), array("q")
    urls = database.execute("select id, url from page order by id")
    while rows := urls.fetchmany(_URLS_AT_ONCE):
        seen.add(seen.fingerprints([url for _, url in rows]), len(ids), np.empty(len(rows), np.int32))
        ids.extend(id for id, _ in rows)
    sources = np.repeat([seq for seq, _ in found], [len(data) // 8 for _, data in found])
    pages = np.empty(len(sources), np.int32)
    seen.find(np.frombuffer(bytearray().join(data for _, data in found), "<i8"), pages)
    known = pages >= 0
    return list(zip(sources[known].tolist(), np.array(ids)[pages[known]].tolist(), strict=True))


def _progress(database: sqlite3.Connection) -> Iterator[CrawlProgress]:
    """Yield the progress of all partitions together, for each progress row of one of them."""
    latest: dict[str, CrawlProgress] = {}
    seconds = 0.0
    for part, *row in database.execute("select * from stood order by at, rowid"):
        latest[part] = progress = CrawlProgress(*row)
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
        "parallel": json.dumps(
            {
                "processes": manifest.sizes[-1],
                "mode": manifest.policy.mode,
                "partition": manifest.kind,
                "urls_exchanged": sum(map(_urls_sent, parts)),
            }
        ),
        **{key: value for one in kept for key, value in one.items() if key.startswith(SEED)},
        **{key: value for key, value in kept[0].items() if key.startswith(RUN)},
        **merged_actions(kept, manifest.options),
        **{
            f"{key} {part.name}": value
            for part, one in zip(parts, kept, strict=True)
            for key, value in one.items()
            if key.startswith(PROCESSOR)
        },
        **ended,
    }


def _urls_sent(part: Path) -> int:
    with closing(connect(part)) as database:
        found: int = database.execute("select coalesce(sum(urls), 0) from partition").fetchone()[0]
        return found


def summed(every: Iterable[CrawlProgress], at: float, seconds: float) -> CrawlProgress:
    """Return the progress of all partitions together."""
    return CrawlProgress(at, seconds, *map(sum, zip(*(one[2:] for one in every), strict=True)))
