"""The numbers of `summary.json`, read from a crawl's database alone. docs/crawl-summary.md explains each key.

The summary is computed when a crawl ends, and by `report` and `status` at any time. It counts only what is committed: a
page that the store has not acknowledged is not included.
"""

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trapline.crawler.discovery.scope import ACCEPT, DOMAIN, EXCLUDE, HOST, INCLUDE, PORT, TRAP
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.records import BLOCKED, FULL, RETURNED, TOO_MANY, VISITS
from trapline.crawler.engine.row_kinds import EXTRAS, FORBIDDEN, IS_PAGE, KIND
from trapline.crawler.engine.tally import signal_counts_of, tally_of
from trapline.crawler.files.handled import handled_files, handled_in
from trapline.crawler.files.layout import DATABASE, SCORER_FAILURES, SUMMARY
from trapline.crawler.inspect.audit import Audit, audit
from trapline.crawler.inspect.database_reader import meta, open_database, options, scope
from trapline.crawler.store.database import PROCESSOR
from trapline.fetch import failure
from trapline.output import write_json
from trapline.processor import CrawlProcessor, ProcessorTime
from trapline.strategies.base.inputs import CONTENT

ABANDONED = {
    failure.DNS: "no address",
    failure.ADDRESS: "no address that may be connected to",
    VISITS: "failed visits",
    BLOCKED: "blocked",
}
"""Texts for the kinds of abandoned sites."""
REJECTED = {
    HOST: "another host",
    DOMAIN: "another domain",
    INCLUDE: "no --include fits",
    EXCLUDE: "an --exclude fits",
    TRAP: "looks like a trap",
    PORT: "a port of another service",
    ACCEPT: "rejected by the program",
    TOO_MANY: "too many new ones on one page",
    FULL: "too many on one site",
}
"""Texts for the reasons why links are rejected."""
MOST_TYPES = 20
_FIRST_AND_LAST = """select at, seconds from progress
where rowid in ((select min(rowid) from progress where at >= ?), (select max(rowid) from progress)) order by rowid"""


class Span(NamedTuple):
    """Begin and end of a crawl by the wall clock; `idle_s` is the time between runs."""

    began: float
    ended: float
    idle_s: float = 0.0

    @property
    def seconds(self) -> float:
        return max(self.ended - self.began - self.idle_s, 0.0)


def write_summary(folder: Path) -> dict[str, Any]:
    """Write `summary.json` into the crawl's folder, and return its contents."""
    found = summary_in(folder)
    write_json(folder / SUMMARY, found)
    return found


def summary_in(folder: Path) -> dict[str, Any]:
    """Return the summary of the crawl in a folder, as of its last commit."""
    with closing(open_database(folder)) as database:
        settings = options(database)
        return {**summary_of(database, audit(database)), **_handled(folder, settings), **_scored(folder, settings)}


def _handled(folder: Path, settings: CrawlOptions) -> dict[str, int]:
    """Return the counts about the handler, if the crawl has one."""
    if not settings.handler:
        return {}
    every = [counts for path in handled_files(folder) if (counts := handled_in(path.parent)) is not None]
    return {
        "pages_handled": sum(counts.pages for counts in every),
        "handler_errors": sum(counts.errors for counts in every),
    }


def _scored(folder: Path, settings: CrawlOptions) -> dict[str, int]:
    """Return the number of pages on which the scorer failed, if the crawl has one."""
    if not settings.quality.startswith(CONTENT):
        return {}
    failures = 0
    for part in sorted(path.parent for path in folder.glob(f"partition-*/{DATABASE}")) or [folder]:
        with closing(open_database(part)) as database:
            failures += int(meta(database).get(SCORER_FAILURES, 0))
    return {"scorer_errors": failures}


def summary_of(database: sqlite3.Connection, politeness: Audit) -> dict[str, Any]:
    from trapline import __version__

    settings, kept, span, totals = options(database), meta(database), span_of(database), totals_of(database)
    runs, processor = int(kept.get("runs", 1)), processor_of(database)
    return {
        "trapline": __version__,
        "strategy": strategy_name(settings),
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
        "processor": None if processor is None else asdict(processor),
        "quality": quality_of(database),
        "quality_source": settings.quality,
        **_counts(database),
        **_lists(database),
        **requisites_of(database),
        **_changes(database),
        **_parallel(kept, totals, settings.refresh is not None),
    }


