"""SIGKILL at random moments of a live crawl, of the loop, of its store, or of both: it goes on as if nothing had been.

The pages in the end are those of an undisturbed crawl; every archive can be read to its end; what is committed is never asked for
again, and no rule of politeness is broken over all runs together. `TRAPLINE_KILLS=20` kills more often (make proof).
"""

import json
import os
import random
import signal
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

from warcio.archiveiterator import ArchiveIterator

from tests.crawl.kill_world import (
    DELAY_S,
    FETCHED,
    MOST_IN_FLIGHT,
    PAUSE_S,
    PER_CONNECTION,
    REFUSED,
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
from trapline.crawl.run import open_crawl
from trapline.testweb import Promise, check

KILLS = int(os.environ.get("TRAPLINE_KILLS", "3"))
PAGES_A_KILL, SITES_A_KILL = 130, 10
PROMISE = Promise(DELAY_S, PER_CONNECTION, PAUSE_S)
WHEN = ("crawling", "resuming", "snapshot", "closing", "starting", "crawling", "sorting")
WHOM = ("loop", "both", "store")


def come_to(when: str, run: Run, folder: Path, goal: int, chance: random.Random) -> bool:
    """Let the run come to a moment; False: it ended before."""
    if when == "starting":
        time.sleep(chance.uniform(0.0, 1.5))
        return run.look()
    if when == "resuming":  # the store puts the files right; the log is replayed, and nothing asked for yet
        reached = run.wait_for(lambda: run.store > 0)
        time.sleep(chance.uniform(0.0, 0.3))
        return reached and run.look()
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


def check_archives(folder: Path) -> None:
    """Somebody else's reader reads every archive to its end, and finds what the database says is there."""
    kinds: Counter[str] = Counter()
    for name, length in rows(folder, "select name, bytes from warc order by id"):
        with (folder / "warc" / name).open("rb") as file:
            for record in ArchiveIterator(file, check_digests=True):
                record.content_stream().read()
                assert record.digest_checker.passed is not False
                kinds[record.rec_type] += 1
            assert file.tell() == length
    answers = rows(folder, "select (select count(file) from fetch) + (select count(file) from robots)")[0][0]
    assert kinds["response"] + kinds["revisit"] == kinds["request"] == answers
    lines = (folder / "index.cdxj").read_bytes().splitlines()
    assert len(lines) == answers and lines == sorted(lines)


def one_kill(folder: Path, number: int, chance: random.Random) -> str:
    """A run that is killed, when and who; "": it ended before."""
    when, whom = WHEN[number % len(WHEN)], chance.choice(WHOM)
    goal = fetches(folder) + 1 + chance.randrange(PAGES_A_KILL // 2)
    with Run("--resume", folder) as run:
        killed = come_to(when, run, folder, goal, chance)
        if killed:
            kill(run, whom)
        code, said = run.ended()
    if killed and whom == "store" and code == 2:
        assert said.count("error:") == 1 and "go on with --resume" in said
    else:
        assert code == 0 or (killed and code == -signal.SIGKILL), said
    return f"{when} {whom}" if killed else ""


def test_killed_at_any_moment_a_crawl_ends_as_if_undisturbed(tmp_path: Path) -> None:
    seed = os.environ.get("TRAPLINE_SEED", "1")
    chance = random.Random(seed)
    with served(PAGES_A_KILL * KILLS, SITES_A_KILL * KILLS) as server:
        open_crawl(options_of(server), tmp_path / "undisturbed", nullcontext(lambda standing: None))
        whole = settled(tmp_path / "undisturbed")
        folder = prepared(tmp_path / "killed", options_of(server))
        ledger, kills = Ledger(server, len(server.log())), Counter[str]()
        while kills.total() < KILLS:
            kills.update(filter(None, [one_kill(folder, kills.total(), chance)]))
            ledger.run_ended(folder)
        finished("--resume", folder)
        ledger.run_ended(folder)
        log = server.log()
    assert settled(folder) == whole and FETCHED in whole.values() and REFUSED in whole.values()
    check_archives(folder)
    lost = ledger.lost(log)
    print(f"\nseed {seed}: {dict(kills)}\n{len(whole)} pages; asked for in vain, by run: {lost}")
    assert max(lost) <= MOST_IN_FLIGHT and lost[-1] == 0
    assert check(log, PROMISE).violations == 0
    assert json.loads((folder / "summary.json").read_text())["politeness_violations"] == 0
