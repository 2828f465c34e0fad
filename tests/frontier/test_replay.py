"""Snapshot and replay at any moment give the same order as no interruption, for every strategy (docs/frontier.md,
Snapshot and log).

A crawl is killed and resumed. It is saved before one random call, dies before a later one, and the restored frontier
takes its place. Neither the driver nor the order may notice.

"""

import io
import math
import re
import shutil
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.effort import sample
from tests.frontier.worlds import HOSTILE_WORLDS, PAIRS, Rank, World, check_webs, drive, inputs_of
from trapline.compiled.jit import DISABLED
from trapline.errors import ConfigError, InvariantError
from trapline.frontier import AS_RULES, FETCHED, Frontier, Outcome, Rescore, Result, Rules, Visit, WaitUntil, snapshot
from trapline.frontier.journal import Call, Journal, JournalFrame, read
from trapline.frontier.layout import (
    BACKLOGS,
    DELAYED_GROUPS,
    DELAYED_SITES,
    EXPIRING,
    MOST_SERIAL,
    READY,
    WAIT,
    FrontierState,
)
from trapline.frontier.replay import replay
from trapline.strategies import pair

CALLS = {name for name, thing in vars(Frontier).items() if callable(thing) and not name.startswith("_")}


def new_frontier(rank: Rank, rules: dict[str, Any], journal: Journal | None = None, seed: int = 0) -> Frontier:
    return Frontier(pair(rank.page, rank.site), Rules(**rules), seed=seed, journal=journal)


# The parts of the state that must be equal.


def filled(s: FrontierState) -> dict[str, Any]:
    """Every field of every array, as far as it is in use."""
    run = s.run[0]
    heaps = {READY: "ready", DELAYED_GROUPS: "delayed_groups", DELAYED_SITES: "delayed_sites"}
    heaps |= {BACKLOGS: "open_backlogs", EXPIRING: "active"}
    parts = {"run": s.run, "visit": s.visit, "group": s.group[: run.groups], "pool": s.pool[: run.pool]}
    parts |= {name: getattr(s, name)[: run.pages] for name in ("state", "page", "columns")}
    parts |= {name: getattr(s, name)[: run.sites] for name in ("site", "queue")}
    parts |= {"age": s.age[: run.pages]} if run.ages else {}
    parts |= {f"heap {name}": s.heap[row, : run[name]] for row, name in heaps.items()}
    fields = {f"{part} {name}": array[name] for part, array in parts.items() for name in array.dtype.names or ()}
    plain = {part: array for part, array in parts.items() if not array.dtype.names}
    # Addresses of compiled functions are valid in one process only.
    return {name: array for name, array in (fields | plain).items() if name not in ("run page_rank", "run site_rank")}


def assert_same_state(one: Frontier, other: Frontier) -> None:
    others = filled(other.state)
    for name, array in filled(one.state).items():
        np.testing.assert_array_equal(array, others[name], err_msg=name)


# A crawl that is killed.


class Mortal:
    """A frontier that is saved before call `saved_at` and replaced by its restored copy before call `dies_at`.

    Its log is taken to a safe place before those calls, and before every seventh call.

    """

    def __init__(self, frontier: Frontier, folder: Path, saved_at: int, dies_at: int) -> None:
        self.frontier, self.folder = frontier, folder
        self.saved_at, self.dies_at = saved_at, dies_at
        self.blobs: list[bytes] = []
        self.calls = self.saved = 0

    def __getattr__(self, name: str) -> Any:
        if name in CALLS:
            self.calls += 1
            if self.calls in (self.saved_at, self.dies_at) or self.calls % 7 == 0:
                self.take()
            if self.calls == self.saved_at:
                self.saved = len(self.blobs)
                snapshot.save(self.frontier, self.folder)
            if self.calls == self.dies_at:
                self.frontier = self.restored()
        return getattr(self.frontier, name)

    def take(self) -> None:
        if self.frontier.journal is not None:
            self.blobs.append(self.frontier.journal.take())

    def restored(self) -> Frontier:
        again = snapshot.load(self.folder, self.frontier.strategy)
        for blob in self.blobs[self.saved :]:
            replay(again, blob)
        assert_same_state(again, self.frontier)
        again.journal = self.frontier.journal
        return again


MOMENTS = st.integers(0, 10_000)
INTERRUPTED = st.tuples(HOSTILE_WORLDS, MOMENTS, MOMENTS)


