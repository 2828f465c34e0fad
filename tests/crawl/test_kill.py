"""SIGKILL at random moments of a live crawl, of the loop, of its store, or of both: it goes on as if nothing had been.

The pages in the end are those of an undisturbed crawl; every archive can be read to its end; what is committed is never asked for
again, and no rule of politeness is broken over all runs together. `TRAPLINE_KILLS=20` kills more often (make proof).
"""

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.crawl.kill_world import (
    DELAY_S,
    PAUSE_S,
    PER_CONNECTION,
    Ledger,
    Run,
    fetches,
    finished,
    options_of,
    prepared,
    rows,
    served,
    settled,
)
from trapline.testweb import Promise, Served

KILLS = int(os.environ.get("TRAPLINE_KILLS", "4"))
PAGES_A_KILL, SITES_A_KILL = 130, 10
PROMISE = Promise(DELAY_S, PER_CONNECTION, PAUSE_S)
WHEN = ("crawling", "starting", "snapshot", "closing", "crawling", "sorting")
WHOM = ("loop", "both", "store")


def come_to(when: str, run: Run, folder: Path, goal: int, chance: random.Random) -> bool:
    """Let the run come to a moment; False: it ended before."""
    if when == "starting":
        time.sleep(chance.uniform(0.0, 1.5))
        return run.look()
    if not run.wait_for(lambda: fetches(folder) >= goal):
        return False
    if when == "crawling":
        time.sleep(chance.uniform(0.0, 0.2))
        return run.look()
    if when == "snapshot":
        return run.wait_for(lambda: any(folder.glob("snapshot/*/*.new")))
    run.send(signal.SIGINT, run.loop)
    if when == "sorting":
        return run.wait_for(lambda: any(folder.glob(".index.cdxj.*")))
    time.sleep(chance.uniform(0.0, 0.3))
    return run.look()


def kill(run: Run, whom: str) -> None:
    run.send(signal.SIGKILL, *{"loop": [run.loop], "store": [run.store], "both": [run.loop, run.store]}[whom])


def check_archives(folder: Path, committed_only: bool) -> Counter[str]:
    """All records, by kind, read by somebody else's reader."""
    kinds: Counter[str] = Counter()
    for name, length in rows(folder, "select name, bytes from warc order by id"):
        path = folder / "warc" / name
        assert path.stat().st_size == length or (committed_only and path.stat().st_size > length)
        with path.open("rb") as file:
            for record in ArchiveIterator(file, check_digests=True):
                record.content_stream().read()
                assert record.digest_checker.passed is not False
                kinds[record.rec_type] += 1
    return kinds


@pytest.fixture(scope="module")
def server():  # type: ignore[no-untyped-def]
    with served(PAGES_A_KILL * KILLS, SITES_A_KILL * KILLS) as server:
        yield server


def test_killed_at_any_moment_a_crawl_ends_as_if_undisturbed(server: Served, tmp_path: Path) -> None:
    undisturbed = prepared(tmp_path / "undisturbed", options_of(server))
    finished("--resume", undisturbed)
    ledger = Ledger(server, [len(server.log())])
    ledger.committed.append(set())
    folder = prepared(tmp_path / "killed", options_of(server))
    chance = random.Random(os.environ.get("TRAPLINE_SEED", "1"))
    killed: Counter[str] = Counter()
    while killed.total() < KILLS:
        when, whom = WHEN[killed.total() % len(WHEN)], chance.choice(WHOM)
        goal = fetches(folder) + 1 + chance.randrange(PAGES_A_KILL // 2)
        with Run("--resume", folder) as run:
            if come_to(when, run, folder, goal, chance):
                kill(run, whom)
                killed[f"{when} {whom}"] += 1
            code, said = run.ended()
        assert code in (0, 2, -signal.SIGKILL), said
        ledger.run_ended(folder)
    finished("--resume", folder)
    ledger.run_ended(folder)
    print(killed, ledger.lost())
    assert settled(folder) == settled(undisturbed)
