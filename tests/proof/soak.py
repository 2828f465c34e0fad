"""An hour of crawling and refreshing a web with faults: memory and file descriptors stay flat."""

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
A web of 60 sites with the faults of the section on politeness is crawled with `--continuous`: once all pages are known, they are fetched
again and again. Every five seconds the resident memory and the open file descriptors of the crawl's process and of its store are noted.
The last quarter of the time is compared with the second one, when all pages are known.
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
    """Exit code, fetches, samples."""
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
    """The medians of the second and of the last quarter."""
    quarter = max(len(values) // 4, 1)
    return median(values[quarter : 2 * quarter]), median(values[-quarter:])


def run(full: bool) -> Iterator[Finding]:
    seconds, every_s = (3_600.0, 5.0) if full else (8.0, 0.5)
    with tempfile.TemporaryDirectory() as scratch:
        code, fetches, samples = soaked(Path(scratch), seconds, every_s)
    yield Finding(
        "The crawl runs to its end and stops in order.", f"{fetches:,} fetches in {seconds / 60:.0f} minutes", code == 0
    )
    if not full:
        return
    loops, stores, open_files = (list(column) for column in zip(*samples, strict=True))
    for name, values in (("the crawl's process", loops), ("its store", stores)):
        before, after = quarters(values)
        measured = f"{before / 1e6:.1f} MB, then {after / 1e6:.1f} MB"
        yield Finding(f"The memory of {name} grows by at most 5 %.", measured, after <= 1.05 * before)
    before, after = quarters(open_files)
    yield Finding("No file descriptors are lost.", f"{before:.0f}, then {after:.0f}", after <= before + 5)


SECTION = Section("Soak", _METHOD, run)
