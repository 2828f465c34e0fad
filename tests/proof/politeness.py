"""A crawl of several processes is polite by the log of its servers, although servers fail, partitions die and the crawl grows."""

import os
import random
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.proof.goals import COMMAND, running_parts
from tests.proof.section import Finding, Section, by_pytest, say
from tests.testweb.webs import numbered
from trapline.crawler.files.lock import holder
from trapline.fetch.dns import hosts_text
from trapline.testweb import Behaviour, Mix, Promise, RequestLog, Served, ServedWeb, build_web, check, serve
from trapline.testweb.answers.message import ROBOTS_FILE
from trapline.testweb.web.behaviour import behaviours

_METHOD = """
500 sites, three on each address, have robots.txt files of every kind: rules, no file, redirects to the same or to another site, errors,
and Crawl-delays below, equal to and above the delay of the crawl. Their pages redirect, refuse, and send slow, broken and hostile
answers. One command crawls them with `--processes 2`. Every half minute a partition is killed, and twice the crawl is resized while it
runs. The servers log each request and each answer. The claims are checked on this log alone, by
`src/trapline/testweb/checks/politeness.py`, which shares no code with the crawler.
"""
PROMISE = Promise(delay_s=0.1, per_connection=20, pause_s=0.0)
FAULTS = (
    *(
        ("not-found", 0.02),
        ("error", 0.01),
        ("too-many", 0.001),
        ("unavailable-once", 0.002),
        ("chunked", 0.05),
        ("gzip", 0.05),
    ),
    *(
        (fault, 0.0005)
        for fault in ("silent", "dribble", "short-body", "bad-chunks", "garbage", "endless-headers", "reset")
    ),
    *(("no-length", 0.02), ("empty", 0.0005), ("endless-body", 0.0005), ("broken-gzip", 0.0005)),
)
REDIRECTS = (("plain", 0.02), ("chain", 0.01), ("away", 0.02), ("loop", 0.005))
ROBOTS = (
    ("none", 0.2),
    ("redirect", 0.1),
    ("away", 0.1),
    ("error", 0.02),
    ("reset", 0.02),
    ("loop", 0.02),
    ("huge", 0.05),
)


def web_of(sites: int, pages: int) -> ServedWeb:
    base = Behaviour(
        latency_s=0.001, robots="rules", disallowed=0.2, redirects=REDIRECTS, faults=FAULTS, retry_after_s=1
    )
    drawn = behaviours(Mix(base, measured_requests=True, http10=0.05, robots=ROBOTS), sites, seed=1)
    delays = (0.05, 0.1, 0.2, 0.0, 0.0, 0.0)
    # After a redirect a Crawl-delay is not known at once, and the log does not show when it became known.
    polite = [
        replace(one, crawl_delay_s=delays[site % 6] if one.robots in ("rules", "huge") else 0.0)
        for site, one in enumerate(drawn)
    ]
    return build_web(numbered(sites, pages, links_of(sites, pages)), polite, sites_per_address=3, seed=1)


def links_of(sites: int, pages: int) -> list[list[int]]:
    """Return the links. Every site is a tree with two more links within it and one to any page, so that few pages depend on a single
    other one."""
    chance, links = random.Random(2), []
    for page in range(sites * pages):
        home, place = page - page % pages, page % pages
        within = [2 * place + 1, 2 * place + 2, chance.randrange(pages), chance.randrange(pages)]
        links.append([home + target for target in within if target < pages] + [chance.randrange(sites * pages)])
    return links


def options(server: Served, folder: Path) -> list[str]:
    hosts, seeds = folder / "hosts", folder / "seeds"
    hosts.write_text(hosts_text({name: [address] for name, address in server.hosts.items()}))
    seeds.write_text("\n".join(server.seed_urls))
    options_by_name = {
        "--seeds": seeds, "--hosts": hosts, "--scope": "any", "--connections": 200, "--delay": PROMISE.delay_s,
        "--per-connection": PROMISE.per_connection, "--pause": 0, "--backoff": 0.2, "--max-backoff": 0.5, "--timeout": 2,
        "--max-body": "300kB", "--retries": 1, "--max-failed-visits": 50,
    }  # fmt: skip
    return ["--quiet", "--allow-private", *(str(part) for pair in options_by_name.items() for part in pair)]