@pytest.mark.parametrize("rank", sample(PAIRS, 3), ids="-x-".join)
def test_a_killed_and_restored_crawl_continues_as_if_uninterrupted(rank: Rank, tmp_path: Path) -> None:
    def check(drawn: tuple[World, int, int]) -> None:
        world, early, late = drawn
        whole = Mortal(new_frontier(rank, world.rules, seed=world.seed), tmp_path, 0, 0)
        expected = drive(whole, world)
        saved_at, dies_at = sorted((1 + early % whole.calls, 1 + late % whole.calls))
        first = new_frontier(rank, world.rules, Journal(), world.seed)
        mortal = Mortal(first, tmp_path / "snapshot", saved_at, dies_at)
        assert drive(mortal, world) == expected
        assert_same_state(mortal.frontier, whole.frontier)
        # A log that two processes wrote is as good as that of one: replayed from the first call, it gives the final state.
        mortal.take()
        again = new_frontier(rank, world.rules, seed=world.seed)
        replay(again, b"".join(mortal.blobs))
        assert_same_state(again, whole.frontier)

    check_webs(check, INTERRUPTED, rank, compiled=40, uncompiled=10)


# The log.


def small_crawl(frontier: Frontier) -> None:
    """Two sites on one address, five pages, a wait, and a call of every kind that a crawl makes."""
    frontier.add_sites(2, 0.0, groups=[0, 0])
    frontier.add_pages([0, 0, 1, 1, 0])
    for name in inputs_of(frontier):
        frontier.set_column(name, [0.5, 0.25, 1.0, 0.125, 0.75])
    frontier.discover([0, 2], 0.0)
    first = frontier.next(0.0)
    assert isinstance(first, Visit)
    assert isinstance(frontier.next(1.0), WaitUntil)
    frontier.report(first, first.pages[0], FETCHED, 1.0, links=[1, 3, 4], response_s=0.5)
    frontier.finish(first, Outcome(connection_s=0.25), 1.0)
    second = frontier.next(100.0)
    assert isinstance(second, Visit)
    frontier.finish(second, Outcome(results=[Result(page, FETCHED) for page in second.pages]), 101.0)
    frontier.set_site(0, 102.0, per_connection=2)
    third = frontier.next(200.0)
    assert isinstance(third, Visit)
    frontier.finish(third, Outcome(failed=True), 201.0)
    frontier.set_site(0, 202.0, per_connection=AS_RULES)


def small_logs() -> list[bytes]:
    """The blobs of two small crawls, one after the other."""
    journal = Journal()
    blobs = []
    for _ in range(2):
        small_crawl(new_frontier(Rank("quality", "crawl-ability"), {}, journal))
        blobs.append(journal.take())
    return blobs


def small_log() -> bytes:
    return small_logs()[0]


def encoded(frames: Iterable[JournalFrame]) -> bytes:
    """A log of these calls."""
    journal = Journal()
    for frame in frames:
        journal.write(frame.call, frame.payload, len(frame.payload), *frame.numbers)
    return journal.take()


def test_a_log_is_read_back_as_written() -> None:
    first, second = small_logs()
    assert encoded(read(first)) == first == second
    assert {frame.call for frame in read(first)} > {Call.NEXT, Call.REPORT, Call.FINISH, Call.SET_SITE}
    assert encoded(read(first + second)) == encoded([*read(first), *read(second)])


def test_an_empty_journal_gives_no_bytes() -> None:
    assert Journal().take() == b"" and list(read(b"")) == []


def test_a_file_cut_at_any_byte_gives_its_complete_blobs() -> None:
    """A crash in the middle of an append: the blobs before it stay valid."""
    first, second = small_logs()
    log, whole = first + second, len(list(read(first)))
    for cut in range(len(log) + 1):
        expected = 2 * whole if cut == len(log) else whole if cut >= len(first) else 0
        assert len(list(read(io.BytesIO(log[:cut])))) == expected


def test_a_blob_cut_at_any_byte_is_refused() -> None:
    """A database returns a blob complete, so missing bytes were lost in another way."""
    first, second = small_logs()
    for cut in set(range(1, len(first) + len(second))) - {len(first)}:
        with pytest.raises(ConfigError, match="damaged"):
            list(read((first + second)[:cut]))


@pytest.mark.parametrize("from_file", [False, True], ids=["blob", "file"])
def test_a_flipped_bit_anywhere_is_refused(from_file: bool) -> None:
    """Also in a length, where a file could look as if it were cut."""
    log = b"".join(small_logs())
    for at in range(len(log)):
        for bit in (0, 7):
            bad = bytearray(log)
            bad[at] ^= 1 << bit
            with pytest.raises(ConfigError, match="damaged"):
                list(read(io.BytesIO(bad) if from_file else bytes(bad)))


