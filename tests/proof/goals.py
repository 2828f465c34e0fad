"""Crawls of several processes with a goal near the end of the web. Each ends exactly at its goal."""

import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.parallel.processes_world import has, rows
from tests.proof.section import Finding, Section, by_pytest, say
from tests.testweb.webs import numbered
from trapline.crawler.files.lock import holder
from trapline.fetch.dns import hosts_text
from trapline.parallel.folder.manifest import MANIFEST, read
from trapline.testweb import Behaviour, build_web, serve

_METHOD = """
2 to 8 processes crawl a web of 16 sites with 40 pages each. Some pages fail once or always. The goal (`--max-pages`) is the number of
pages that one process finds without a goal, or up to five pages less. One or two partitions then own the last pages of the goal, and
the other partitions must give back the pages that they reserved. Each crawl runs once undisturbed, once with a partition that is
killed, and once with `parallel resize`. A crawl that has not ended after four minutes counts as hanging.

A disturbance needs a running crawl: the kill or the resize happens when all partitions run and one of them has fetched enough pages. If
the crawl ends before that, the attempt shows nothing, and the crawl is repeated up to four times. If all five attempts end too early,
the table counts the crawl as "not disturbed in time", and the claim fails. That says that the test was too slow for its machine; it
does not say that the crawl missed its goal.
"""
SITES, PAGES_A_SITE = 16, 40
COMMAND = [sys.executable, "-c", "import sys; from trapline.cli import run; sys.exit(run(sys.argv[1:]))"]
HANGS_S = 240.0
_TOO_LATE = "not disturbed in time"
_ATTEMPTS = 5  # on a busy machine a crawl may be over before it can be disturbed


@contextmanager
def served(folder: Path, sites: int) -> Iterator[list[str]]:
    """Serve the web. Yield the options for a crawl of it."""
    chance, pages = random.Random(3), sites * PAGES_A_SITE
    links = [
        [page - page % PAGES_A_SITE + (page + step) % PAGES_A_SITE for step in (1, 7)] + [chance.randrange(pages)]
        for page in range(pages)
    ]
    behaviour = Behaviour(latency_s=0.005, faults=(("unavailable-once", 0.04), ("error", 0.02)), retry_after_s=0)
    with serve(build_web(numbered(sites, PAGES_A_SITE, links), behaviour)) as server:
        hosts = folder / "hosts"
        hosts.write_text(hosts_text({name: [address] for name, address in server.hosts.items()}))
        polite = ["--delay", "0", "--pause", "0", "--backoff", "0.1", "--connections", "20"]
        yield [*server.seed_urls, "--scope", "any", "--allow-private", "--hosts", str(hosts), *polite]


def pages_of(folder: Path) -> int:
    return int(rows(folder, "select count(distinct page) from fetch where result = 3")[0][0])


def crawled(folder: Path, options: list[str], disturb: Callable[[Path], bool]) -> str:
    """Return how the crawl ended: its number of pages, or the error."""
    process = subprocess.Popen([*COMMAND, "crawl", "--quiet", "-o", str(folder), *options])
    was_disturbed = disturb(folder)
    try:
        code = process.wait(HANGS_S)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        process.wait(60.0)
        return "hangs"
    if not was_disturbed:
        return _TOO_LATE
    return f"{pages_of(folder)} pages" if code == 0 else f"exit code {code}"


def leave_undisturbed(folder: Path) -> bool:
    return True


def kill_one(folder: Path) -> bool:
    """Kill one of the partitions once it has fetched something."""
    processes = [process for part in running_parts(folder, least=200) if (process := holder(part))]
    if processes:
        os.kill(random.choice(processes), signal.SIGKILL)
    return bool(processes)


def resize(folder: Path) -> bool:
    size = str(len(running_parts(folder, least=200)) + 1)
    return subprocess.run([*COMMAND, "parallel", "resize", str(folder), size], capture_output=True).returncode == 0


def running_parts(folder: Path, least: int) -> list[Path]:
    """Return the folders of the partitions, once all run and one has its share of `least` fetches. Return none if that takes too long."""
    end = time.monotonic() + HANGS_S / 2
    while time.monotonic() < end:
        time.sleep(0.05)
        if (folder / MANIFEST).exists():
            parts = list(read(folder).parts)
            if all(map(holder, parts)) and any(has(part, least // len(parts)) for part in parts):
                return parts
    return []


DISTURBANCES = {"undisturbed": leave_undisturbed, "killed": kill_one, "resized": resize}


def run(full: bool) -> Iterator[Finding]:
    sizes, missing = (range(2, 9), (0, 1, 2, 5)) if full else ((2,), (1,))
    kinds = DISTURBANCES if full else {"undisturbed": leave_undisturbed}
    with tempfile.TemporaryDirectory() as place, served(Path(place), SITES if full else 4) as options:
        crawled(Path(place) / "whole", options, leave_undisturbed)
        there = pages_of(Path(place) / "whole")
        for kind, disturb in kinds.items():
            ends: Counter[str] = Counter()
            for at, (size, less) in enumerate(itertools.product(sizes, missing)):
                goal = there - less
                wanted = [*options, "--processes", str(size), "--max-pages", str(goal)]
                for attempt in range(_ATTEMPTS):
                    end = crawled(Path(place) / f"{kind}-{at}-{attempt}", wanted, disturb)
                    if end != _TOO_LATE:
                        break
                ends["at its goal" if end == f"{goal} pages" else f"{end}, {size} processes, goal {goal}"] += 1
                say(f"{kind}: {size} processes, goal {goal}: {end}")
            claim = f"Every crawl by {min(sizes)} to {max(sizes)} processes ends exactly at its goal ({kind})."
            measured = "; ".join(f"{count} {end}" for end, count in ends.items())
            yield Finding(claim, f"of {sum(ends.values())} crawls: {measured}", set(ends) == {"at its goal"})
    if full:
        yield by_pytest(
            "If the connection between two hosts is interrupted for 20 s, no page is lost or fetched twice.",
            "tests/parallel/test_namespaces.py",
            env={"TRAPLINE_CUT_SECONDS": "20"},
        )


SECTION = Section("Page limits of parallel crawls", _METHOD, run)
