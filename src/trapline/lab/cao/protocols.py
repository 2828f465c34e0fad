"""Throughput by protocol in `cao` (fig. 4): HTTP/1.0, HTTP/1.1 and pipelining, simulated and live.

Servers have slow start, server time that does not overlap, and a cost of closing, because these are what the protocols differ in.
Live crawls fetch small webs from servers that are several times as fast, so that they take seconds.
"""

from collections.abc import Sequence

import numpy as np

from trapline.frontier import Rules
from trapline.lab.live_servers import BATCH_SHARE, LiveSetting, protocol_batches
from trapline.lab.paper import (
    PaperChart,
    PaperClaim,
    PaperItem,
    PaperPart,
    PaperTable,
    Results,
    at_least,
    at_most,
    within,
)
from trapline.lab.simulated import mean_and_spread
from trapline.lab.study import Result, StudyRun
from trapline.lab.webs import WebCache, WebSource
from trapline.servers.model import MODELS, sped_up
from trapline.servers.sampled import modelled_servers
from trapline.simulator import simulate
from trapline.simulator.log import fetched
from trapline.simulator.network import Network
from trapline.strategies import load_strategy

PROTOCOLS = {"HTTP/1.0": "http/1.0", "HTTP/1.1": "keep-alive", "pipelining": "pipelining"}
MODEL = "measured-tcp"
_LATENCY = "most of the time is the latency of servers and slow transfer, which no protocol shortens"


# ---- simulated

CONNECTIONS = (1, 8, 32, 64, 96, 128, 192)
_BEFORE_TAIL = 0.9  # share of the pages; the last ones wait for the slowest servers


def _key(source: WebSource, protocol: str, connections: int, seed: int) -> str:
    rules = f"r = {connections}, w = 0, k as servers allow, {MODEL} servers"
    return f"{source.name}; throughput of {protocol}, {rules}, the first {_BEFORE_TAIL:.0%}, seed {seed}"


def _run(cache: WebCache, source: WebSource, protocol: str, connections: int, seed: int) -> StudyRun:
    def compute() -> Result:
        graph = cache.load(source).graph
        crawl = simulate(
            graph,
            load_strategy("breadth-first"),
            Rules(delay_s=0.0, per_connection=0, lease_s=float("inf")),
            connections=min(connections, graph.sites),
            servers=modelled_servers(graph, MODELS[MODEL], seed),
            network=Network(protocol=protocol),
            seed=seed,
        )
        end = fetched(crawl.log).end
        pages = max(1, int(_BEFORE_TAIL * len(end)))
        return {"pages_per_second": pages / float(end[pages - 1])}

    return StudyRun(_key(source, protocol, connections, seed), source.pages, compute, source.name)


def simulated_protocols(name: str, cache: WebCache, webs: Sequence[WebSource]) -> PaperPart:
    def items(results: Results) -> list[PaperItem]:
        rates = {
            (label, r): [
                float(results[_key(web, protocol, r, seed)]["pages_per_second"]) for seed, web in enumerate(webs, 1)
            ]
            for label, protocol in PROTOCOLS.items()
            for r in CONNECTIONS
        }
        x = [float(r) for r in CONNECTIONS]
        curves = {label: (x, [float(np.mean(rates[label, r])) for r in CONNECTIONS]) for label in PROTOCOLS}
        rows = [[f"{r}", *(mean_and_spread(rates[label, r], 1) for label in PROTOCOLS)] for r in CONNECTIONS]
        table = PaperTable("Pages per second", ["connections", *PROTOCOLS], rows)
        chart = PaperChart("protocols", "Throughput by protocol", "connections", "pages per second", curves)
        setting = f"simulated; breadth-first, w = 0, k as servers allow, {MODEL} servers; the first {_BEFORE_TAIL:.0%} of the pages"
        persistent = _gain(rates["HTTP/1.1", 64], rates["HTTP/1.0", 64])
        pipelining = _gain(rates["pipelining", 64], rates["HTTP/1.1", 64])
        more = _gain(rates["HTTP/1.1", 192], rates["HTTP/1.1", 96])
        claims = [
            *_claims(persistent, pipelining, "with 64 connections"),
            at_most("More than 96 connections gain nothing: 192 over 96", "no gain", more, 0.05),
        ]
        return [PaperItem(name, "Throughput by protocol, simulated", setting, claims, [table], [chart])]

    runs = [
        _run(cache, web, protocol, r, seed)
        for seed, web in enumerate(webs, 1)
        for protocol in PROTOCOLS.values()
        for r in CONNECTIONS
    ]
    return PaperPart(runs, items)