def test_a_log_of_another_format_is_refused() -> None:
    head = b"TLJ\x01" + small_log()[4:12]
    with pytest.raises(ConfigError, match="format"):
        list(read(head + zlib.crc32(head).to_bytes(4, "little") + small_log()[16:]))


def test_replayed_calls_are_not_logged_again() -> None:
    journal = Journal()
    again = new_frontier(Rank("quality", "crawl-ability"), {}, journal)
    assert replay(again, small_log()) == len(list(read(small_log())))
    assert journal.take() == b""
    again.set_site(0, 200.0, per_connection=1)
    assert [frame.call for frame in read(journal.take())] == [Call.SET_SITE]


def changed_answer(frame: JournalFrame) -> JournalFrame:
    """Another site for a visit, or a visit instead of a wait."""
    n, now, moment = frame.numbers
    if n == WAIT:
        return frame._replace(numbers=(1, now, moment), payload=np.zeros(3, np.int64))
    visit, site, *pages = frame.payload.tolist()
    return frame._replace(payload=np.array([visit, 1 - site, *pages]))


def test_a_log_with_another_answer_of_next_is_refused() -> None:
    frames = list(read(small_log()))
    calls_of_next = [at for at, frame in enumerate(frames) if frame.call == Call.NEXT]
    assert len(calls_of_next) == 4
    for at in calls_of_next:
        bad = [*frames[:at], changed_answer(frames[at])]
        with pytest.raises(InvariantError, match="replay: next"):
            replay(new_frontier(Rank("quality", "crawl-ability"), {}), encoded(bad))


def test_a_log_with_another_moment_to_wait_for_is_refused() -> None:
    """`replay` compares every answer of `next`, and the moment is part of the answer."""
    journal = Journal()
    frontier = new_frontier(Rank("fifo", "fifo"), {"delay_s": 1.0}, journal)
    frontier.add_sites(1, 0.0, groups=[0])
    frontier.add_pages([0, 0])
    frontier.discover([0, 1], 0.0)
    visit = frontier.next(0.0)
    frontier.finish(visit, Outcome(results=[Result(visit.pages[0], FETCHED)]), 0.0)
    assert frontier.next(0.0) == WaitUntil(1.0)
    with pytest.raises(InvariantError, match="replay: next"):
        replay(new_frontier(Rank("fifo", "fifo"), {"delay_s": 2.0}), journal.take())


def scored_log(scores: list[float]) -> bytes:
    """The log of a crawl that requests scores after its first page."""
    journal = Journal()
    frontier = new_frontier(Rank("partial-pagerank", "top-page"), {"delay_s": 0.0, "rescore": 1}, journal)
    frontier.add_sites(1, 0.0, groups=[0])
    frontier.add_pages([0, 0, 0])
    frontier.discover([0], 0.0)
    visit = frontier.next(0.0)
    frontier.finish(visit, Outcome(results=[Result(0, FETCHED, links=[1, 2])]), 0.0)
    assert frontier.next(0.0) == Rescore(1)
    frontier.rescore(scores, 0.0)
    assert isinstance(frontier.next(0.0), Visit)
    return journal.take()


def test_scores_are_read_back_from_the_log() -> None:
    log = scored_log([0.0, 0.1, 0.3])
    again = new_frontier(Rank("partial-pagerank", "top-page"), {"delay_s": 0.0, "rescore": 1})
    replay(again, log)
    assert again.state.columns[:3, 0].tolist() == [0.0, 0.1, 0.3]


def test_a_log_that_requests_scores_at_another_moment_is_refused() -> None:
    log = scored_log([0.0, 0.1, 0.3])
    for rules in ({"delay_s": 0.0}, {"delay_s": 0.0, "rescore": 2}):
        with pytest.raises(InvariantError, match="replay: next"):
            replay(new_frontier(Rank("partial-pagerank", "top-page"), rules), log)


def test_a_log_with_other_scores_and_so_another_page_is_refused() -> None:
    frames = list(read(scored_log([0.0, 0.1, 0.3])))
    bad = [f._replace(payload=np.array([0.0, 0.3, 0.1])) if f.call == Call.RESCORE else f for f in frames]
    with pytest.raises(InvariantError, match="replay: next"):
        replay(new_frontier(Rank("partial-pagerank", "top-page"), {"delay_s": 0.0, "rescore": 1}), encoded(bad))


