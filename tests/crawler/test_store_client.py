"""The store as the loop uses it: a real process and real pipes, on asyncio and on uvloop."""

import asyncio
import os
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tests.crawler.store_world import archived, batch, check_crawl, check_digests, fetched
from trapline.crawler.engine.records import Batch
from trapline.crawler.files.layout import FolderClaim, claim_existing, claim_new
from trapline.crawler.files.reading import Reading
from trapline.crawler.store import client
from trapline.crawler.store.client import Store
from trapline.crawler.store.frames import StoreFrameKind, encode
from trapline.crawler.store.keeper import Keeper
from trapline.crawler.store.settings import StoreSettings
from trapline.errors import ConfigError

Run = Callable[[Coroutine[Any, Any, Any]], Any]


class StoreEvents:
    """The messages of the store to the loop."""

    def __init__(self) -> None:
        self.committed: list[int] = []
        self.failures: list[str] = []
        self.changed = asyncio.Event()

    def commit(self, number: int) -> None:
        self.committed.append(number)
        self.changed.set()

    def fail(self, why: str) -> None:
        self.failures.append(why)
        self.changed.set()

    async def until(self, true: Callable[[], bool]) -> None:
        while not true():
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), 20)

    async def start(self, claim: FolderClaim, settings: StoreSettings | None = None) -> Store:
        return await Store.start(claim, settings or StoreSettings(), self.commit, self.fail)


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    return request.param


def test_all_batches_are_committed_in_order_and_the_folder_is_complete(tmp_path: Path, run: Run) -> None:
    async def crawl() -> None:
        events = StoreEvents()
        claim = claim_new(tmp_path / "c", {"strategy": "fifo"})
        store = await events.start(claim)
        for number in range(1, 31):
            store.put(batch(number))
        steps: list[str] = []
        closed = await store.close(steps.append)
        claim.release()
        assert events.committed == list(range(1, 31)) and events.failures == []
        assert (
            closed.batches == 30
            and closed.fetches == sum(len(batch(n).fetches) for n in range(1, 31))
            and closed.archives == 1
        )
        assert closed.warc_bytes == store.warc_bytes == sum(f.stat().st_size for f in (tmp_path / "c/warc").iterdir())
        assert steps[-1] == "sorting the archive's index"

    run(crawl())
    assert check_crawl(tmp_path / "c") == 30
    assert check_digests(tmp_path / "c") > 100
    lines = (tmp_path / "c" / "index.cdxj").read_bytes().splitlines(keepends=True)
    assert lines == sorted(lines)
    # SQLite's own index for a unique column, `url` of `pending_link`, has no SQL.
    made = "select name from sqlite_master where type = 'index' and sql is not null"
    names = sqlite3.connect(tmp_path / "c" / "crawl.db").execute(made)
    assert {name for (name,) in names} == {"page_by_url", "fetch_by_page", "robots_by_site"}


def test_put_never_blocks_and_reports_a_full_store(tmp_path: Path, run: Run) -> None:
    noise = os.urandom(400_000)

    async def crawl() -> None:
        events = StoreEvents()
        claim = claim_new(tmp_path / "c", {})
        store = await events.start(claim, StoreSettings(backlog_bytes=3_000_000))
        os.kill(store._process.pid, signal.SIGSTOP)  # a disk that does not answer
        filled = []
        for number in range(1, 21):
            store.put(Batch(number, [], [], [], [fetched(number, noise + b"%d" % number)], [], b"", None))
            filled.append(store.full)
        assert filled == [number * 400_000 > 2_999_000 for number in range(1, 21)]
        os.kill(store._process.pid, signal.SIGCONT)
        await events.until(lambda: events.committed[-1:] == [20])
        assert not store.full
        await store.close()
        claim.release()

    run(crawl())
    assert len(archived(tmp_path / "c")) == 41


