"""The metrics of crawls for Prometheus: `families` makes them from what the dashboard has read, `exposition` the text of /metrics, and
`Scraping` the answers.

Gauges show the last view of a crawl (watched_crawl.py). Counters and histograms are counted from crawl.db (fetch_histograms.py).
No metric has a label per site or URL, because their number has no limit.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from trapline import __version__
from trapline.crawler.engine.row_kinds import RESULTS
from trapline.crawler.files.layout import DATABASE
from trapline.dashboard.fetch_histograms import FetchHistograms, Histogram
from trapline.dashboard.folder_reader import reading
from trapline.dashboard.watched_crawl import TICK_S, WRONG_VALUES, WatchedCrawl
from trapline.errors import ConfigError
from trapline.fetch import failure

CODES = ("1xx", "2xx", "3xx", "4xx", "5xx")


class View(Protocol):
    """What a metric needs of a crawl's view: `CrawlView` of watched_crawl.py."""

    @property
    def status(self) -> Mapping[str, Any] | None: ...

    @property
    def overview(self) -> Mapping[str, Any]: ...


class MetricName(NamedTuple):
    name: str  # as it is queried, with _total if it is a counter
    text: str
    labels: tuple[str, ...] = ()  # besides `crawl`


COUNTERS = (
    MetricName("trapline_pages_total", "Pages fetched, each once."),
    MetricName("trapline_fetches_total", "Rows of the table fetch, by result.", ("result",)),
    MetricName("trapline_responses_total", "Answers, by class of the HTTP status.", ("code",)),
    MetricName("trapline_too_many_requests_total", "Answers with status 429."),
    MetricName("trapline_errors_total", "Errors, by kind.", ("kind",)),
    MetricName("trapline_received_bytes_total", "Bytes of bodies, as received."),
    MetricName("trapline_archived_bytes_total", "Bytes of WARC files, compressed."),
    MetricName("trapline_redirects_total", "Answers that were redirects."),
    MetricName("trapline_refetches_total", "Pages fetched again, by whether they had changed.", ("changed",)),
    MetricName("trapline_signals_total", "Signals of content providers.", ("channel", "outcome")),
    MetricName("trapline_rejected_links_total", "Links that were not followed, by reason.", ("reason",)),
    MetricName("trapline_robots_fetches_total", "Requests of robots.txt files."),
    MetricName("trapline_crawl_seconds_total", "Time of crawling, over all runs."),
    MetricName("trapline_processor_seconds_total", "Processor time of the two processes.", ("process", "mode")),
    MetricName("trapline_partition_restarts_total", "Restarts of a partition in this run.", ("partition",)),
    MetricName("trapline_exchanged_urls_total", "URLs that a partition sent to others.", ("partition",)),
)
GAUGES = (
    MetricName("trapline_known_pages", "Pages known."),
    MetricName("trapline_waiting_pages", "Pages that wait to be fetched."),
    MetricName("trapline_known_sites", "Sites known."),
    MetricName("trapline_abandoned_sites", "Sites abandoned, by kind.", ("kind",)),
    MetricName("trapline_connections", "Connections by what they do or wait for.", ("state",)),
    MetricName("trapline_connections_limit", "Most connections at once."),
    MetricName("trapline_store_backlog_bytes", "Bytes that the store has not written yet."),
    MetricName("trapline_store_backlog_batches", "Batches that the store has not written yet."),
    MetricName("trapline_disk_free_bytes", "Free space on the disk of the crawl."),
    MetricName("trapline_quality", "Sum of the quality of the fetched pages."),
    MetricName("trapline_time_left_seconds", "Estimated time until a goal is reached.", ("goal",)),
    MetricName("trapline_running", "Whether the crawl runs: 1 or 0."),
    MetricName("trapline_paused", "Whether the crawl is paused: 1 or 0."),
    MetricName("trapline_last_commit_timestamp_seconds", "Time of the last commit, in seconds since 1970."),
)
HISTOGRAMS = (
    MetricName("trapline_first_byte_seconds", "Time from a request to the first byte of its answer."),
    MetricName("trapline_response_seconds", "Time from a request to the end of its answer."),
    MetricName("trapline_response_size_bytes", "Length of the bodies of answers, as received."),
)
BUILD = MetricName("trapline_build_info", "Version of the dashboard.", ("version",))
"""The only metric without the label `crawl`."""