REFUSED_SCORES: dict[str, Callable[[Frontier], object]] = {
    "too few": lambda f: f.rescore([0.5], 5.0),
    "too many": lambda f: f.rescore([0.5, 0.5, 0.5], 5.0),
    "not a number": lambda f: f.rescore([0.5, math.nan], 5.0),
    "infinite": lambda f: f.rescore([-math.inf, 0.5], 5.0),
    "no time": lambda f: f.rescore([0.5, 0.5], math.nan),
}


@pytest.mark.parametrize("call", REFUSED_SCORES.values(), ids=REFUSED_SCORES)
def test_refused_scores_change_neither_the_state_nor_the_log(call: Callable[[Frontier], object]) -> None:
    journal, rank = Journal(), Rank("batch-pagerank", "top-page")
    frontier, other = new_frontier(rank, {}, journal), new_frontier(rank, {})
    for one in (frontier, other):
        one.add_sites(1, 0.0, groups=[0])
        one.add_pages([0, 0])
        one.discover([0, 1], 0.0)
    journal.take()
    with pytest.raises((ConfigError, InvariantError)):
        call(frontier)
    assert journal.take() == b""
    assert_same_state(frontier, other)


# Pages 0 and 1 belong to site 0, which is under visit for page 0. Page 2 belongs to site 1.
REFUSED_CALLS: dict[str, Callable[[Frontier, Visit], object]] = {
    "report: a page that waits": lambda f, visit: f.report(visit, 1, FETCHED, 5.0),
    "report: no such page": lambda f, visit: f.report(visit, 77, FETCHED, 5.0),
    "report: no such result": lambda f, visit: f.report(visit, 0, 99, 5.0),
    "report: no time": lambda f, visit: f.report(visit, 0, FETCHED, math.nan),
    "report: no such link": lambda f, visit: f.report(visit, 0, FETCHED, 5.0, links=[77]),
    "finish: no time": lambda f, visit: f.finish(visit, Outcome(), math.nan),
    "discover: no such page": lambda f, visit: f.discover([77], 5.0),
    "discover: no time": lambda f, visit: f.discover([2], math.nan),
    "next: no time": lambda f, visit: f.next(math.nan),
    "resolve: under visit": lambda f, visit: f.resolve(0, 3, 5.0),
    "resolve: no time": lambda f, visit: f.resolve(1, 3, math.nan),
    "set_site: no time": lambda f, visit: f.set_site(1, math.nan, delay_s=3.0),
    "export_site: under visit": lambda f, visit: f.export_site(0, 5.0),
    "add_sites: too few groups": lambda f, visit: f.add_sites(2, 5.0, groups=[0]),
    "add_pages: no such site": lambda f, visit: f.add_pages([9]),
    "add_pages: too few marks": lambda f, visit: f.add_pages([0, 1], dynamic=[True]),
    "hold_all: no time": lambda f, visit: f.hold_all(math.nan),
}


@pytest.mark.parametrize("call", REFUSED_CALLS.values(), ids=REFUSED_CALLS)
def test_a_call_that_raises_changes_neither_the_state_nor_the_log(
    call: Callable[[Frontier, Visit], object],
) -> None:
    """Otherwise the log of a crawl could not be replayed after one rejected call."""
    journal = Journal()
    frontier, other = new_frontier(Rank("fifo", "fifo"), {}, journal), new_frontier(Rank("fifo", "fifo"), {})
    for one in (frontier, other):
        one.add_sites(2, 0.0, groups=[0, 1])
        one.add_pages([0, 0, 1])
        one.discover([0, 1], 0.0)
        visit = one.next(0.0)
    journal.take()
    with pytest.raises(InvariantError):
        call(frontier, visit)
    assert journal.take() == b""
    assert_same_state(frontier, other)


@pytest.mark.parametrize("pages", [0, 1, 254, 255, 3_000])
def test_the_move_of_a_site_of_any_size_is_replayed(pages: int) -> None:
    journal, rank = Journal(), Rank("opic", "top-page")
    frontier = new_frontier(rank, {}, journal)
    frontier.add_sites(2, 0.0, groups=[0, 0])
    frontier.add_pages([0] * pages + [1] * pages)
    frontier.discover(range(pages), 0.0)
    export = frontier.export_site(0, 1.0)
    frontier.import_site(export, 1, range(pages, 2 * pages), 1.0)
    again = new_frontier(rank, {})
    replay(again, journal.take())
    assert_same_state(again, frontier)


