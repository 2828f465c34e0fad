"""What the status of a running crawl costs its loop: each part of it, in a crawl of 100 and of 100,000 sites (decision 55)."""

import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from statistics import median

import numpy as np

from trapline.crawler.discovery.sites import Sites
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.records import CrawlProgress
from trapline.crawler.engine.status import CrawlStatus
from trapline.crawler.engine.status_reporter import status_record
from trapline.crawler.files.status_file import StatusFile
from trapline.crawler.inspect.why_not_faster import RUNNING, why_not_faster
from trapline.crawler.speed.connection_sampler import waiting_sites
from trapline.crawler.speed.connection_states import ConnectionStates, CrawlSpeed, StoreBacklog
from trapline.crawler.speed.pace import pace_of, site_loads
from trapline.crawler.speed.what_if import what_ifs
from trapline.frontier import Frontier
from trapline.strategies import load_strategy

_PAGES = 10  # of each site
_NOW = 1_000.0


def frontier_of(sites: int, options: CrawlOptions) -> Frontier:
    """Return a frontier with waiting pages at all sites: a half may be visited, the others are delayed."""
    frontier = Frontier(load_strategy("breadth-first"), options.rules)
    frontier.add_sites(sites, 0.0, np.arange(sites, dtype=np.int32))
    frontier.add_pages(np.repeat(np.arange(sites, dtype=np.int32), _PAGES))
    frontier.discover(np.arange(sites * _PAGES, dtype=np.int32), 0.0)
    record = frontier.state.site[:sites]
    record["ready_at"][::2] = _NOW + 5.0
    record["response_s"], record["responses"] = 0.1, 1
    return frontier


def milliseconds(call: Callable[[], object], times: int = 31) -> float:
    """Return the processor time of a call: other processes may run meanwhile."""
    taken = []
    for _ in range(times):
        began = time.thread_time()
        call()
        taken.append(time.thread_time() - began)
    return 1e3 * median(taken)


def measure(sites: int, folder: Path) -> dict[str, float]:
    options = CrawlOptions(("http://a.test/",))
    frontier, known = frontier_of(sites, options), Sites(options.pause_s, {}, ())
    for number in range(sites):
        known.add(f"http://host{number}.test")
    progress = CrawlProgress(_NOW, 60.0, 9_000, 100, 90_000_000, 10 * sites, 10 * sites, sites, 90, 0.0)
    loads = site_loads(frontier, known, options.pause_s, _NOW)
    pace, alternatives = pace_of(loads, options, progress, progress), list(what_ifs(loads, options, progress))
    states = ConnectionStates(fetching=60, site_delay=40)
    speed = CrawlSpeed(states, states, waiting_sites(frontier, _NOW), StoreBacklog(3, 10**6, 10**9), 0.5)
    busiest = [(f"http://host{number}.test", 90) for number in range(6)]
    status = CrawlStatus(
        *(progress, 900.0, 9e6, lambda: busiest, [("timeout", 90)], "breadth-first", str(folder), "", math.inf, 100),
        pace=pace,
        speed=speed,
        what_ifs=alternatives,
    )
    record, given, file = status_record(status, busiest), asdict(options), StatusFile(folder)
    return {
        "look at all sites": milliseconds(lambda: waiting_sites(frontier, _NOW)),
        "loads of all sites and pace": milliseconds(
            lambda: pace_of(site_loads(frontier, known, options.pause_s, _NOW), options, progress, progress)
        ),
        "all what-ifs": milliseconds(lambda: list(what_ifs(loads, options, progress))),
        "record": milliseconds(lambda: status_record(status, busiest), 301),
        "sentence": milliseconds(lambda: why_not_faster(record, given, 1 << 40, RUNNING), 301),
        "write": milliseconds(lambda: file.write(record), 301),
    }


def main() -> None:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        few, many = (measure(sites, Path(folder)) for sites in (100, 100_000))
    print(f"{'milliseconds (median)':30}{'100 sites':>12}{'100,000 sites':>16}")
    for name, value in few.items():
        print(f"{name:30}{value:12.3f}{many[name]:16.3f}")


if __name__ == "__main__":
    main()