Sample = tuple[str, Sequence[str], float]  # name, values of the labels besides `crawl`, value
_GAUGES = (
    ("trapline_known_pages", ("totals", "known")),
    ("trapline_waiting_pages", ("totals", "waiting")),
    ("trapline_known_sites", ("totals", "sites")),
    ("trapline_connections_limit", ("connections", "limit")),
    ("trapline_disk_free_bytes", ("disk", "free")),
)


def families(views: Mapping[str, View], histograms: Mapping[str, FetchHistograms]) -> Iterator[Metric]:
    """Yield the metrics of these crawls, by name. Counts that are not complete yet are left out: they would look like a reset."""
    counted = {crawl: one for crawl, one in histograms.items() if crawl in views and one.is_complete}
    samples = [(crawl, sample) for crawl, view in views.items() for sample in _of_view(view)]
    samples += [(crawl, sample) for crawl, one in counted.items() for sample in _of_folder(one)]
    build = GaugeMetricFamily(BUILD.name, BUILD.text, labels=BUILD.labels)
    build.add_metric([__version__], 1.0)
    yield build
    for names, kind in ((COUNTERS, CounterMetricFamily), (GAUGES, GaugeMetricFamily)):
        for name in names:
            family = kind(name.name, name.text, labels=("crawl", *name.labels))
            for crawl, (of, labels, value) in samples:
                if of == name.name:
                    family.add_metric([crawl, *labels], value)
            yield family
    yield from _histograms(counted)


def exposition(views: Mapping[str, View], histograms: Mapping[str, FetchHistograms], accept: str) -> tuple[bytes, str]:
    """Return the body and the content type of /metrics. `accept`: the header of the request, which chooses the format."""
    registry = CollectorRegistry()
    registry.register(_Collected(list(families(views, histograms))))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Collected(Collector):
    def __init__(self, found: Iterable[Metric]) -> None:
        self._found = found

    def collect(self) -> Iterable[Metric]:
        return [family for family in self._found if family.samples]


def _of_view(view: View) -> Iterator[Sample]:
    overview, status = view.overview, (view.status or {}) if view.overview.get("live", True) else {}
    is_running = overview.get("state") == "running"
    yield "trapline_running", (), float(is_running)
    yield "trapline_paused", (), float(bool(overview.get("paused")))
    for name, (group, key) in _GAUGES:
        if (value := (overview.get(group) or {}).get(key)) is not None:
            yield name, (), float(value)
    for goal in overview.get("goals") or ():
        if goal.get("seconds_left") is not None:
            yield "trapline_time_left_seconds", (goal["goal"],), float(goal["seconds_left"])
    if is_running:
        yield from _of_loop(status)


def _of_loop(status: Mapping[str, Any]) -> Iterator[Sample]:
    """Yield what only the loop of a running crawl knows."""
    for state, connections in ((status.get("connections") or {}).get("now") or {}).items():
        yield "trapline_connections", (state,), float(connections)
    store, partitions = status.get("store"), status.get("partitions")
    for key in ("bytes", "batches"):
        if isinstance(store, dict) and isinstance(store.get(key), int):
            yield f"trapline_store_backlog_{key}", (), store[key]
    for number, partition in enumerate(partitions if isinstance(partitions, list) else ()):
        if isinstance(partition, dict) and isinstance(partition.get("restarts"), int):
            yield "trapline_partition_restarts_total", (str(partition.get("partition", number)),), partition["restarts"]


