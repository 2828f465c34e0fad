"""Measures the cost of sending URLs to other partitions: bytes and processor time, relative to the bytes of the fetched pages.

    python bench/exchange.py [GRAPH] [--processes 8] [--exchange-every 100]

GRAPH must have URLs. Page sizes that it lacks are drawn. The default is a generated web, whose URLs are shorter than real ones.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from trapline.frontier import Rules
from trapline.graph import Graph, generate, load_graph
from trapline.graph.page_sizes import page_sizes
from trapline.graph.strings import StoredStrings, stored
from trapline.parallel.partition import Partitioning
from trapline.parallel.simulated.crawl import EXCHANGE, ExchangeRules, ParallelCrawl, ParallelPlan, simulate_parallel
from trapline.parallel.transport.url_batches import LinkRow, decode, encode
from trapline.servers.sampled import constant_servers
from trapline.strategies import strategies


def crawled(web: Graph, processes: int, exchange_every: int, filter_size: int, strategy: str) -> ParallelCrawl:
    plan = ParallelPlan(
        EXCHANGE, Partitioning("site-hash", processes), ExchangeRules(exchange_every, filter_size), keep_batches=True
    )
    rules = Rules(delay_s=0.0, ip_delay_s=0.0, per_connection=10)
    servers = constant_servers(0.1)
    return simulate_parallel(web, strategies()[strategy], rules, plan, seeds=web.home, servers=servers, connections=50)


def rows_of(crawl: ParallelCrawl, urls: StoredStrings) -> list[list[LinkRow]]:
    return [
        [LinkRow(urls[int(e.key)].encode(), int(e.links), int(e.depth), float(e.share)) for e in entries]
        for _, _, entries in crawl.batches
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph", nargs="?", type=Path, help="a graph with URLs; the default is a generated web")
    parser.add_argument("--processes", type=int, default=8, help="partitions [8]")
    parser.add_argument("--exchange-every", type=int, default=100, help="pages between two messages [100]")
    args = parser.parse_args()
    web = load_graph(args.graph) if args.graph else generate(100_000, 1000)
    assert web.urls is not None
    urls = stored(web.urls)
    sizes = page_sizes(0, web.site) if web.sizes is None else web.sizes
    print(
        f"{web.pages:,} pages, {web.sites:,} sites, {args.processes} partitions, sent every {args.exchange_every} pages"
    )
    for strategy, filter_size in (
        ("backlink-count", 0),
        ("opic", 0),
        ("larger-sites-first", 0),
        ("larger-sites-first", 1 << 16),
    ):
        crawl = crawled(web, args.processes, args.exchange_every, filter_size, strategy)
        batches = rows_of(crawl, urls)
        sent = sum(map(len, batches))
        if not sent:
            print(f"  {strategy}: nothing was exchanged")
            continue
        began = time.process_time()
        coded = [encode(batch) for batch in batches]
        coding = time.process_time()
        for message in coded:
            decode(message)
        decoding = time.process_time()
        text = sum(len(row.url) for batch in batches for row in batch)
        size, fetched = sum(map(len, coded)), sum(int(sizes[log.page].sum()) for log in crawl.logs)
        print(
            f"  {strategy:20}filter {filter_size:6,}  {sent:8,} URLs in {len(batches):6,} messages: {size / sent:5.1f} bytes a URL"
            f" ({size / text:.2f} of its text), {size / fetched:.4%} of the {fetched / 1e6:,.0f} MB fetched;"
            f" {1e6 * (coding - began) / sent:.1f} us to code, {1e6 * (decoding - coding) / sent:.1f} us to decode"
        )


if __name__ == "__main__":
    np.seterr(all="raise")
    main()