# ---- live

LIVE_CONNECTIONS = 16
FASTER = 4.0  # times as fast as the model's servers
MAX_TRANSFER_S = 1.0  # larger pages are made smaller
_LIVE_COST = 3_000_000  # duration of three live crawls, in pages of a simulated one


def _live_key(source: WebSource, seed: int) -> str:
    servers = f"{MODEL} servers, {FASTER:g} times as fast, transfers up to {MAX_TRANSFER_S:g} s"
    rules = f"r = {LIVE_CONNECTIONS}, {BATCH_SHARE:.0%} of the pages"
    return f"{source.name}; live batches by protocol, {rules}, {servers}, seed {seed}"


def _live_run(cache: WebCache, source: WebSource, seed: int) -> StudyRun:
    def compute() -> Result:
        model = sped_up(MODELS[MODEL], FASTER)
        given = LiveSetting(cache.load(source).graph, model, max_transfer_s=MAX_TRANSFER_S, seed=seed)
        batches = protocol_batches(given, [LIVE_CONNECTIONS], [LIVE_CONNECTIONS])
        return {one.protocol: {"simulated": one.simulated, "live": one.live} for one in batches}

    return StudyRun(_live_key(source, seed), _LIVE_COST, compute, source.name, is_timed=True)


def live_protocols(name: str, cache: WebCache, webs: Sequence[WebSource]) -> PaperPart:
    """Each batch of known pages is fetched live and, from the same servers, simulated."""
    title = "Throughput by protocol, live"

    def items(results: Results) -> list[PaperItem]:
        def rates(protocol: str, how: str) -> list[float]:
            found = [results[_live_key(web, seed)] for seed, web in enumerate(webs, 1)]
            return [float(one[PROTOCOLS[protocol]][how]) for one in found]

        def gains(one: str, other: str, how: str) -> list[float]:
            return _gain(rates(one, how), rates(other, how))

        pairs = (("HTTP/1.1", "HTTP/1.0"), ("pipelining", "HTTP/1.1"))
        live = [gains(*pair, "live") for pair in pairs]
        errors = [
            within(
                f"The simulator predicts the speed of {one} relative to {other} within 10 %",
                "not in the paper",
                [(1 + a) / (1 + b) - 1 for a, b in zip(gains(one, other, "simulated"), actual, strict=True)],
                0.1,
            )
            for (one, other), actual in zip(pairs, live, strict=True)
        ]
        rows = [
            [label, *(mean_and_spread(rates(label, how), 1) for how in ("simulated", "live"))] for label in PROTOCOLS
        ]
        table = PaperTable("Pages per second", ["protocol", "simulated", "live"], rows)
        setting = (
            f"batches of known pages, live on loopback and simulated; r = {LIVE_CONNECTIONS}, w = 0, {MODEL} servers, "
            f"{FASTER:g} times as fast, no page takes more than {MAX_TRANSFER_S:g} s to transfer; "
            f"the first {BATCH_SHARE:.0%} of the pages"
        )
        claims = [*_claims(live[0], live[1], f"live, with {LIVE_CONNECTIONS} connections"), *errors]
        return [PaperItem(name, title, setting, claims, [table])]

    return PaperPart([_live_run(cache, web, seed) for seed, web in enumerate(webs, 1)], items)


# ---- both


def _gain(one: Sequence[float], other: Sequence[float]) -> list[float]:
    return [a / b - 1 for a, b in zip(one, other, strict=True)]


def _claims(persistent: Sequence[float], pipelining: Sequence[float], where: str) -> list[PaperClaim]:
    """Judge the gains of HTTP/1.1 over HTTP/1.0, and of pipelining over HTTP/1.1."""
    return [
        at_least(f"HTTP/1.1 is faster than HTTP/1.0 {where}: gain", "more than twice", persistent),
        at_least("It is more than twice as fast: gain above 1", "more than twice", persistent, 1.0, _LATENCY),
        at_least("Pipelining is a little faster than HTTP/1.1: gain", "a little", pipelining),
    ]
