"""A Scrapy crawl that is killed again and again. The server's log says which pages were requested in which run."""

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trapline.graph import Graph, generate
from trapline.testweb import Behaviour, build_web, serve

ROOT = Path(__file__).parents[2]
CONCURRENT = 16  # requests that Scrapy has in progress at most
_SETTINGS = {
    "CONCURRENT_REQUESTS": CONCURRENT,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 4,
    "DOWNLOAD_DELAY": 0.0,
    "LOG_LEVEL": "WARNING",
}
_MOST_S = 300.0  # of one run


class KilledCrawl(NamedTuple):
    pages: int  # that the seeds lead to
    kills: int
    lost: list[str]  # pages that were never requested, or whose callback never ran to its end
    repeated: list[int]  # for each run, how many of its requests a later run repeated
    done_s: list[float]  # of repeated pages whose callback had ended: how long before the kill
    twice_in_a_run: int


def killed_crawl(folder: Path, pages: int, sites: int, kills: int, seed: int = 1) -> KilledCrawl:
    """Crawl a generated web, and kill the crawl at random moments: while it starts, resumes or crawls."""
    graph, chance = generate(pages, sites, seed=seed), random.Random(seed)
    web = build_web(graph, Behaviour(latency_s=0.01), names="address", sites_per_address=1, seed=seed)
    log, runs, killed_at = folder / "log", list[int](), list[float]()
    with serve(web) as server:
        command = [sys.executable, "-m", "tests.scrapy.spiders", "Whole", json.dumps(server.seed_urls[:3])]
        command += [str(folder / "job"), str(log), json.dumps(_SETTINGS)]
        while True:
            before = len(server.log())
            process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            try:
                if len(runs) < kills:
                    _reach(process, lambda: len(server.log()) - before, 2 * pages // (3 * kills), chance)  # noqa: B023
                    process.send_signal(signal.SIGKILL)
                killed_at.append(time.time())
                complaints = process.communicate(timeout=_MOST_S)[1]
            finally:
                process.kill()
            time.sleep(0.05)  # the server may still be reading what a dead process sent
            runs.append(len(server.log()))
            if process.returncode == 0:
                break
            assert process.returncode == -signal.SIGKILL, complaints
        requests = [server.web.url(page) for page in server.log().page.tolist()]
        wanted = {server.web.url(page) for page in _reachable(graph, list(server.web.home[:3]))}
    ended = [line.split() for line in log.read_text().splitlines()]
    lost = wanted - set(requests) | wanted - {url for url, _ in ended}
    parts = [requests[begin:end] for begin, end in zip([0, *runs], runs, strict=False)]
    return _judged(parts, [(url, float(at)) for url, at in ended], killed_at, sorted(lost), len(wanted))


def _reach(process: "subprocess.Popen[str]", requests: object, pages_a_kill: int, chance: random.Random) -> None:
    """Wait until a random moment of a run, or until the run has ended."""
    assert callable(requests)
    give_up_at = time.monotonic() + _MOST_S
    if chance.random() < 0.2:  # while it starts or resumes
        time.sleep(chance.uniform(0.0, 3.0))
        return
    goal = chance.randrange(2 * pages_a_kill)
    while requests() <= goal and process.poll() is None and time.monotonic() < give_up_at:
        time.sleep(0.005)
    time.sleep(chance.uniform(0.0, 0.1))


def _reachable(graph: Graph, seeds: list[int]) -> set[int]:
    found, new = set(seeds), list(seeds)
    while new:
        for target in np.unique(graph.targets_of(new.pop())).tolist():
            if target not in found:
                found.add(target)
                new.append(target)
    return found


def _judged(
    runs: list[list[str]], ended: list[tuple[str, float]], killed_at: list[float], lost: list[str], pages: int
) -> KilledCrawl:
    repeated, done_s = [], list[float]()
    for number, (run, end) in enumerate(zip(runs, killed_at, strict=True)):
        again = set(run) & {url for other in runs[number + 1 :] for url in other}
        repeated.append(len(again))
        begin = killed_at[number - 1] if number else 0.0
        done_s += [end - at for url, at in ended if url in again and begin < at < end]
    twice = sum(count - 1 for run in runs for count in Counter(run).values())
    return KilledCrawl(pages, len(runs) - 1, lost, repeated, done_s, twice)
