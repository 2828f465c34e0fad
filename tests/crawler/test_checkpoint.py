"""A resumed crawl takes the newest complete snapshot that the database has reached, and never an unfinished one."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from trapline.crawler.discovery.seen import SeenTable
from trapline.crawler.files import checkpoint
from trapline.crawler.files.layout import SNAPSHOT
from trapline.frontier import Frontier
from trapline.strategies import Strategy, load_strategy


@pytest.fixture
def strategy() -> Strategy:
    return load_strategy("breadth-first")


def save(folder: Path, batch: int, strategy: Strategy) -> None:
    """Save a state whose number of pages is the number of its batch."""
    frontier, seen = Frontier(strategy), SeenTable()
    frontier.add_sites(1, 0.0, [0])
    frontier.add_pages([0] * batch)
    seen.add(seen.fingerprints([f"http://a.org/{page}" for page in range(batch)]), 0, np.empty(batch, np.int32))
    checkpoint.save(folder, batch, frontier, seen)


def loaded(folder: Path, last_batch: int, strategy: Strategy) -> int | None:
    batch, found, _ = checkpoint.load(folder, last_batch, strategy)
    if found is None:
        assert batch == 0
        return None
    frontier, seen = found
    assert batch == frontier.pages == len(seen)
    return batch


def test_without_a_snapshot_nothing_is_loaded(tmp_path: Path, strategy: Strategy) -> None:
    assert loaded(tmp_path, 9, strategy) is None


def snapshots_in(folder: Path) -> list[int]:
    return sorted(int(place.name) for place in (folder / SNAPSHOT).iterdir())


def test_the_newest_snapshot_that_the_database_has_reached_is_taken(tmp_path: Path, strategy: Strategy) -> None:
    for batch in (3, 5, 8):
        save(tmp_path, batch, strategy)
    assert [loaded(tmp_path, last, strategy) for last in (2, 4, 5, 7, 8, 100)] == [None, 3, 5, 5, 8, 8]


def test_two_reached_snapshots_and_the_log_since_the_older_one_are_kept(tmp_path: Path, strategy: Strategy) -> None:
    assert checkpoint.tidy(tmp_path, 9) == 0
    for batch in (3, 5, 8):
        save(tmp_path, batch, strategy)
    assert (checkpoint.tidy(tmp_path, 4), snapshots_in(tmp_path)) == (0, [3, 5, 8])
    assert (checkpoint.tidy(tmp_path, 7), snapshots_in(tmp_path)) == (3, [3, 5, 8])
    assert (checkpoint.tidy(tmp_path, 8), snapshots_in(tmp_path)) == (5, [5, 8])


def test_an_unfinished_snapshot_is_not_one_of_the_two(tmp_path: Path, strategy: Strategy) -> None:
    for batch in (3, 5, 8, 9):
        save(tmp_path, batch, strategy)
    for batch in (8, 9):
        shutil.rmtree(tmp_path / SNAPSHOT / str(batch) / "frontier")
    assert (checkpoint.tidy(tmp_path, 9), snapshots_in(tmp_path)) == (3, [3, 5])


def test_a_snapshot_of_the_same_batch_is_written_again(tmp_path: Path, strategy: Strategy) -> None:
    save(tmp_path, 3, strategy)
    save(tmp_path, 3, strategy)
    assert loaded(tmp_path, 3, strategy) == 3


@pytest.mark.parametrize(
    "damaged", ["seen/seen.bin", "frontier/frontier.json", "frontier/page.npy", "frontier", "seen", "."]
)
@pytest.mark.parametrize("how", ["gone", "empty", "cut", "changed"])
def test_an_incomplete_snapshot_is_skipped(tmp_path: Path, strategy: Strategy, damaged: str, how: str) -> None:
    save(tmp_path, 3, strategy)
    save(tmp_path, 5, strategy)
    place = tmp_path / SNAPSHOT / "5" / damaged
    if place.is_dir():
        shutil.rmtree(place)
    elif how == "gone":
        place.unlink()
    else:
        data = place.read_bytes()
        half = len(data) // 2
        changed = data[:half] + bytes([data[half] ^ 1]) + data[half + 1 :]
        place.write_bytes({"empty": b"", "cut": data[:half], "changed": changed}[how])
    assert loaded(tmp_path, 9, strategy) == 3
    damage = checkpoint.load(tmp_path, 9, strategy).damaged
    unfinished = damaged in ("frontier", ".")
    assert damage == () if unfinished else len(damage) == 1 and str(tmp_path / SNAPSHOT / "5") in damage[0]


def test_other_folders_are_not_touched(tmp_path: Path, strategy: Strategy) -> None:
    save(tmp_path, 3, strategy)
    (tmp_path / SNAPSHOT / "notes").mkdir()
    save(tmp_path, 5, strategy)
    save(tmp_path, 6, strategy)
    assert (tmp_path / SNAPSHOT / "notes").is_dir() and loaded(tmp_path, 9, strategy) == 6