class Disturber(threading.Thread):
    """Kills a partition at intervals, up to a number of kills, and sometimes lets the crawl grow first."""

    def __init__(self, folder: Path, every_s: float, most_kills: int, growths: int) -> None:
        super().__init__(daemon=True)
        self._folder, self._every_s, self._most_kills, self._growths = folder, every_s, most_kills, growths
        self.kills, self.resizes, self.over = 0, 0, threading.Event()

    def run(self) -> None:
        chance = random.Random(1)
        while self.kills < self._most_kills and not self.over.wait(self._every_s):
            parts = running_parts(self._folder, least=0)
            if self.kills % 3 == 2 and self.resizes < self._growths:
                size = str(len(parts) + 1)
                done = subprocess.run([*COMMAND, "parallel", "resize", str(self._folder), size], capture_output=True)
                self.resizes += done.returncode == 0
            processes = [process for process in map(holder, parts) if process]
            if processes and not self.over.is_set():
                os.kill(chance.choice(processes), signal.SIGKILL)
                self.kills += 1
                say(f"{self.kills} kills, {self.resizes} resizes")


def crawled(server: Served, place: Path, disturber: Disturber, limit_s: float) -> int:
    """Return the exit code of the crawl. A goal of time ends it if it is slow."""
    folder = place / "crawl"
    command = [
        *COMMAND,
        "crawl",
        "-o",
        str(folder),
        "--processes",
        "2",
        "--max-time",
        str(limit_s),
        *options(server, place),
    ]
    disturber.start()
    code = subprocess.run(command).returncode
    disturber.over.set()
    disturber.join()
    return code


def before_robots(log: RequestLog) -> int:
    """Return the number of sites whose first request was not for robots.txt."""
    rows = np.argsort(log.arrival_s, kind="stable")
    rows = rows[log.site[rows] >= 0]
    _, first = np.unique(log.site[rows], return_index=True)
    return int((log.page[rows[first]] != ROBOTS_FILE).sum())


def run(full: bool) -> Iterator[Finding]:
    sites, pages, kills, limit_s = (500, 3_600, 20, 3_000.0) if full else (30, 20, 0, 20.0)
    with tempfile.TemporaryDirectory() as scratch, serve(web_of(sites, pages)) as server:
        disturber = Disturber(Path(scratch) / "crawl", 30.0, kills, growths=2)
        began = time.monotonic()
        code = crawled(server, Path(scratch), disturber, limit_s)
        log, minutes = server.log(), (time.monotonic() - began) / 60
        found = check(log, PROMISE)
    disturbed = f"{disturber.kills} kills, {disturber.resizes} resizes"
    size = (
        f"{found.requests:,} requests to {sites} sites in {found.visits:,} visits, {minutes:.1f} minutes, {disturbed}"
    )
    yield Finding("The crawl ends normally.", f"exit code {code}; {size}", code == 0)
    if full:
        enough = found.requests >= 10**6 and disturber.kills >= 5 and disturber.resizes == 2
        yield Finding("The log has at least 10^6 requests, at least five kills and two resizes.", size, enough)
    yield Finding("No two visits to the same site or address overlap.", f"{len(found.overlaps)}", not found.overlaps)
    yield Finding("No request is sent before its delay has passed.", f"{len(found.early)}", not found.early)
    yield Finding("No path that robots.txt forbids is requested.", f"{len(found.disallowed)}", not found.disallowed)
    unasked = before_robots(log)
    yield Finding("The first request to every site is for its robots.txt.", f"{unasked} sites", unasked == 0)
    if full:
        yield by_pytest(
            "A crawl by one process, with pauses within a visit, is polite too; `audit` finds the same violations as the log.",
            "tests/crawler/test_politeness_live.py",
            env={"TRAPLINE_POLITE_SITES": "500"},
        )
        yield by_pytest(
            "A crawl keeps to its bandwidth limits, in total and per site.",
            "tests/cli/test_crawl_bandwidth.py",
            env={"TRAPLINE_BANDWIDTH_SECONDS": "6"},
        )


SECTION = Section("Politeness", _METHOD, run)