def test_the_loop_continues_while_a_failed_store_takes_its_time_to_end(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This store closes its pipe, and ends only when the loop has made a file. A loop that waited for the store would never make it."""
    go = tmp_path / "go"
    dying = f"import os, time; os.close(1)\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\nos.kill(os.getpid(), 9)"

    def spawn(claim: FolderClaim, settings: StoreSettings) -> subprocess.Popen[bytes]:
        program = f"import sys; sys.stdout.buffer.write({ready!r}); sys.stdout.flush(); {dying}"
        return subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )

    ready = b"".join(encode(StoreFrameKind.READY, 0))
    monkeypatch.setattr(client, "_spawn", spawn)

    async def crawl() -> None:
        events = StoreEvents()
        claim = claim_new(tmp_path / "c", {})
        await events.start(claim)
        asyncio.get_running_loop().call_later(0.3, go.touch)
        await events.until(lambda: bool(events.failures))
        claim.release()
        assert events.failures == ["the store process ended unexpectedly: killed by signal 9"]

    run(crawl())


def test_readers_see_the_crawl_while_it_runs(tmp_path: Path, run: Run) -> None:
    async def crawl() -> None:
        events = StoreEvents()
        claim = claim_new(tmp_path / "c", {"strategy": "fifo"})
        store = await events.start(claim)
        reading = Reading(tmp_path / "c")
        assert reading.last_batch() == 0 and reading.progress() is None
        for number in range(1, 6):
            store.put(batch(number))
        await events.until(lambda: len(events.committed) == 5)
        assert reading.last_batch() == 5 and reading.url(8) == "http://site3.example/page8"
        reading.close()
        await store.abandon()
        claim.release()

    run(crawl())


def test_a_closed_crawl_can_continue(tmp_path: Path, run: Run) -> None:
    async def stretch(claim: FolderClaim, first: int, last: int) -> None:
        store = await StoreEvents().start(claim)
        for number in range(first, last + 1):
            store.put(batch(number))
        await store.close()
        claim.release()

    run(stretch(claim_new(tmp_path / "c", {}), 1, 5))
    run(stretch(claim_existing(tmp_path / "c"), 6, 9))
    assert check_crawl(tmp_path / "c") == 9
    lines = (tmp_path / "c" / "index.cdxj").read_bytes().splitlines()
    assert lines == sorted(lines)


def test_a_killed_store_is_reported_in_one_line(tmp_path: Path, run: Run) -> None:
    async def crawl() -> None:
        events = StoreEvents()
        claim = claim_new(tmp_path / "c", {})
        store = await events.start(claim)
        os.kill(store._process.pid, signal.SIGKILL)
        await events.until(lambda: bool(events.failures))
        assert events.failures == ["the store process ended unexpectedly: killed by signal 9"]
        store.put(batch(1))  # has no effect, and raises nothing
        with pytest.raises(ConfigError):
            await store.close()
        claim.release()

    run(crawl())


def test_a_file_that_cannot_grow_is_reported_in_one_line_and_leaves_readable_archives(tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk."""

    async def crawl() -> None:
        events = StoreEvents()
        claim = claim_new(tmp_path / "c", {})
        store = await events.start(claim)
        resource.prlimit(store._process.pid, resource.RLIMIT_FSIZE, (300_000, 300_000))
        store.put(batch(1))
        await events.until(lambda: events.committed == [1])
        noise = os.urandom(400_000)
        store.put(Batch(2, [], [], [], [fetched(100, noise)], [], b"", None))
        await events.until(lambda: bool(events.failures))
        assert events.committed == [1]
        assert events.failures[0].startswith(f"{tmp_path / 'c'}: cannot be written: ")
        assert "\n" not in events.failures[0]
        claim.release()

    asyncio.run(crawl())
    assert check_crawl(tmp_path / "c") == 1


def test_a_damaged_folder_is_refused_at_the_start(tmp_path: Path) -> None:
    async def stretch(claim: FolderClaim) -> None:
        try:
            store = await StoreEvents().start(claim)
            store.put(batch(1))
            await store.close()
        finally:
            claim.release()

    asyncio.run(stretch(claim_new(tmp_path / "c", {})))
    (archive,) = (tmp_path / "c" / "warc").iterdir()
    os.truncate(archive, 100)
    with pytest.raises(
        ConfigError,
        match=r"has 100 bytes, but the database of the crawl has recorded [\d,]+; restore it .* trapline verify --repair",
    ):
        asyncio.run(stretch(claim_existing(tmp_path / "c")))


def test_the_store_ignores_signals_of_a_terminal_or_a_service(tmp_path: Path) -> None:
    async def crawl() -> None:
        events = StoreEvents()
        claim = claim_new(tmp_path / "c", {})
        store = await events.start(claim)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(store._process.pid, number)
        store.put(batch(1))
        await store.close()
        assert events.committed == [1] and events.failures == []
        claim.release()

    asyncio.run(crawl())


def test_a_batch_out_of_order_is_an_invariant_error_and_is_not_stored(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async def crawl() -> None:
        events = StoreEvents()
        claim = claim_new(tmp_path / "c", {})
        store = await events.start(claim)
        store.put(batch(2))
        await events.until(lambda: bool(events.failures))
        assert events.failures == ["the store failed: InvariantError: batch 2 came after batch 0"]
        claim.release()

    asyncio.run(crawl())
    assert "Traceback" in capfd.readouterr().err


def test_the_store_imports_little() -> None:
    """The store starts with each crawl, and its memory counts for the crawl."""
    heavy = "sorted(set(sys.modules) & {'numpy', 'numba', 'asyncio', 'click', 'uvloop', 'ssl'})"
    code = f"import sys, trapline.crawler.store.process; print({heavy})"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_the_history_and_the_log_of_the_refresher_are_read_back(tmp_path: Path) -> None:
    claim_new(tmp_path / "c", {}).release()
    keeper = Keeper(tmp_path / "c", StoreSettings())
    keeper.commit([batch(number) for number in range(1, 10)])
    keeper.leave()
    reading = Reading(tmp_path / "c")
    assert list(reading.refresh_log(3)) == [(number, batch(number).refresh) for number in range(4, 10)]
    assert reading.last_signals() == (9, 0)
    assert [tuple(one) for one in reading.listed_pages()] == [tuple(batch(n).listed_pages[0]) for n in (8, 9, 6, 7)]
    assert reading.whole() == [9]
    seen = [one for one in reading.history(8) if one.changed is not None]
    assert [(one.changed, one.status) for one in seen] == [(1, 200), (1, 200), (0, 304)]
    changes = reading.connection.execute("select page, at from change where page = 8").fetchall()
    assert changes == [(8, one.started) for one in seen if one.changed]
    whole = [f for number in range(1, 10) for f in batch(number).fetches if f.result == 3 and f.status == 200]
    assert list(reading.links()) == [(f.page, f.links) for f in whole]
    reading.close()
