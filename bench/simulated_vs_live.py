"""Measures how well the simulator predicts live crawls: python bench/simulated_vs_live.py [GRAPH ...] [options]

Each web is crawled twice with each strategy, simulated and live against testweb, whose servers have the same numbers
(trapline.lab.live_servers). The first table has the error of the predicted quality over time after the first tenth of the crawl
(thesis, figure 4.15). The second table compares HTTP/1.0, HTTP/1.1 and pipelining (cao, figure 4).

The end of a whole crawl waits for the few sites with the most pages, so a crawl stops after a share of the pages. Without GRAPH,
three generated webs are crawled. `--times` makes the servers faster, so that a run takes minutes; live crawls then depend more on the
speed of the crawler itself.
"""

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from trapline.cli.warmup import compile_all
from trapline.graph import Graph, generate, load_graph
from trapline.lab.live_servers import LiveSetting, compared, protocol_batches, protocol_ratios
from trapline.servers.model import model_named, sped_up

GENERATED = ((1_000, 100, 1), (2_000, 100, 2), (2_000, 400, 3))  # pages, sites, seed


def webs(named: list[Path]) -> Iterator[tuple[str, Graph]]:
    for path in named:
        yield path.name, load_graph(path)
    for pages, sites, seed in () if named else GENERATED:
        yield f"generated, {pages:,} pages, {sites:,} sites", generate(pages, sites, seed=seed)


def quality(name: str, given: LiveSetting) -> dict[str, object]:
    found = compared(given)
    plain = found.plain
    rates = f"{plain.simulated_pages_per_second:.1f} | {plain.live_pages_per_second:.1f}"
    errors = " | ".join(
        f"{one.largest_error:+.1%} | {one.mean_error:.1%} | {one.within_5_percent:.0%}"
        for one in (plain, found.with_own_time)
    )
    print(f"| {name} | {given.strategy} | {rates} | {1000 * found.own_s:.0f} | {errors} |", flush=True)
    return {"web": name, "strategy": given.strategy, **asdict(found)}


def protocols(name: str, given: LiveSetting, connections: list[int]) -> list[dict[str, object]]:
    batches = protocol_batches(given, connections, connections)
    for predicted, actual in zip(protocol_ratios(batches, False), protocol_ratios(batches, True), strict=True):
        ours, theirs = (f"{one.persistent:.2f} | {one.pipelining:.2f}" for one in (predicted, actual))
        print(f"| {name} | {predicted.connections} | {ours} | {theirs} |", flush=True)
    return [{"web": name, **asdict(one)} for one in batches]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", nargs="*", type=Path, help="graphs to crawl [three generated webs]")
    parser.add_argument("--servers", default="measured-tcp", help="model of servers, or its file [measured-tcp]")
    parser.add_argument("--times", type=float, default=1.0, help="how many times as fast servers are [1]")
    parser.add_argument(
        "--strategies", default="larger-sites-first,breadth-first", help="empty: no comparison of quality"
    )
    parser.add_argument("--connections", type=int, default=32, help="connections of each crawl [32]")
    parser.add_argument("--delay", type=float, default=2.0, help="seconds between two visits to a site [2]")
    parser.add_argument("--share", type=float, default=0.6, help="stop each crawl after this share of the pages [0.6]")
    parser.add_argument(
        "--protocols", default="16", help="connections of the comparison of protocols; empty: none [16]"
    )
    parser.add_argument("--json", type=Path, help="file for all numbers")
    return parser.parse_args()


def main() -> None:
    args = options()
    compile_all()
    model = sped_up(model_named(args.servers), args.times)
    settings = [
        (name, LiveSetting(graph, model, connections=args.connections, delay_s=args.delay, max_pages=most))
        for name, graph in webs(args.graph)
        for most in [math.ceil(args.share * graph.pages)]
    ]
    found: dict[str, list[dict[str, object]]] = {"quality": [], "protocols": []}
    strategies = [name for name in args.strategies.split(",") if name]
    print(
        "Errors of predicted quality; the last three columns are those of a simulation with the own time of the crawler\n"
    )
    print(
        "| web | strategy | pages/s simulated | live | own ms | largest | mean | within 5 % | largest | mean | within 5 % |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, given in settings:
        found["quality"] += [quality(name, replace(given, strategy=one)) for one in strategies]
    print("\n| web | connections | simulated 1.1/1.0 | pipelining/1.1 | live 1.1/1.0 | pipelining/1.1 |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, given in settings:
        found["protocols"] += protocols(name, given, [int(count) for count in args.protocols.split(",") if count])
    if args.json:
        args.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
