"""An hour of crawling and refreshing a web with faults: the use of memory and file descriptors does not grow."""

import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.proof.goals import COMMAND
from tests.proof.politeness import options, web_of
from tests.proof.scale import children, resident
from tests.proof.section import Finding, Section, say
from trapline.testweb import serve

_METHOD = """
A web of 60 sites, with the faults of the section "Politeness", is crawled with `--continuous`: when all pages are known, the crawl
keeps refetching them. Every five seconds the resident memory and the number of open file descriptors are recorded, for the crawl's
process and for its store. The last quarter of the time is compared with the second quarter, in which all pages are known.
"""


class Sample(NamedTuple):
    loop_bytes: int
    store_bytes: int
    descriptors: int


def sampled(process: int) -> Sample:
    stores = children(process)
    return Sample(resident(process), sum(map(resident, stores)), sum(map(descriptors, [process, *stores])))


def descriptors(process: int) -> int:
    with suppress(OSError):
        return len(list(Path(f"/proc/{process}/fd").iterdir()))
    return 0


def soaked(place: Path, seconds: float, every_s: float) -> tuple[int, int, list[Sample]]:
    """Return the exit code, the number of fetches, and the samples."""
    with serve(web_of(60, 50)) as server:
        refresh = ["--continuous", "--refresh-rate", "200"]
        command = [*COMMAND, "crawl", "-o", str(place / "crawl"), *options(server, place), *refresh]
        process, samples = subprocess.Popen(command), list[Sample]()
        end = time.monotonic() + seconds
        while time.monotonic() < end and process.poll() is None:
            time.sleep(every_s)
            samples.append(sampled(process.pid))
            if len(samples) % 60 == 0:
                say(f"{(end - time.monotonic()) / 60:.0f} minutes left: {samples[-1]}")
        process.send_signal(signal.SIGINT)
        code = process.wait(120)
    with closing(sqlite3.connect(place / "crawl" / "crawl.db")) as database:
        (fetches,) = database.execute("select count(*) from fetch").fetchone()
    return code, fetches, samples


def quarters(values: Sequence[int]) -> tuple[float, float]:
    """Return the medians of the second and of the last quarter."""
    quarter = max(len(values) // 4, 1)
    return median(values[quarter : 2 * quarter]), median(values[-quarter:])


def run(full: bool) -> Iterator[Finding]:
    seconds, every_s = (3_600.0, 5.0) if full else (8.0, 0.5)
    with tempfile.TemporaryDirectory() as scratch:
        code, fetches, samples = soaked(Path(scratch), seconds, every_s)
    yield Finding(
        "The crawl runs for the whole time and stops normally.",
        f"{fetches:,} fetches in {seconds / 60:.0f} minutes",
        code == 0,
    )
    if not full:
        return
    loops, stores, open_files = (list(column) for column in zip(*samples, strict=True))
    for name, values in (("the crawl's process", loops), ("its store", stores)):
        before, after = quarters(values)
        measured = f"{before / 1e6:.1f} MB, then {after / 1e6:.1f} MB"
        yield Finding(f"The memory of {name} grows by at most 5 %.", measured, after <= 1.05 * before)
    before, after = quarters(open_files)
    yield Finding(
        "The number of open file descriptors does not grow.", f"{before:.0f}, then {after:.0f}", after <= before + 5
    )


SECTION = Section("Long-running crawl", _METHOD, run)
