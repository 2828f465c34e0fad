"""Comparison of live crawls: converts them to the same records as simulated crawls, so that the same tables and plots serve both.

All crawls are judged by one measure, which none of them knew: the PageRank of the web that they found together, by URL,
or of the whole web if it is known. The quality that each crawl used while it ran differs from strategy to strategy, and
cannot be compared.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from sqlite3 import Connection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.records import OUT_OF_BAND, RETURNED
from trapline.crawler.engine.row_kinds import EXTRAS, IS_PAGE
from trapline.crawler.inspect.audit import politeness_violations
from trapline.crawler.inspect.database_reader import open_database, options, scope
from trapline.crawler.inspect.summary import processor_of, span_of, strategy_name
from trapline.errors import ConfigError
from trapline.frontier import FETCHED, REFUSED, Rules
from trapline.graph import Graph, LoadOptions, depths, load_graph, pagerank
from trapline.graph.graph import csr_from_edges
from trapline.graph.sites import recorded_graph
from trapline.graph.strings import StoredStrings, encoded
from trapline.report.chart import Floats
from trapline.report.record import CrawlRecord, record_of
from trapline.simulator import FetchLog, Network
from trapline.simulator.breakdown import BatchConnections, server_locality
from trapline.strategies.base.choice import live_strategy

Ids = NDArray[np.int32]
# Redirects and robots.txt files are no pages. Like refused pages, they take the time of a request.
_RESULT = f"case when result = {FETCHED} and not {IS_PAGE} then {REFUSED} else result end"
_COLUMNS = (
    f"page, visit, started, ifnull(first_byte_s, total_s), total_s, {_RESULT}, dense_rank() over (order by address)"
)


class Name(NamedTuple):
    name: str


class Pair(NamedTuple):
    name: str
    page: Name
    site: Name


class Bodies(NamedTuple):
    size: Floats


@dataclass(frozen=True, slots=True)
class RecordedCrawl:
    """A live crawl with the attributes that records need."""

    log: FetchLog
    strategy: Pair
    rules: Rules
    drained: bool
    servers: Bodies
    network: Network
    connections: int
    wall_seconds: float = 0.0  # time of the simulator's loop, which a live crawl does not have
    processor: None = None  # read from the database
    batch_visits: None = None  # a live crawl does not record them

    @property
    def simulated_seconds(self) -> float:
        return float(self.log.end[-1]) if len(self.log.end) else 0.0


def records_together(folders: Sequence[Path], known: Graph | None = None) -> list[CrawlRecord]:
    """Return the record of each crawl, named by its strategy; if two have the same strategy, also by their folders.

    `known`: the pages and links that exist, with URLs and sizes, whether or not a crawl found them.
    """
    web, numbers = _web(_graphs(folders, known), folders[0])
    quality = pagerank(web)
    records = [_record(folder, numbers, web, quality) for folder in folders]
    times = Counter(record.strategy for record in records)
    return [
        replace(record, label=f"{record.strategy} ({folder.name})") if times[record.strategy] > 1 else record
        for record, folder in zip(records, folders, strict=True)
    ]


def _graphs(folders: Sequence[Path], known: Graph | None) -> Iterator[Graph]:
    if known is not None:
        yield known
    for folder in folders:
        yield load_graph(folder, LoadOptions(dangling=True))


def _web(graphs: Iterable[Graph], file: Path) -> tuple[Graph, Mapping[bytes, int]]:
    """Return the union of the graphs, and the number of each URL in it."""
    found: defaultdict[bytes, int] = defaultdict(count().__next__)  # a missing key gets the next number
    numbers, sources, targets, sizes = [], [], [], []
    for graph in graphs:
        assert graph.urls is not None and graph.sizes is not None
        number = np.fromiter(map(found.__getitem__, encoded(graph.urls)), np.int32, graph.pages)
        numbers.append(number)
        sources.append(np.repeat(number, np.diff(graph.offsets)))
        targets.append(number[graph.targets])
        sizes.append(graph.sizes)
    links = csr_from_edges(np.concatenate(sources), np.concatenate(targets), len(found))
    size = np.zeros(len(found), np.int64)
    np.maximum.at(size, np.concatenate(numbers), np.concatenate(sizes))
    urls = StoredStrings.of(url.decode() for url in found)
    return recorded_graph(urls, file, *links, format_name="crawls", sizes=size), dict(found)


def _record(folder: Path, numbers: Mapping[bytes, int], web: Graph, quality: Floats) -> CrawlRecord:
    assert web.sizes is not None
    with closing(open_database(folder)) as database:
        settings = options(database)
        log, address = _log(database, numbers)
        crawl = RecordedCrawl(
            log=log,
            strategy=_pair(settings),
            rules=settings.rules,
            drained=_drained(database),
            servers=Bodies(web.sizes.astype(np.float64)),
            network=Network(bandwidth=settings.bandwidth),
            connections=settings.connections,
        )
        record = record_of(crawl, web, quality, depth=depths(web, _seeds(database, web)))
        record = replace(
            record,
            politeness_violations=politeness_violations(database),
            clock="",
            server_locality=server_locality(log, web.site[log.page], address),
            processor=processor_of(database),
        )
        return _with_active_connections(record, database)


def _seeds(database: Connection, web: Graph) -> Ids:
    """Return the pages of the given seeds, and of those that they redirect to."""
    assert web.urls is not None
    found = scope(database)
    seeds = {url.encode() for url in (*found.seeds, *found.redirected)}
    return np.array([page for page, url in enumerate(encoded(web.urls)) if url in seeds], np.int32)


def _with_active_connections(record: CrawlRecord, database: Connection) -> CrawlRecord:
    """Return the record with the active connections as the crawl itself counted them.

    The log of pages does not include the time in which a visit opens its connection or waits for robots.txt.
    """
    if not len(record.load.active_connections) or not database.execute("select 1 from progress").fetchone():
        return record
    seconds, counted = _columns(database, "seconds, active")

    def active(edges_s: list[float]) -> Floats:
        edges = np.array(edges_s)
        return np.interp((edges[1:] + edges[:-1]) / 2, seconds, counted)

    load, batch = active(record.load.edges_s), record.batch_connections.edges_s
    return replace(
        record,
        load=replace(record.load, active_connections=load.tolist()),
        active_connections=float(np.average(load, weights=np.diff(record.load.edges_s))),
        batch_connections=BatchConnections(batch, active(batch).tolist()),
    )


def _pair(settings: CrawlOptions) -> Pair:
    ranks = settings.page_rank, settings.site_rank
    try:
        found = live_strategy(settings.strategy, *ranks, settings.quality, settings.history is not None)
    except ConfigError:  # the strategy came from a file that is not here
        return Pair(strategy_name(settings), Name(""), Name(""))
    return Pair(found.name, Name(found.page.name), Name(found.site.name))


def _drained(database: Connection) -> bool:
    last = database.execute("select waiting = 0 and active = 0 from progress order by rowid desc limit 1").fetchone()
    return bool(last and last[0])


def _log(database: Connection, numbers: Mapping[bytes, int]) -> tuple[FetchLog, Ids]:
    """Return the requests in order of completion, in seconds of crawling, and a number for the address of each. Of a page
    that was fetched twice, only the first fetch is included.

    Sitemaps, feeds and requisites are omitted, and pages that were found after the crawl's graph was read, which have no number.
    """
    urls = database.execute(f"select url, id in ({EXTRAS}) from page order by id")
    number = np.array([-1 if is_extra else numbers.get(url.encode(), -1) for url, is_extra in urls], np.int32)
    rows = database.execute(
        f"select {_COLUMNS} from fetch where address != ''"
        f" and result not in ({RETURNED}, {OUT_OF_BAND}) and page < {len(number)} order by started + total_s, seq"
    ).fetchall()
    columns = np.array(rows, np.float64).reshape(-1, 7)
    columns[:, 0] = number[columns[:, 0].astype(np.int64)]
    page, visit, started, first_byte_s, total_s, result, address = columns[columns[:, 0] >= 0].T
    fetched = np.flatnonzero(result == FETCHED)
    _, first = np.unique(page[fetched], return_index=True)
    kept = np.sort(np.concatenate((np.flatnonzero(result != FETCHED), fetched[first])))
    start = _seconds_of_crawling(database, started)
    log = FetchLog(
        page=page[kept].astype(np.int32),
        visit=np.unique(visit[kept], return_inverse=True)[1].astype(np.int32),  # visit numbers may be of any size
        start=start[kept],
        first_byte=(start + first_byte_s)[kept],
        end=(start + total_s)[kept],
        result=result[kept].astype(np.uint8),
    )
    return log, address[kept].astype(np.int32)


def _seconds_of_crawling(database: Connection, moments: Floats) -> Floats:
    """Return the seconds since the first request, without the time between two runs."""
    began = span_of(database).began
    since = moments - began
    at, seconds = _columns(database, "at, seconds")
    # Earlier runs were killed before their first request was on disk.
    at, seconds = at[at >= began], seconds[at >= began]
    if not len(at):
        return since
    idle = np.maximum.accumulate(at - at[0] - (seconds - seconds[0]))
    return np.maximum(since - np.interp(moments, at, idle), 0.0)


def _columns(database: Connection, names: str) -> tuple[Floats, Floats]:
    """Return two columns of the table `progress`."""
    rows = database.execute(f"select {names} from progress order by rowid").fetchall()
    one, two = np.array(rows, np.float64).reshape(-1, 2).T
    return one, two
