"""A crawl resumes without a damaged part of its folder, or reports which snapshot, file and batch is damaged."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.crawler.kill_world import served, settled
from tests.crawler.test_resume import begin, complaint
from trapline import cli
from trapline.crawler.files.layout import SNAPSHOT
from trapline.testweb import Served

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(300, 12) as server:
        yield server


def resumed(folder: Path) -> int:
    return cli.run(["crawl", "--plain", "--resume", str(folder), "--max-pages", "170"])


def snapshots(folder: Path) -> list[Path]:
    """Return the snapshots from the oldest to the newest."""
    return sorted((folder / SNAPSHOT).iterdir(), key=lambda place: int(place.name))


def damage(place: Path) -> Path:
    file = place / "frontier" / "site.npy"
    data = bytearray(file.read_bytes())
    data[-9] ^= 1
    file.write_bytes(data)
    return file


def test_a_damaged_snapshot_is_skipped_reported_and_removed(server: Served, tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "c"
    begin(server, folder, snapshot_pages=30, max_pages=150)
    older, newest = snapshots(folder)
    file = damage(newest)
    capsys.readouterr()
    assert resumed(folder) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if "note:" in line]
    assert len(notes) == 1 and "removed a damaged snapshot" in notes[0] and str(file) in notes[0]
    assert not newest.exists() and snapshots(folder)[0] == older
    assert len(settled(folder)) >= 170


def test_without_an_intact_snapshot_the_error_names_a_snapshot_and_its_file(
    server: Served, tmp_path: Path, capsys: Captured
) -> None:
    folder = tmp_path / "c"
    begin(server, folder, snapshot_pages=30, max_pages=150)
    with closing(sqlite3.connect(folder / "crawl.db")) as database:  # the log before both snapshots is deleted
        database.execute("delete from journal where batch <= ?", (int(snapshots(folder)[0].name),))
        database.commit()
    files = [damage(place) for place in snapshots(folder)]
    capsys.readouterr()
    for _ in range(2):  # nothing that is needed is removed
        assert cli.run(["crawl", "--quiet", "--resume", str(folder), "--max-pages", "170"]) == 2
        line = complaint(capsys)
        assert str(files[-1]) in line and f"{folder}: the log of batch 1 is missing" in line
    assert all(file.exists() for file in files)


@pytest.mark.parametrize("column", ["calls", "refresh"])
def test_a_damaged_log_is_reported_with_its_folder_and_batch(
    server: Served, tmp_path: Path, column: str, capsys: Captured
) -> None:
    folder = tmp_path / "c"
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"{address} {name}\n" for name, address in server.hosts.items()))
    options = ["--hosts", str(hosts), "--allow-private", "--delay", "0.01", "--pause", "0", "--refresh", "--quiet"]
    assert cli.run(["crawl", *server.seed_urls[:3], "-o", str(folder), "--max-pages", "90", *options]) == 0
    for place in snapshots(folder):
        for file in place.rglob("*.*"):
            file.unlink()
    with closing(sqlite3.connect(folder / "crawl.db")) as database:
        batch, log = database.execute(f"select batch, {column} from journal where {column} != '' limit 1").fetchone()
        database.execute(f"update journal set {column} = ? where batch = ?", (log[:-1] + bytes([log[-1] ^ 1]), batch))
        database.commit()
    capsys.readouterr()
    assert cli.run(["crawl", "--quiet", "--resume", str(folder), "--max-pages", "170"]) == 2
    line = complaint(capsys)
    assert f"{folder}: in the log of batch" in line and "damaged" in line
    assert column == "refresh" or f"in the log of batch {batch}," in line
