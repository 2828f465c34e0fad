"""The numbers of `summary.json`: a crawl in one object, from its database alone. What each key means: docs/crawl-summary.md.

It is asked when a crawl ends, and by `report` and `status` at any time. It counts what is committed: a page that the store has not
acknowledged is not in it.
"""

import math
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from trapline.crawl.audit import Audit, audit
from trapline.crawl.folder import meta, opened, options
from trapline.crawl.store.folder import SUMMARY
from trapline.fetch import failure
from trapline.frontier import FETCHED
from trapline.output import write_json

KIND = f"case when error != '' then error when status >= 400 then '{failure.HTTP}' else '' end"
"""SQL: why a row of `fetch` brought no page; '': it did."""
NO_ERRORS = ("", failure.ROBOTS, failure.STOPPED)
"""Kinds that are nobody's fault."""
IS_ERROR = f"{KIND} not in {NO_ERRORS}"
"""SQL: whether a row of `fetch` is one of the errors."""
MOST_TYPES = 20


class Span(NamedTuple):
    """Wall clock; `idle_s` of it lay between two runs."""

    began: float
    ended: float
    idle_s: float

    @property
    def seconds(self) -> float:
        return max(self.ended - self.began - self.idle_s, 0.0)


def write_summary(folder: Path) -> dict[str, Any]:
    """Count, write `summary.json` into the crawl's folder, and answer what was written."""
    with closing(opened(folder)) as database:
        found = summary_of(database)
    write_json(folder / SUMMARY, found)
    return found


def summary_of(database: sqlite3.Connection, audited: Audit | None = None) -> dict[str, Any]:
    """`audited`: if that was done already."""
    from trapline import __version__

    told, kept, politeness = options(database), meta(database), audited or audit(database)
    span, totals = span_of(database), totals_of(database)
    runs = int(kept.get("runs", 1))
    return {
        "trapline": __version__,
        "strategy": told.get("strategy", ""),
        **totals,
        "seconds": span.seconds,
        "pages_per_second": totals["pages_fetched"] / span.seconds if span.seconds else 0.0,
        "began": span.began,
        "ended": span.ended,
        "runs": runs,
        "resumed": runs - 1,
        "stopped_by": kept.get("stopped_by"),
        "requests": politeness.requests,
        "visits": politeness.visits,
        "politeness_violations": politeness.violations,
        "politeness_violations_by_rule": politeness.by_rule,
        "quality": quality_of(database),
        "quality_source": told.get("quality", ""),
        **_counts(database),
    }


def span_of(database: sqlite3.Connection) -> Span:
    """From the first request to the last commit. Each commit brings the progress of its moment, at the latest when the crawl
    ends; between two runs the clock goes on and the seconds of crawling do not."""
    first, last = math.inf, -math.inf
    for table in ("fetch", "robots"):
        begin, end = database.execute(f"select min(started), max(started + total_s) from {table}").fetchone()
        if begin is not None:
            first, last = min(first, begin), max(last, end)
    rows = database.execute("select at, seconds from progress where rowid in (?, ?) order by rowid", _ends(database))
    moments = rows.fetchall()
    if first > last:
        return Span(0.0, 0.0, 0.0)
    if not moments:
        return Span(first, last, 0.0)
    (at_first, seconds_first), (at_last, seconds_last) = moments[0], moments[-1]
    return Span(first, max(last, at_last), max(at_last - at_first - (seconds_last - seconds_first), 0.0))


def _ends(database: sqlite3.Connection) -> tuple[int, int]:
    first, last = database.execute("select min(rowid), max(rowid) from progress").fetchone()
    return first or 0, last or 0


def totals_of(database: sqlite3.Connection) -> dict[str, Any]:
    fetches, pages, received, links = database.execute(
        f"select count(*), count(distinct case when result = {FETCHED} then page end), total(bytes), total(found) from fetch"
    ).fetchone()
    kinds = dict(database.execute(f"select {KIND} as kind, count(*) from fetch group by kind order by 2 desc, 1"))
    errors = {kind: number for kind, number in kinds.items() if kind not in NO_ERRORS}
    return {
        "pages_fetched": pages,
        "fetches": fetches,
        "errors": sum(errors.values()),
        "errors_by_kind": errors,
        "forbidden_by_robots": kinds.get(failure.ROBOTS, 0),
        "bytes": int(received),
        "links": int(links),
        "sites": _count(database, "site"),
        "urls_known": _count(database, "page"),
    }


def quality_of(database: sqlite3.Connection) -> float:
    """As the loop counted it: the sum of what each page was worth when it was taken."""
    last = database.execute("select quality from progress order by rowid desc limit 1").fetchone()
    return last[0] if last else 0.0


def _counts(database: sqlite3.Connection) -> dict[str, Any]:
    statuses = database.execute(
        "select status, count(*) from fetch where status > 0 group by status order by 2 desc, 1"
    )
    types = database.execute(
        f"select mime, count(*) from fetch where status > 0 group by mime order by 2 desc, 1 limit {MOST_TYPES}"
    )
    archives, archived = database.execute("select count(*), total(bytes) from warc").fetchone()
    return {
        "statuses": {str(status): number for status, number in statuses},
        "types": dict(types.fetchall()),
        "robots_fetched": _count(database, "robots"),
        "warc_files": archives,
        "warc_bytes": int(archived),
        "cdxj_bytes": database.execute("select bytes from cdxj").fetchone()[0],
    }


def _count(database: sqlite3.Connection, table: str) -> int:
    number: int = database.execute(f"select count(*) from {table}").fetchone()[0]
    return number