# Inspection.


def test_visits_under_way_and_waiting_pages_can_be_listed() -> None:
    frontier = new_frontier(Rank("fifo", "fifo"), {"delay_s": 0.0, "batch": 3})
    frontier.add_sites(3, 0.0, groups=[0, 1, 2])
    frontier.add_pages([0, 1, 2, 0, 1, 2])
    assert (frontier.waiting, frontier.visits_under_way()) == (0, [])
    frontier.discover(range(6), 0.0)
    visits = [frontier.next(0.0), frontier.next(0.0)]
    assert frontier.waiting == 4  # chosen for the batch, or not yet
    assert frontier.visits_under_way() == [(visit.id, visit.site) for visit in visits]
    frontier.finish(visits[0], Outcome([Result(visits[0].pages[0], FETCHED)]), 0.0)
    third = frontier.next(0.0)
    # Slots are reused
    assert frontier.visits_under_way() == [(visits[1].id, visits[1].site), (third.id, third.site)]
    assert frontier.waiting == 3


def test_a_column_is_complete_or_its_first_missing_page_is_named() -> None:
    frontier = new_frontier(Rank("quality", "top-page"), {})
    frontier.add_sites(1, 0.0, groups=[0])
    frontier.add_pages([0, 0, 0])
    frontier.set_column("quality", [1.0, 2.0, 3.0])
    frontier.set_column("quality", [5.0], first=2)
    assert frontier.state.columns[:3, 0].tolist() == [1.0, 2.0, 5.0]
    for values, first in (([1.0], None), ([[1.0, 2.0, 3.0]], None), ([1.0] * 4, None), ([1.0, 2.0], 2), ([1.0], -1)):
        with pytest.raises(InvariantError, match="set_column"):
            frontier.set_column("quality", values, first)


# Memory that grows during a replay, and numbers that run out.


