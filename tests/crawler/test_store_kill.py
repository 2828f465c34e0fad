"""SIGKILL of the loop or of its store at any moment: every acknowledged batch is stored, and every file is complete."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.crawler.store_world import archived, batch, check_crawl, check_digests
from tests.effort import PROOF
from trapline.crawler.files.layout import INDEX, claim_existing, claim_new
from trapline.crawler.store.database import Database
from trapline.crawler.store.frames import encode_batch
from trapline.crawler.store.keeper import Keeper, sort_lines
from trapline.crawler.store.settings import StoreSettings

ROOT = Path(__file__).parents[2]


def feed_and_kill(folder: Path, whom: str, after_s: float) -> int:
    """Kill the loop or the store. Return the last batch that the loop knew to be durable."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    program = [sys.executable, "-m", "tests.crawler.store_feeder", str(folder)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment) as loop:
        assert loop.stdout is not None
        store = int(loop.stdout.readline())
        time.sleep(after_s)
        os.kill(loop.pid if whom == "loop" else store, signal.SIGKILL)
        acknowledged = loop.stdout.read().split()
    return int(acknowledged[-1]) if acknowledged else 0


def test_acknowledged_batches_are_stored_and_every_stored_batch_is_complete(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    claim_new(folder, {}).release()
    chance = random.Random(1)
    known = 0
    for whom in ("loop", "store", "store", "loop", "store", "store") if PROOF else ("store", "loop"):
        known = max(known, feed_and_kill(folder, whom, chance.uniform(0, 0.2)))
        claim = claim_existing(folder)  # waits for a store that outlives its loop
        Keeper(folder, StoreSettings()).leave()
        claim.release()
        last = check_crawl(folder)
        assert last >= known
        known = last
    assert check_digests(folder) > 0


def test_a_batch_that_the_loops_death_cuts_off_is_not_stored(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    claim_new(folder, {}).release()
    whole = b"".join(b"".join(encode_batch(batch(number))) for number in (1, 2))
    torn = b"".join(encode_batch(batch(3)))
    program = [sys.executable, "-m", "trapline.crawler.store", str(folder), StoreSettings().to_json()]
    for cut in (0, 3, 9, len(torn) - 1):
        last = 2 if cut == 0 else check_crawl(folder)
        sent = whole if cut == 0 else b""
        subprocess.run(program, input=sent + torn[:cut], stdout=subprocess.PIPE, check=True)
        assert check_crawl(folder) == last


def test_incomplete_tails_and_unknown_archives_are_cut_off_at_the_next_start(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    claim_new(folder, {}).release()
    keeper = Keeper(folder, StoreSettings())
    keeper.commit([batch(1)])
    keeper.leave()
    for path in (*(folder / "warc").iterdir(), folder / INDEX):
        with path.open("ab") as file:
            file.write(b"\x1f\x8b torn")
    (folder / "warc" / "trapline-00001.warc.gz").write_bytes(b"never committed")
    (folder / ".index.cdxj.piece-0").write_bytes(b"of a sort that was killed")
    Keeper(folder, StoreSettings()).leave()
    assert check_crawl(folder) == 1
    assert not (folder / ".index.cdxj.piece-0").exists()


def forget_after(folder: Path, commits: int) -> bytes:
    """Make two commits and let the database forget all but `commits`. Return the archive bytes of the forgotten ones."""
    claim_new(folder, {}).release()
    keeper = Keeper(folder, StoreSettings())
    kept = [(folder / "crawl.db").read_bytes()]
    sizes = [0]
    for number in (1, 2):
        keeper.commit([batch(number)])
        keeper.leave()  # moves the write-ahead log into the database
        kept.append((folder / "crawl.db").read_bytes())
        sizes.append((folder / "warc" / "trapline-00000.warc.gz").stat().st_size)
        keeper = Keeper(folder, StoreSettings())
    keeper.leave()
    (folder / "crawl.db").write_bytes(kept[commits])
    return (folder / "warc" / "trapline-00000.warc.gz").read_bytes()[sizes[commits] :]


@pytest.mark.parametrize(("commits", "name"), [(0, "trapline-00000.warc.gz"), (1, "trapline-00000.warc.gz-*")])
def test_records_that_an_older_database_does_not_know_are_kept_aside_at_the_next_start(
    tmp_path: Path, commits: int, name: str
) -> None:
    unknown = forget_after(tmp_path / "c", commits)
    Keeper(tmp_path / "c", StoreSettings()).leave()
    (kept,) = (tmp_path / "c" / "damaged").iterdir()
    assert kept.match(name) and kept.read_bytes() == unknown
    assert check_crawl(tmp_path / "c") == commits


def test_an_archive_of_another_crawl_is_neither_removed_nor_written_to(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    claim_new(folder, {}).release()
    place = folder / "warc"
    place.mkdir()
    names = ("my-other-crawl-00012.warc.gz", "mine-2026-00007.warc.gz", "trapline-00003.warc.gz")
    for name in names:
        (place / name).write_bytes(b"of the user")
    keeper = Keeper(folder, StoreSettings(warc_bytes=1))
    assert all((place / name).read_bytes() == b"of the user" for name in names)
    keeper.commit([batch(1)])
    keeper.leave()
    assert all((place / name).read_bytes() == b"of the user" for name in names[:2])
    assert (folder / "damaged" / names[2]).read_bytes() == b"of the user"  # its file name was needed


def test_a_failed_write_removes_no_archive_of_another_crawl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "c"
    claim_new(folder, {}).release()
    keeper = Keeper(folder, StoreSettings())
    (folder / "warc" / "trapline-00001.warc.gz").write_bytes(b"of the user")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("trapline.crawler.store.tail.make_durable", full)
    with pytest.raises(OSError, match="No space"):
        keeper.commit([batch(1)])
    assert [path.name for path in (folder / "warc").iterdir()] == ["trapline-00001.warc.gz"]
    keeper.leave()


def test_a_write_that_fails_leaves_nothing_of_its_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "c"
    claim_new(folder, {}).release()
    keeper = Keeper(folder, StoreSettings(warc_bytes=1))
    keeper.commit([batch(1)])

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("trapline.crawler.store.tail.make_durable", full)
        with pytest.raises(OSError, match="No space"):
            keeper.commit([batch(2)])
    assert check_crawl(folder) == 1
    keeper.leave()


def test_a_commit_with_an_unknown_result_is_left_to_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed sync of the log says nothing about the disk: SQLite may find the whole batch there the next time."""
    folder = tmp_path / "c"
    claim_new(folder, {}).release()
    keeper = Keeper(folder, StoreSettings())
    keeper.commit([batch(1)])
    commit, as_before = Database.commit, (keeper._database.archives(), keeper._database.index_bytes())

    def fail_afterwards(*given: Any) -> None:
        commit(*given)
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patched:
        patched.setattr(Database, "commit", fail_afterwards)
        patched.setattr(Database, "archives", lambda database: as_before[0])  # this connection shows the log
        patched.setattr(Database, "index_bytes", lambda database: as_before[1])
        with pytest.raises(sqlite3.OperationalError):
            keeper.commit([batch(2)])
    keeper.leave()
    Keeper(folder, StoreSettings()).leave()
    assert check_crawl(folder) == 2


def test_sorting_in_pieces_gives_the_same_sorted_lines(tmp_path: Path) -> None:
    chance = random.Random(1)
    lines = [b"%030d {}\n" % chance.randrange(100) for _ in range(1000)]
    (tmp_path / "x").write_bytes(b"".join(lines))
    sort_lines(tmp_path / "x", piece_bytes=999)
    assert (tmp_path / "x").read_bytes() == b"".join(sorted(lines))
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_record_ids_are_never_used_twice(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    claim_new(folder, {}).release()
    for number in range(1, 4):
        keeper = Keeper(folder, StoreSettings())
        keeper.commit([batch(number)])
        keeper.leave()
    ids = [record.rec_headers.get_header("WARC-Record-ID") for *_, record, _ in archived(folder)]
    assert len(ids) == len(set(ids)) > 30
