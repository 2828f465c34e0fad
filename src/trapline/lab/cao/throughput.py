"""Requests per connection (fig. 3) and processor time (fig. 5) in `cao`: live crawls on loopback (`lab/live.py`)."""

from collections.abc import Sequence

import numpy as np

from trapline.lab.live import LiveConditions, crawl_live
from trapline.lab.paper import (
    PaperChart,
    PaperItem,
    PaperPart,
    PaperTable,
    Results,
    at_least,
    differences,
    every,
    within,
)
from trapline.lab.simulated import mean_and_spread
from trapline.lab.study import Result, StudyRun
from trapline.lab.webs import WebCache, WebSource
from trapline.testweb import Behaviour, Mix, build_web

_LIVE_STEPS = 1_000_000  # duration of a live crawl, in pages of a simulated one


# ---- fig. 3: the requests that servers allow on a connection, as the crawler finds out

ONE, HUNDRED = 0.24, 0.66  # shares of the paper's 500 servers
_PROBE = LiveConditions("breadth-first", 64, per_connection=0)
_PROBE_LATENCY_S = 0.001


def _probe_key(source: WebSource, seed: int) -> str:
    return f"{source.name}; requests per connection, {_PROBE.name}, latency {_PROBE_LATENCY_S:g}, seed {seed}"


def _probe_run(cache: WebCache, source: WebSource, seed: int) -> StudyRun:
    def compute() -> Result:
        graph = cache.load(source).graph
        mix = Mix(Behaviour(latency_s=_PROBE_LATENCY_S), measured_requests=True)
        log = crawl_live(build_web(graph, mix, seed=seed), _PROBE)
        return {"requests": log.per_connection.tolist()}

    return StudyRun(_probe_key(source, seed), _LIVE_STEPS, compute, source.name, is_timed=True)


def requests_per_connection(name: str, cache: WebCache, web: WebSource, seeds: Sequence[int]) -> PaperPart:
    def items(results: Results) -> list[PaperItem]:
        found = [np.array(results[_probe_key(web, seed)]["requests"]) for seed in seeds]
        one = [float((requests == 1).mean()) for requests in found]
        hundred = [float((requests >= 100).mean()) for requests in found]
        claims = [
            within(
                "24 % of the servers serve one request per connection, within .05", "24 %", [x - ONE for x in one], 0.05
            ),
            within("66 % serve a hundred, within .05", "66 %", [x - HUNDRED for x in hundred], 0.05),
        ]
        x = list(range(1, 101))
        shares = [100 * float(np.mean([(requests <= most).mean() for requests in found])) for most in x]
        title, share = "Requests per connection", "servers that allow no more"
        chart = PaperChart("requests", title, "requests per connection", share, {"ours": (x, shares)}, y_unit="%")
        setting = f"live crawls of {web.name} on loopback; r = 64, w = 0, k as servers allow"
        note = "The servers have the published distribution. The item checks that the crawler finds it out by crawling."
        return [PaperItem(name, title, setting, claims, charts=[chart], notes=[note])]

    return PaperPart([_probe_run(cache, web, seed) for seed in seeds], items)


# ---- fig. 5: throughput and processor time with fast servers

FAST = (2, 6, 14, 20)  # connections; there are 20 servers, and a server gets one connection at a time
_FAST_LATENCY_S, _FAST_SPREAD, _FAST_REQUESTS = 0.05, 0.2, 100
_TIMES = ("user", "system", "idle")


def _fast_crawl(connections: int, pages: int) -> LiveConditions:
    return LiveConditions("breadth-first", connections, per_connection=0, max_pages=pages)


def _fast_key(source: WebSource, connections: int, pages: int, seed: int) -> str:
    servers = f"latency {_FAST_LATENCY_S:g}, spread {_FAST_SPREAD:g}, {_FAST_REQUESTS} requests per connection"
    return f"{source.name}; fast servers, {_fast_crawl(connections, pages).name}, {servers}, seed {seed}"


def _fast_run(cache: WebCache, source: WebSource, connections: int, pages: int, seed: int) -> StudyRun:
    def compute() -> Result:
        server = Behaviour(latency_s=_FAST_LATENCY_S, requests_per_connection=_FAST_REQUESTS)
        web = build_web(cache.load(source).graph, Mix(server, latency_spread=_FAST_SPREAD), seed=seed)
        log = crawl_live(web, _fast_crawl(connections, pages))
        seconds = float(log.end_s[-1])
        return {
            "pages_per_second": len(log.page) / seconds,
            "megabits_per_second": 8e-6 * float(log.size.sum()) / seconds,
            **dict(zip(_TIMES, log.used.shares, strict=True)),
        }

    return StudyRun(_fast_key(source, connections, pages, seed), _LIVE_STEPS, compute, source.name, is_timed=True)


def fast_servers(name: str, cache: WebCache, web: WebSource, pages: int, seeds: Sequence[int]) -> PaperPart:
    def items(results: Results) -> list[PaperItem]:
        def of(number: str, r: int) -> list[float]:
            return [float(results[_fast_key(web, r, pages, seed)][number]) for seed in seeds]

        speed = "pages_per_second"
        grows = {
            f"{b} over {a}": at_least("", "", differences(of(speed, b), of(speed, a))) for a, b in ((2, 6), (6, 14))
        }
        faster = "today's processors are faster than those of the paper, and latency limits the crawl"
        claims = [
            every("Throughput grows up to 14 connections, in pages per second", "peak 8.4 Mbit/s at 14", grows),
            at_least("With more it falls: 14 over 20", "worse beyond 16", differences(of(speed, 14), of(speed, 20)), reason=faster),
            at_least("The processor is saturated with 20: less than 5 % idle", "at 16", [0.05 - x for x in of("idle", 20)], reason=faster),
        ]  # fmt: skip
        head = ["connections", "pages/s", "Mbit/s", *(f"{name} time, %" for name in _TIMES)]
        rows = [
            [
                f"{r}",
                mean_and_spread(of(speed, r), 1),
                mean_and_spread(of("megabits_per_second", r), 1),
                *(mean_and_spread([100 * x for x in of(name, r)], 1) for name in _TIMES),
            ]
            for r in FAST
        ]
        x = [float(r) for r in FAST]
        rates = {"ours": (x, [float(np.mean(of(speed, r))) for r in FAST])}
        charts = [
            PaperChart("fast", "Throughput, fast servers", "connections", "pages per second", rates),
            PaperChart("processor", "Processor time of the crawl loop", "connections", "share of the time",
                       {name: (x, [100 * float(np.mean(of(name, r))) for r in FAST]) for name in _TIMES}, y_unit="%"),
        ]  # fmt: skip
        setting = (
            f"live crawls of {web.name} on loopback; latency 50 ms, 100 requests per connection, w = 0; {pages} pages"
        )
        note = "Times are those of the process with the crawl loop, from its first request until the crawl is closed."
        table = PaperTable("Throughput and processor time", head, rows)
        return [PaperItem(name, "Twenty fast servers", setting, claims, [table], charts, [note])]

    return PaperPart([_fast_run(cache, web, r, pages, seed) for seed in seeds for r in FAST], items)