def test_a_log_is_replayed_into_a_frontier_that_must_grow_at_every_step() -> None:
    journal, rank = Journal(), Rank("opic", "crawl-ability")
    frontier = new_frontier(rank, {"delay_s": 0.0, "per_connection": 7}, journal)
    for start in range(0, 15_000 if DISABLED else 60_000, 3_000):
        site = frontier.add_sites(30, 0.0, groups=range(start // 100, start // 100 + 30))
        first = frontier.add_pages([site + i % 30 for i in range(3_000)], dynamic=[i % 3 == 0 for i in range(3_000)])
        frontier.discover([first], 0.0)
        visit = frontier.next(0.0)
        links = range(first + 1, first + 3_000)
        frontier.finish(visit, Outcome([Result(visit.pages[0], FETCHED, links)]), 0.0)
    again = new_frontier(rank, {"delay_s": 0.0, "per_connection": 7})
    replay(again, journal.take())
    assert_same_state(again, frontier)


@pytest.mark.parametrize("counter", ["serial", "turns"])
def test_a_frontier_whose_numbers_run_out_raises_an_error(counter: str) -> None:
    frontier = new_frontier(Rank("fifo", "fifo"), {})
    frontier.add_sites(1, 0.0, groups=[0])
    frontier.add_pages([0])
    setattr(frontier.state.run[0], counter, MOST_SERIAL)
    with pytest.raises(ConfigError, match="full"):
        frontier.discover([0], 0.0)


# The snapshot.


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    frontier = new_frontier(Rank("quality", "crawl-ability"), {})
    small_crawl(frontier)
    folder = tmp_path / "snapshot"
    snapshot.save(frontier, folder)
    return folder


def load(folder: Path) -> Frontier:
    return snapshot.load(folder, pair("quality", "crawl-ability"))


def assert_refused(folder: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(folder)
    assert "\n" not in str(caught.value) and str(folder) in str(caught.value)


FILES = [*(f"{name}.npy" for name in FrontierState._fields), "frontier.json"]


def test_the_files_of_a_snapshot(saved: Path) -> None:
    assert sorted(path.name for path in saved.iterdir()) == sorted(FILES)


@pytest.mark.parametrize("name", FILES)
def test_a_snapshot_without_one_of_its_files_is_refused(saved: Path, name: str) -> None:
    (saved / name).unlink()
    assert_refused(saved)


@pytest.mark.parametrize("name", FILES)
def test_a_snapshot_with_a_file_cut_anywhere_is_refused(saved: Path, name: str) -> None:
    whole = (saved / name).read_bytes()
    # Inside and at the ends of numpy's magic string, length and header (128 bytes), and in the data.
    for cut in {0, 1, 5, 6, 8, 9, 10, 11, 60, 127, 128, 129, len(whole) // 2, len(whole) - 1}:
        if cut < len(whole):
            (saved / name).write_bytes(whole[:cut])
            assert_refused(saved)


@pytest.mark.parametrize("flip", [0x55, 0x01, 0x80])
def test_a_snapshot_with_a_damaged_header_is_refused(saved: Path, flip: int) -> None:
    """Or accepted, if only blanks were hit. The data behind the header has a checksum."""
    whole = (saved / "site.npy").read_bytes()
    for at in range(0, 128, 4):
        damaged = bytes(byte ^ flip if at <= place < at + 4 else byte for place, byte in enumerate(whole))
        (saved / "site.npy").write_bytes(damaged)
        with suppress(ConfigError):
            load(saved)
    (saved / "site.npy").write_bytes(whole[:80] + bytes(byte ^ flip for byte in whole[80:84]) + whole[84:])
    assert_refused(saved)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}', "7"])
def test_a_snapshot_with_a_strange_description_is_refused(saved: Path, text: str) -> None:
    (saved / "frontier.json").write_text(text)
    assert_refused(saved)


def test_a_snapshot_of_another_format_is_refused(saved: Path) -> None:
    text = (saved / "frontier.json").read_text()
    (saved / "frontier.json").write_text(re.sub(r'"format": \d+', '"format": 99', text))
    assert_refused(saved)


@pytest.mark.parametrize("other", [Rank("fifo", "crawl-ability"), Rank("quality", "top-page")], ids="-x-".join)
def test_a_snapshot_of_another_strategy_is_refused(saved: Path, other: Rank) -> None:
    with pytest.raises(ConfigError, match="made with"):
        snapshot.load(saved, pair(other.page, other.site))


def test_no_snapshot_at_all_is_refused(tmp_path: Path) -> None:
    assert_refused(tmp_path / "nothing")


def newer() -> Frontier:
    frontier = new_frontier(Rank("quality", "crawl-ability"), {})
    small_crawl(frontier)
    frontier.next(500.0)
    return frontier


def test_a_crash_during_the_writing_of_a_snapshot_leaves_the_previous_one(saved: Path) -> None:
    shutil.copytree(saved, saved.with_name("snapshot.new"))
    (saved.with_name("snapshot.new") / "page.npy").unlink()
    before = load(saved)
    snapshot.save(newer(), saved)
    assert_same_state(load(saved), newer())
    assert before.state.run[0].visits < load(saved).state.run[0].visits


def test_a_crash_between_the_two_renames_leaves_the_previous_snapshot(saved: Path) -> None:
    before = load(saved)
    shutil.copytree(saved, saved.with_name("snapshot.new"))
    saved.rename(saved.with_name("snapshot.old"))
    assert_same_state(load(saved), before)
    snapshot.save(newer(), saved)
    assert_same_state(load(saved), newer())


def test_a_crash_after_the_renames_leaves_the_new_snapshot(saved: Path) -> None:
    shutil.copytree(saved, saved.with_name("snapshot.old"))
    (saved.with_name("snapshot.old") / "page.npy").unlink()
    load(saved)


def test_two_crashes_in_a_row_leave_the_previous_snapshot(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first crash comes between the renames. The second comes while the next snapshot is written, when only `.old` exists."""
    before = load(saved)
    saved.rename(saved.with_name("snapshot.old"))

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("trapline.array_folder._write", die)
    with pytest.raises(KeyboardInterrupt):
        snapshot.save(newer(), saved)
    assert_same_state(load(saved), before)


def test_a_restored_frontier_can_grow_like_the_first_one(saved: Path) -> None:
    """Snapshots keep only what is in use, so room for pages, sites, groups and visits must be allocated again."""
    one, other = load(saved), newer()
    one.next(500.0)
    for frontier in (one, other):
        first_site = frontier.add_sites(200, 600.0, groups=range(200))
        first = frontier.add_pages([first_site + i % 200 for i in range(4_000)])
        frontier.set_column("quality", np.linspace(-1.0, 1.0, 4_000), first)
        frontier.discover(range(first, first + 4_000), 600.0)
    answers = [[frontier.next(700.0) for _ in range(150)] for frontier in (one, other)]
    assert answers[0] == answers[1] and all(isinstance(answer, Visit) for answer in answers[0])
    assert_same_state(one, other)