def _parallel(kept: Mapping[str, str], totals: Mapping[str, Any], refetches: bool) -> dict[str, Any]:
    """Return what only a crawl of several processes has: its mode, and what the processes sent each other. If the crawl does
    not refetch pages, a page that was fetched twice was fetched by two processes."""
    if "parallel" not in kept:
        return {}
    found, downloads = json.loads(kept["parallel"]), totals["pages_fetched"] + totals["pages_refetched"]
    return {
        **found,
        "urls_exchanged_per_page": found["urls_exchanged"] / downloads if downloads else 0.0,
        "overlap": 0.0 if refetches or not downloads else totals["pages_refetched"] / totals["pages_fetched"],
    }


def strategy_name(options: CrawlOptions) -> str:
    """Return the name of the strategy, with the page rank and site rank that replace its own, if any do."""
    if options.page_rank is None and options.site_rank is None:
        return options.strategy
    named = ((options.page_rank, "page rank"), (options.site_rank, "site rank"))
    return f"{options.strategy} with {' and '.join(f'{kind} {name}' for name, kind in named if name)}"


def span_of(database: sqlite3.Connection) -> Span:
    """Return the time from the first request to the last commit.

    Each commit has the progress at its moment, and there is a commit when the crawl ends. Between two runs the clock
    goes on and the seconds of crawling do not, which gives the idle time. Runs that were killed before their first request
    was on disk do not count.
    """
    first, last = math.inf, -math.inf
    for table in ("fetch", "robots"):
        begin, end = database.execute(f"select min(started), max(started + total_s) from {table}").fetchone()
        if begin is not None:
            first, last = min(first, begin), max(last, end)
    if first > last:
        return Span(0.0, 0.0)
    clock = [at - seconds for at, seconds in database.execute(_FIRST_AND_LAST, (first,))]
    (last_at,) = database.execute("select max(at) from progress").fetchone()
    return Span(first, max(last, last_at or last), max(clock[-1] - clock[0], 0.0) if clock else 0.0)


def processor_of(database: sqlite3.Connection) -> CrawlProcessor | None:
    """Return the processor time of all runs and partitions together; None if none was recorded."""
    runs = [json.loads(value) for key, value in meta(database).items() if key.startswith(PROCESSOR)]
    if not runs:
        return None
    zero = ProcessorTime(0.0, 0.0, 0.0)
    return CrawlProcessor(*(sum((ProcessorTime(**run[kind]) for run in runs), zero) for kind in ("loop", "store")))


def totals_of(database: sqlite3.Connection) -> dict[str, Any]:
    fetches, forbidden, unwanted, unanswered, links = database.execute(
        f"select count(*), total({KIND} = '{FORBIDDEN}'), total(error = '{failure.MIME}'),"
        f" total(result = {RETURNED}), total(length(links)) from fetch"
    ).fetchone()
    tally, abandoned_sites = tally_of(database), abandoned_sites_of(database)
    return {
        "pages_fetched": tally.fetched,
        "pages_refetched": tally.refetched,
        "redirects": tally.redirects,
        "fetches": fetches,
        "errors": tally.failed,
        "errors_by_kind": dict(tally.errors),
        "forbidden_by_robots": int(forbidden),
        "unwanted_types": int(unwanted),
        "unanswered": int(unanswered),
        "bytes": tally.body_bytes,
        "links": int(links) // 4,
        "sites": _count(database, "site") - _sites_without_pages(database),
        "abandoned_sites": sum(abandoned_sites.values()),
        "abandoned_sites_by_kind": abandoned_sites,
        "urls_known": _count(database, "page") - _count(database, f"({EXTRAS})"),
        "rejected_links": rejected_links_of(database),
        "scope_followed": list(scope(database).followed),
    }


def _sites_without_pages(database: sqlite3.Connection) -> int:
    """Return the number of sites that have requisites, and no page of the crawl."""
    requisites = "select page from requisite where state <> 'page'"
    sites = set(database.execute(f"select distinct site from page where id in ({requisites})"))
    if not sites:
        return 0
    return len(sites.difference(database.execute(f"select distinct site from page where id not in ({EXTRAS})")))