def _of_folder(counts: FetchHistograms) -> Iterator[Sample]:
    totals, stored = counts.totals, list(counts.stored.values())
    yield from _labelled("trapline_fetches_total", totals.results, RESULTS.values())
    yield from _labelled("trapline_responses_total", totals.codes, CODES)
    yield from _labelled("trapline_errors_total", totals.errors, failure.KINDS)
    yield from _labelled("trapline_refetches_total", totals.refetches, ("yes", "no"))
    yield "trapline_too_many_requests_total", (), totals.too_many_requests
    yield "trapline_redirects_total", (), totals.redirects
    yield "trapline_received_bytes_total", (), totals.bytes
    yield "trapline_pages_total", (), sum(part.pages for part in stored)
    yield "trapline_archived_bytes_total", (), sum(part.archived_bytes for part in stored)
    yield "trapline_robots_fetches_total", (), sum(part.robots_fetches for part in stored)
    yield "trapline_crawl_seconds_total", (), max((part.seconds for part in stored), default=0.0)
    yield "trapline_quality", (), sum(part.quality for part in stored)
    yield "trapline_last_commit_timestamp_seconds", (), max((part.committed_at for part in stored), default=0.0)
    yield from _labelled("trapline_rejected_links_total", _added(part.rejected_links for part in stored))
    yield from _labelled("trapline_abandoned_sites", _added(part.abandoned_sites for part in stored))
    for labels, signals in _added(part.signals for part in stored).items():
        yield "trapline_signals_total", labels, signals
    for labels, seconds in _added(part.processor for part in stored).items():
        yield "trapline_processor_seconds_total", labels, seconds
    for path, part in counts.stored.items():
        if part.exchanged_urls is not None:
            yield "trapline_exchanged_urls_total", (Path(path).parent.name.rpartition("-")[2],), part.exchanged_urls


def _labelled(name: str, counts: Mapping[str, float], known: Iterable[str] = ()) -> Iterator[Sample]:
    """Yield a sample for each label value. `known`: values that have a sample even if nothing was counted, so that rates begin at 0."""
    for label in dict.fromkeys((*known, *counts)):
        yield name, (label,), counts.get(label, 0)


def _added(parts: Iterable[Mapping[Any, float]]) -> dict[Any, float]:
    total: dict[Any, float] = {}
    for part in parts:
        for key, value in part.items():
            total[key] = total.get(key, 0) + value
    return total


def _histograms(counted: Mapping[str, FetchHistograms]) -> Iterator[Metric]:
    for index, name in enumerate(HISTOGRAMS):
        family = HistogramMetricFamily(name.name, name.text, labels=("crawl",))
        for crawl, counts in counted.items():
            totals = counts.totals
            found = (totals.first_byte_s, totals.response_s, totals.size_bytes)[index]
            family.add_metric([crawl], list(_buckets(found)), found.sum)
        yield family


def _buckets(found: Histogram) -> Iterator[tuple[str, float]]:
    bounds = (*(str(bound) for bound in found.bounds), "+Inf")
    yield from zip(bounds, found.counts.cumsum().tolist(), strict=True)


# ---- Answers of /metrics. What is new in the databases is read at most once a second, whoever asks.

_WAIT_S = 2.0  # for the counts. The first reading of a large crawl takes longer: its counts are left out until then


class Scraping:
    def __init__(self, crawls: Sequence[WatchedCrawl]) -> None:
        self._crawls = {crawl.name: crawl for crawl in crawls}
        self._histograms = {name: FetchHistograms() for name in self._crawls}
        self._counting: dict[str, asyncio.Task[None]] = {}
        self._next_at: dict[str, float] = {}

    async def answer(self, request: Request) -> Response:
        await asyncio.gather(*(self._count(name) for name in self._crawls))
        views = {name: await crawl.tick() for name, crawl in self._crawls.items()}
        accept = request.headers.get("accept", "")
        body, kind = await asyncio.to_thread(exposition, views, self._histograms, accept)
        return Response(body, headers={"content-type": kind})

    async def _count(self, name: str) -> None:
        """Count the new rows of a crawl, unless that was done in this second."""
        task = self._counting.get(name)
        if task is None or (task.done() and time.monotonic() >= self._next_at[name]):
            task = self._counting[name] = asyncio.create_task(asyncio.to_thread(self._read_new, name))
            self._next_at[name] = time.monotonic() + TICK_S
        await asyncio.wait([task], timeout=_WAIT_S)

    def _read_new(self, name: str) -> None:
        """Read what is new. A database that cannot be read keeps its counts; the view of the crawl says what is wrong."""
        try:
            with ExitStack() as stack:
                parts = [part for part in self._crawls[name].parts if (part / DATABASE).exists()]
                self._histograms[name].read_new(*(stack.enter_context(reading(part)) for part in parts))
        except (ConfigError, OSError, *WRONG_VALUES):
            pass
