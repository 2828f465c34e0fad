"""SIGKILL of the loop, of its store, or of both, at random moments of a live crawl: the resumed crawl ends like an undisturbed one.

It fetches the same pages. Every archive can be read to its end. No committed page is requested again, and all runs together break no
rule of politeness. `TRAPLINE_KILLS=20` kills more often; `make proof` kills 200 times (tests/proof/durability.py).
"""

import itertools
import json
import os
import random
import signal
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

from warcio.archiveiterator import ArchiveIterator

from tests.crawler.kill_world import (
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
from tests.effort import slow
from trapline.crawler.engine.run import open_crawl
from trapline.testweb import Promise, RequestLog, check

KILLS = int(os.environ.get("TRAPLINE_KILLS", "3"))
PAGES_A_KILL, SITES_A_KILL = 160, 10
PROMISE = Promise(DELAY_S, PER_CONNECTION, PAUSE_S)
WHEN = ("crawling", "resuming", "snapshot", "closing", "starting", "crawling", "sorting")
WHOM = ("loop", "both", "store")


def reach(when: str, run: Run, folder: Path, goal: int, chance: random.Random) -> bool:
    """Wait until the run reaches a moment. Return False if the run ended before."""
    if when == "starting":
        time.sleep(chance.uniform(0.0, 1.5))
    elif when == "resuming":  # the store repairs the files and the log is replayed; no request is sent yet
        run.wait_for(lambda: run.store > 0)
        time.sleep(chance.uniform(0.0, 0.3))
    elif run.wait_for(lambda: fetches(folder) >= goal):
        reach_within_crawl(when, run, folder, chance)
    return run.poll()


def reach_within_crawl(when: str, run: Run, folder: Path, chance: random.Random) -> None:
    """Wait, during the crawl, for a moment that may be short."""
    if when == "snapshot":
        before = set(folder.glob("snapshot/*"))
        run.wait_for(lambda: not before >= set(folder.glob("snapshot/*")), look_again_s=0.0)
        return
    if when != "crawling":
        run.send(signal.SIGINT, run.loop)
    if when == "sorting":
        run.wait_for(lambda: any(folder.glob(".index.cdxj.*")))
    else:
        time.sleep(chance.uniform(0.0, 0.2))


def kill(run: Run, whom: str) -> None:
    if whom == "store" and not run.store:
        whom = "loop"
    run.send(signal.SIGKILL, *{"loop": [run.loop], "store": [run.store], "both": [run.loop, run.store]}[whom])


def check_archives(folder: Path) -> None:
    """Check that warcio reads every archive to its end and finds the records that the database lists."""
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


def one_kill(folder: Path, when: str, chance: random.Random) -> str:
    """Run and kill once. Return the moment and the killed process, or "" if the run ended normally."""
    whom, goal = chance.choice(WHOM), fetches(folder) + 1 + chance.randrange(PAGES_A_KILL // 2)
    with Run("--resume", folder) as run:
        reached = reach(when, run, folder, goal, chance)
        if reached:
            kill(run, whom)
        code, said = run.ended()
    if reached and whom == "store" and code == 2:
        assert said.count("error:") == 1 and "continue with --resume" in said
    else:
        assert code == 0 or (reached and code == -signal.SIGKILL), said
    return f"{when} {whom}" if code else ""


class Killed(NamedTuple):
    """A crawl that was killed and resumed until it was complete, and an undisturbed crawl of the same web."""

    folder: Path
    whole: dict[str, int]  # result of each URL in the undisturbed crawl
    kills: Counter[str]  # by moment and process
    ledger: Ledger
    log: RequestLog

    def check_pages(self) -> None:
        assert settled(self.folder) == self.whole and FETCHED in self.whole.values()

    def check_archives(self) -> None:
        check_archives(self.folder)

    def check_requests(self) -> list[int]:
        """Return, for each run, how many requests were lost."""
        lost = self.ledger.lost(self.log)
        assert max(lost) <= MOST_IN_FLIGHT and lost[-1] == 0
        return lost

    def check_politeness(self) -> None:
        assert check(self.log, PROMISE).violations == 0
        assert json.loads((self.folder / "summary.json").read_text())["politeness_violations"] == 0


def killed(place: Path, kills: int, seed: int) -> Killed:
    """Crawl the web of this seed, and kill the crawl `kills` times at random moments; fewer times if it ends before."""
    chance, done = random.Random(seed), Counter[str]()
    with served(PAGES_A_KILL * kills, SITES_A_KILL * kills, seed) as server:
        open_crawl(options_of(server), place / "undisturbed", nullcontext(lambda standing: None))
        whole = settled(place / "undisturbed")
        folder = prepared(place / "killed", options_of(server))
        ledger = Ledger(server, len(server.log()))
        for when in itertools.cycle(WHEN):
            done.update(filter(None, [one_kill(folder, when, chance)]))
            ledger.run_ended(folder)
            if done.total() == kills or len(settled(folder)) == len(whole):
                break
        finished("--resume", folder)
        ledger.run_ended(folder)
        return Killed(folder, whole, done, ledger, server.log())


@slow
def test_a_crawl_that_is_killed_at_any_moment_ends_like_an_undisturbed_one(tmp_path: Path) -> None:
    seed = int(os.environ.get("TRAPLINE_SEED", "1"))
    crawl = killed(tmp_path, KILLS, seed)
    assert crawl.kills
    crawl.check_pages()
    assert REFUSED in crawl.whole.values()
    crawl.check_archives()
    lost = crawl.check_requests()
    print(f"\nseed {seed}: {dict(crawl.kills)}\n{len(crawl.whole)} pages; lost requests, by run: {lost}")
    crawl.check_politeness()