def abandoned_sites_of(database: sqlite3.Connection) -> dict[str, int]:
    """Return the number of abandoned sites by kind, the most frequent first.

    `group by` is not used, because it would sort all rows, and `status` calls this every second.
    """
    numbers = ", ".join(f"count(*) filter (where kind = '{kind}')" for kind in ABANDONED)
    found = zip(ABANDONED, database.execute(f"select {numbers} from abandoned_site").fetchone(), strict=True)
    return {kind: sites for kind, sites in sorted(found, key=lambda pair: -pair[1]) if sites}


def rejected_links_of(database: sqlite3.Connection) -> dict[str, int]:
    """Return the number of rejected links by reason."""
    return dict(database.execute("select reason, links from rejected_link order by 2 desc, 1"))


def quality_of(database: sqlite3.Connection) -> float:
    """Return the quality as the loop counted it: the sum over all fetched pages of their quality when they were chosen."""
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


def _lists(database: sqlite3.Connection) -> dict[str, Any]:
    """Return the counts about sitemaps and feeds, and about the pages that they list."""
    requested, read = database.execute(
        "select total(requests > 0 or is_page), total(state = 'read') from published_list"
    ).fetchone()
    rejected: Counter[str] = Counter()
    for (text,) in database.execute("select rejected from published_list where rejected != '{}'"):
        rejected.update(json.loads(text))
    only_listed = pages_only_listed(database)
    fetched = database.execute(f"select distinct page from fetch where {IS_PAGE}") if only_listed else ()
    return {
        "lists_requested": int(requested),
        "lists_read": int(read),
        "pages_listed": _count(database, "listed_page"),
        "pages_only_listed": len(only_listed),
        "pages_only_listed_fetched": sum(page in only_listed for (page,) in fetched),
        "rejected_entries": dict(rejected.most_common()),
    }


_FETCHED_REQUISITES = "select page from requisite where state in ('fetched', 'with links')"


def requisites_of(database: sqlite3.Connection) -> dict[str, int]:
    """Return the numbers of requisites. Those that are pages as well count as pages alone."""
    by_state = Counter(dict(database.execute("select state, count(*) from requisite group by state")))
    return {
        "requisites_fetched": by_state["fetched"] + by_state["with links"],
        "requisites_failed": by_state["missing"] + by_state["failed"],
        "requisites_forbidden": by_state["forbidden"],
        "requisites_waiting": by_state["waiting"],
        "requisite_sites": _count(database, f"(select distinct site from page where id in ({_FETCHED_REQUISITES}))"),
    }


def pages_only_listed(database: sqlite3.Connection) -> set[int]:
    """Return the pages that a sitemap or a feed lists, that no fetched page links to, and that are not seeds."""
    listed = {page for (page,) in database.execute("select page from listed_page")}
    if not listed:
        return listed
    seeds = frozenset(options(database).seeds)
    listed -= {page for page, url in database.execute("select id, url from page") if url in seeds}
    for (links,) in database.execute("select links from fetch where links != x''"):
        listed.difference_update(np.frombuffer(links, "<i4").tolist())
    return listed


def _changes(database: sqlite3.Connection) -> dict[str, Any]:
    """Return the counts about refetched pages and signals."""
    changed, unchanged, not_modified = database.execute(
        "select total(changed), total(changed = 0), total(changed = 0 and status = 304) from fetch"
        f" where changed is not null and {IS_PAGE}"
    ).fetchone()
    return {
        "pages_changed": int(changed),
        "pages_unchanged": int(unchanged),
        "not_modified": int(not_modified),
        **signal_counts_of(database)._asdict(),
        "popularity": _popularity(database),
    }


def _popularity(database: sqlite3.Connection) -> str | None:
    """Return the source of pages' popularity: accesses or, without any, the crawl's quality; None: the crawl does not refetch."""
    if options(database).refresh is None:
        return None
    accesses = database.execute("select 1 from signal_total where kind = 'access' and outcome = 'noted'").fetchone()
    return "accesses" if accesses else "quality"


def _count(database: sqlite3.Connection, table: str) -> int:
    number: int = database.execute(f"select count(*) from {table}").fetchone()[0]
    return number
