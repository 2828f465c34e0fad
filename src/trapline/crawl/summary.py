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
from trapline.crawl.options import CrawlOptions
from trapline.crawl.records import FULL, RETURNED, TOO_MANY, VISITS
from trapline.crawl.scope import DOMAIN, EXCLUDE, HOST, INCLUDE, PORT, TRAP
from trapline.crawl.store.folder import SUMMARY
from trapline.crawl.tally import FORBIDDEN, KIND, heard_of, tally_of
from trapline.fetch import failure
from trapline.output import write_json

GIVEN_UP = {
    failure.DNS: "no address",
    failure.ADDRESS: "no address that may be connected to",
    VISITS: "failed visits",
}
"""Kinds of sites given up, for people."""
LEFT_OUT = {
    HOST: "another host",
    DOMAIN: "another domain",
    INCLUDE: "no --include fits",
    EXCLUDE: "an --exclude fits",
    TRAP: "looks like a trap",
    PORT: "a port of another service",
    TOO_MANY: "too many new ones on one page",
    FULL: "too many on one site",
}
"""Reasons why links are left out, for people."""
MOST_TYPES = 20
_FIRST_AND_LAST = """select at, seconds from progress
where rowid in ((select min(rowid) from progress), (select max(rowid) from progress)) order by rowid"""


class Span(NamedTuple):
    """Wall clock; `idle_s` of it lay between two runs."""

    began: float
    ended: float
    idle_s: float = 0.0

    @property
    def seconds(self) -> float:
        return max(self.ended - self.began - self.idle_s, 0.0)


def write_summary(folder: Path) -> dict[str, Any]:
    """Count, write `summary.json` into the crawl's folder, and answer what was written."""
    with closing(opened(folder)) as database:
        found = summary_of(database, audit(database))
    write_json(folder / SUMMARY, found)
    return found


def summary_of(database: sqlite3.Connection, politeness: Audit) -> dict[str, Any]:
    from trapline import __version__

    told, kept, span, totals = options(database), meta(database), span_of(database), totals_of(database)
    runs = int(kept.get("runs", 1))
    return {
        "trapline": __version__,
        "strategy": strategy_name(told),
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
        "quality_source": told.quality,
        **_counts(database),
        **_changes(database),
    }


def strategy_name(told: CrawlOptions) -> str:
    """As given; with halves replaced, the pair that it became."""
    if told.page_rank is None and told.site_rank is None:
        return told.strategy
    named = ((told.page_rank, "page rank"), (told.site_rank, "site rank"))
    return f"{told.strategy} with {' and '.join(f'{what} {name}' for name, what in named if name)}"


def span_of(database: sqlite3.Connection) -> Span:
    """From the first request to the last commit. Each commit brings the progress of its moment, at the latest when the crawl
    ends; between two runs the clock goes on and the seconds of crawling do not."""
    first, last = math.inf, -math.inf
    for table in ("fetch", "robots"):
        begin, end = database.execute(f"select min(started), max(started + total_s) from {table}").fetchone()
        if begin is not None:
            first, last = min(first, begin), max(last, end)
    if first > last:
        return Span(0.0, 0.0)
    clock = [at - seconds for at, seconds in database.execute(_FIRST_AND_LAST)]
    (last_at,) = database.execute("select max(at) from progress").fetchone()
    return Span(first, max(last, last_at or last), max(clock[-1] - clock[0], 0.0) if clock else 0.0)


def totals_of(database: sqlite3.Connection) -> dict[str, Any]:
    fetches, forbidden, unanswered, links = database.execute(
        f"select count(*), total({KIND} = '{FORBIDDEN}'), total(result = {RETURNED}), total(length(links)) from fetch"
    ).fetchone()
    tally, given_up = tally_of(database), given_up_of(database)
    return {
        "pages_fetched": tally.fetched,
        "pages_refetched": tally.refetched,
        "fetches": fetches,
        "errors": tally.failed,
        "errors_by_kind": dict(tally.errors),
        "forbidden_by_robots": int(forbidden),
        "unanswered": int(unanswered),
        "bytes": tally.body_bytes,
        "links": int(links) // 4,
        "sites": _count(database, "site"),
        "sites_given_up": sum(given_up.values()),
        "sites_given_up_by_kind": given_up,
        "urls_known": _count(database, "page"),
        "links_left_out": left_out_of(database),
    }


def given_up_of(database: sqlite3.Connection) -> dict[str, int]:
    """Sites that were given up, by kind, most first. No `group by`: that would sort all of them, and `status` asks every second."""
    numbers = ", ".join(f"count(*) filter (where kind = '{kind}')" for kind in GIVEN_UP)
    found = zip(GIVEN_UP, database.execute(f"select {numbers} from given_up").fetchone(), strict=True)
    return {kind: sites for kind, sites in sorted(found, key=lambda one: -one[1]) if sites}


def left_out_of(database: sqlite3.Connection) -> dict[str, int]:
    """Links that were not to be crawled, by reason."""
    return dict(database.execute("select reason, links from left_out order by 2 desc, 1"))


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


def _changes(database: sqlite3.Connection) -> dict[str, Any]:
    """What came of asking for pages again."""
    changed, unchanged, not_modified = database.execute(
        "select total(changed), total(changed = 0), total(changed = 0 and status = 304) from fetch where changed is not null"
    ).fetchone()
    return {
        "pages_changed": int(changed),
        "pages_unchanged": int(unchanged),
        "not_modified": int(not_modified),
        **heard_of(database)._asdict(),
        "popularity": _popularity(database),
    }


def _popularity(database: sqlite3.Connection) -> str | None:
    """What says how popular pages are: accesses, or without any the crawl's quality; None: nobody asks."""
    if options(database).refresh is None:
        return None
    accesses = database.execute("select 1 from signal_total where kind = 'access' and outcome = 'noted'").fetchone()
    return "accesses" if accesses else "quality"


def _count(database: sqlite3.Connection, table: str) -> int:
    number: int = database.execute(f"select count(*) from {table}").fetchone()[0]
    return number
