"""The check of the database of a crawl folder by itself: its integrity, the types of its values, its laws, and its last row of progress.

archive_check.py checks the archives, verify.py runs all checks.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

from trapline.crawler.engine.tally import tally_of
from trapline.crawler.files.check_results import Problem
from trapline.crawler.files.layout import DATABASE

HAS_PLACE = "typeof(offset) = 'integer' and typeof(length) = 'integer'"  # in a row of `fetch` or `robots`
# Violations that no crawl can cause; each query counts the rows that violate one law.
LAWS = {
    "fetches of a page that does not exist": "select count(*) from fetch where page not in (select id from page)",
    "pages of a site that does not exist": "select count(*) from page where site not in (select id from site)",
    "robots.txt files of a site that does not exist": "select count(*) from robots where site not in (select id from site)",
    "copies of a page that does not exist": "select count(*) from copy where page not in (select id from page)",
    "page ids that are missing": "select coalesce(max(id) + 1, 0) - count(*) from page",
    "site ids that are missing": "select coalesce(max(id) + 1, 0) - count(*) from site",
    "batches that are missing in the log": "select coalesce(max(batch) - min(batch) + 1, 0) - count(*) from journal",
}
# The same for the places of records. A violation hides answers, so the index is not rebuilt from the answers that remain.
PLACE_LAWS = {
    "archives that are missing": "select coalesce(max(id) + 1, 0) - count(*) from warc",
    "fetches whose record is in no archive": "select count(*) from fetch where file is not null and file not in (select id from warc)",
    "robots.txt files whose record is in no archive": "select count(*) from robots where file is not null"
    " and file not in (select id from warc)",
    "fetches whose record has no place or no length": f"select count(*) from fetch where file is not null and not ({HAS_PLACE})",
    "robots.txt files whose record has no place or no length": "select count(*) from robots where file is not null"
    f" and not ({HAS_PLACE})",
}


def integrity_problems(folder: Path, database: sqlite3.Connection) -> list[Problem]:
    """Return the problems that SQLite's own integrity check finds in the file."""
    try:
        wrong = [row for (row,) in database.execute("pragma integrity_check") if row != "ok"]
    except sqlite3.DatabaseError as error:
        wrong = [f"cannot be read: {error}"]
    repair = partial(write, folder, "reindex") if all(" index " in line for line in wrong) else None
    return [Problem(str(folder / DATABASE), line, repair=repair) for line in wrong]


def type_problems(folder: Path, database: sqlite3.Connection) -> Iterator[Problem]:
    """Yield columns of numbers that contain text, blobs or infinity: SQLite allows that, but no reader expects it."""
    try:
        tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
        for table in tables:
            columns = dict(database.execute(f"select name, lower(type) from pragma_table_info('{table}')"))
            numbers = [column for column, declared in columns.items() if declared in ("integer", "real")]
            wrong = "typeof({0}) in ('text', 'blob') or abs({0}) > 1e300"
            sums = ", ".join(f"total({wrong.format(column)})" for column in numbers)
            counts = database.execute(f"select {sums} from {table}").fetchone() if numbers else ()
            for column, count in zip(numbers, counts, strict=True):
                if count:
                    what = f"{count:,.0f} values of {table}.{column} are not finite numbers: restore it from a copy"
                    yield Problem(str(folder / DATABASE), what)
    except sqlite3.DatabaseError:
        return  # `integrity_problems` reports it


def broken_laws(folder: Path, database: sqlite3.Connection, laws: Mapping[str, str]) -> Iterator[Problem]:
    for what, sql in laws.items():
        (count,) = database.execute(sql).fetchone()
        if count:
            yield Problem(str(folder / DATABASE), f"{count:,} {what}")


def progress_problems(folder: Path, database: sqlite3.Connection) -> Iterator[Problem]:
    row = database.execute("select rowid, pages, errors, bytes from progress order by rowid desc limit 1").fetchone()
    tally = tally_of(database)
    committed = (tally.fetched, tally.failed, tally.body_bytes)
    with_redirects = (tally.fetched + tally.redirects, *committed[1:])  # as earlier versions counted
    if row is not None and tuple(row[1:]) not in (committed, with_redirects):
        what = f"the last row of progress has {row[1]:,} pages, but {tally.fetched:,} are committed"
        correct = partial(write, folder, "update progress set pages = ?, errors = ?, bytes = ? where rowid = ?")
        yield Problem(str(folder / DATABASE), what, repair=partial(correct, *committed, row[0]))


def write(folder: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(folder / DATABASE)) as database, database:
        database.execute(statement, values)
