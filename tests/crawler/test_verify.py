"""`trapline verify` finds a folder sound, or names every damage by its place. `--repair` repairs the damage where that is possible."""

import errno
import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict
from hashlib import sha1
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from tests.crawler.kill_world import served, settled
from tests.crawler.store_world import batch
from tests.crawler.test_resume import begin
from tests.effort import slow
from trapline import cli
from trapline.blobs import BlobKind
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.files import archive_check, lock
from trapline.crawler.files import verify as crawl_verify
from trapline.crawler.files.archive_reader import Damage, Record, filler, read_back
from trapline.crawler.files.check_results import Problem
from trapline.crawler.files.layout import claim_existing, claim_new
from trapline.crawler.files.verify import held, verify
from trapline.crawler.store.damaged import DAMAGED, keep_bytes
from trapline.crawler.store.keeper import Keeper
from trapline.crawler.store.settings import StoreSettings
from trapline.crawler.store.warc import base32
from trapline.frontier import journal
from trapline.parallel.folder.verify import verify_all
from trapline.testweb import Served

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(200, 10) as server:
        yield server


@pytest.fixture(scope="module")
def sound(server: Served, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crawls") / "sound"
    begin(server, folder, snapshot_pages=30, max_pages=120)
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    return shutil.copytree(sound, tmp_path / "c")


def archive(folder: Path) -> Path:
    return next((folder / "warc").iterdir())


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << at % 8
    path.write_bytes(data)


def answer(folder: Path, number: int) -> tuple[str, int, int]:
    """Return a page with its record: URL, offset, length."""
    with closing(sqlite3.connect(folder / "crawl.db")) as database:
        sql = "select url, offset, length from fetch join page on page.id = page where file = 0 limit 1 offset ?"
        found: tuple[str, int, int] = database.execute(sql, (number,)).fetchone()
        return found


def change(folder: Path, sql: str, *values: Any) -> None:
    with closing(sqlite3.connect(folder / "crawl.db")) as database, database:
        database.execute(sql, values)


def is_repaired(folder: Path) -> None:
    """Check that other readers can read the folder, and that the crawl can be resumed."""
    assert verify(folder).problems == []
    for path in (folder / "warc").iterdir():
        with path.open("rb") as file:
            for record in ArchiveIterator(file, check_digests=True):
                record.content_stream().read()
                assert record.digest_checker.passed is not False
    assert cli.run(["crawl", "--quiet", "--resume", str(folder), "--max-pages", "130"]) == 0
    assert verify(folder).problems == []


def test_a_complete_crawl_is_sound(sound: Path, capsys: Captured) -> None:
    before = {path: path.read_bytes() for path in sound.rglob("*") if path.is_file() and path.suffix != ".db-shm"}
    assert cli.run(["verify", str(sound)]) == 0
    assert capsys.readouterr().out.startswith(f"{sound}: sound: 1 archive with ")
    assert all(path.read_bytes() == data for path, data in before.items())


def test_a_record_of_another_compressor_version_is_sound(folder: Path) -> None:
    data = bytearray(archive(folder).read_bytes())
    descriptor = os.open(archive(folder), os.O_RDONLY)
    for part in list(read_back(descriptor, len(data), {})):
        data[part.offset + 8 : part.offset + 10] = b"\x04\x03"  # XFL and OS
    os.close(descriptor)
    archive(folder).write_bytes(data)
    assert verify(folder).problems == []


@slow
def test_every_flipped_byte_of_an_archive_is_found_or_changes_no_record(sound: Path) -> None:
    data, chance = archive(sound).read_bytes(), random.Random(1)
    with closing(sqlite3.connect(sound / "crawl.db")) as database:
        known = dict(database.execute("select offset, length from fetch where file = 0"))
    descriptor = os.memfd_create("archive")
    os.pwrite(descriptor, data, 0)
    whole, unused = list(read_back(descriptor, len(data), known)), 0
    for at in chance.sample(range(len(data)), 400):
        torn = bytearray(data)
        torn[at] ^= 1 << chance.randrange(8)
        os.pwrite(descriptor, torn, 0)
        parts = list(read_back(descriptor, len(data), known))
        if parts == whole:
            # In a gzip header after magic and method, or in bits of deflate without a meaning, such as codes that no
            # byte uses.
            unused += not any(3 <= at - part.offset < 10 for part in whole)
            continue
        damages = [part for part in parts if isinstance(part, Damage)]
        assert len(damages) >= 1 and any(one.offset <= at < one.offset + one.length for one in damages)
    assert unused < 12
    os.close(descriptor)


def test_a_damaged_record_is_named_and_replaced_by_a_filler(folder: Path, capsys: Captured) -> None:
    url, offset, length = answer(folder, 7)
    flip(archive(folder), offset + length // 2)
    original = archive(folder).read_bytes()[offset : offset + length]
    assert cli.run(["verify", str(folder), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert not found["sound"] and [(one["url"], one["offset"]) for one in found["problems"]] == [(url, offset)]
    assert cli.run(["verify", str(folder), "--repair"]) == 1  # the damaged record is lost
    assert f"at byte {offset:,}" in capsys.readouterr().out
    assert (folder / DAMAGED / f"{archive(folder).name}-{offset}").read_bytes() == original
    is_repaired(folder)
    assert settled(folder)[url] == 3


def test_a_damaged_request_beside_an_answer_is_named_by_its_page(folder: Path) -> None:
    url, offset, length = answer(folder, 3)
    flip(archive(folder), offset + length + 30)
    (problem,) = verify(folder).problems
    assert problem.url == url and problem.offset == offset + length
    assert [one.url for one in verify(folder, repair=True).problems] == [url]
    is_repaired(folder)


def test_an_archive_that_is_cut_off_loses_the_records_behind_the_cut(folder: Path) -> None:
    _, offset, length = answer(folder, 40)
    os.truncate(archive(folder), offset + length // 2)
    found = verify(folder, repair=True)
    with closing(sqlite3.connect(folder / "crawl.db")) as database:
        (gone,) = database.execute("select count(*) from fetch where status > 0 and file is null").fetchone()
    assert not found.remaining and found.problems and all(one.lost for one in found.problems if one.url)
    assert gone > 20
    is_repaired(folder)


def test_a_missing_archive_is_reported_and_replaced(folder: Path) -> None:
    archive(folder).rename(folder / "elsewhere")
    found = verify(folder, repair=True)
    assert not found.remaining and not found.is_sound
    is_repaired(folder)


def test_the_work_for_a_missing_archive_grows_linearly_with_its_rows(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = count()

    class CountedRow(archive_check.ArchivedAnswer):
        @property
        def offset(self) -> int:  # type: ignore[override]
            next(reads)
            return self[1]

    monkeypatch.setattr(archive_check, "ArchivedAnswer", CountedRow)
    archive(folder).unlink()
    problems = len(verify(folder).problems)
    assert problems > 200 and next(reads) < 20 * problems


class CountedConnection(sqlite3.Connection):
    """Counts, over all connections of this class, the instructions of SQLite, by hundreds, and the commits."""

    hundreds = commits = 0

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.set_progress_handler(self._hundred, 100)
        self.set_trace_callback(self._statement)

    @classmethod
    def _hundred(cls) -> int:
        cls.hundreds += 1
        return 0

    @classmethod
    def _statement(cls, statement: str) -> None:
        cls.commits += statement.casefold().startswith("commit")


def test_the_repair_of_a_missing_archive_is_one_commit_with_few_steps_per_row(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Counted(CountedConnection):
        pass

    plain = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: plain(*given, factory=Counted, **named))
    archive(folder).unlink()
    rows = len(verify(folder).problems)
    of_checking, Counted.commits = Counted.hundreds, 0
    assert not verify(folder, repair=True).remaining
    # Three checks, two of them with rows and records, and the repair of archive and index between them.
    assert rows > 120 and Counted.commits <= 2 and Counted.hundreds - 5 * of_checking < 2 * rows


def test_adjacent_damages_are_replaced_and_kept_as_one(folder: Path) -> None:
    first, last = (answer(folder, number) for number in (20, 29))
    data = bytearray(archive(folder).read_bytes())
    data[first[1] : last[1] + last[2]] = bytes(last[1] + last[2] - first[1])
    archive(folder).write_bytes(data)
    assert not verify(folder, repair=True).remaining
    (kept,) = (folder / DAMAGED).iterdir()
    assert kept.name == f"{archive(folder).name}-{first[1]}"
    is_repaired(folder)


def test_a_missing_folder_of_archives_is_made_again(folder: Path) -> None:
    shutil.rmtree(folder / "warc")
    found = verify(folder, repair=True)
    assert not found.remaining and not found.is_sound
    is_repaired(folder)


def test_remaining_problems_are_compared_once_a_round(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = count()

    def counted_text(problem: Problem, text: Callable[[Problem], str] = Problem.__str__) -> str:
        next(texts)
        return text(problem)

    monkeypatch.setattr(Problem, "__str__", counted_text)
    change(folder, "update fetch set digest = x'00'")
    (folder / "warc" / "trapline-00001.warc.gz").write_bytes(b"never committed")
    problems = len(verify(folder, repair=True).problems)
    assert problems > 100 and next(texts) < 20 * problems


def test_an_index_is_rebuilt_as_it_was(folder: Path) -> None:
    index = folder / "index.cdxj"
    whole = index.read_bytes()
    damages = (
        index.unlink,
        lambda: flip(index, 1000),
        lambda: os.truncate(index, 5000),
        lambda: index.write_bytes(b"?"),
    )
    for damage in damages:
        damage()
        (problem,) = verify(folder).problems
        assert problem.place == str(index) and not problem.lost
        assert verify(folder, repair=True).is_sound
        assert index.read_bytes() == whole


def test_leftovers_of_a_crash_are_removed(folder: Path) -> None:
    for path in (archive(folder), folder / "index.cdxj"):
        with path.open("ab") as file:
            file.write(b"\x1f\x8b torn")
    (folder / "warc" / "trapline-00001.warc.gz").write_bytes(b"never committed")
    (folder / "snapshot" / "99999").mkdir()
    found = verify(folder, repair=True)
    assert len(found.problems) == 4 and found.is_sound
    is_repaired(folder)


def test_files_of_other_programs_are_reported_and_kept(folder: Path) -> None:
    place = folder / "warc"
    others = [place / "NOTES.txt", place / "copy-00000.warc.gz", place / "older", place / "folder-00009.warc.gz"]
    for path in others[:2]:
        path.write_bytes(b"of the user")
    for path in others[2:]:
        path.mkdir()
    found = verify(folder, repair=True)
    assert sorted(one.place for one in found.remaining) == sorted(map(str, others))
    assert all(one.repair is None for one in found.remaining) and all(path.exists() for path in others)


def forget_archive(folder: Path) -> list[str]:
    """Let the database forget its archive, as if it had lost its log. Return the URLs of the answers that it knew."""
    with closing(sqlite3.connect(folder / "crawl.db")) as database, database:
        answers = "select offset, url from fetch join page on page.id = page where file = 0"
        urls = [url for _, url in sorted(database.execute(answers))]
        database.executescript("delete from warc; update cdxj set bytes = 0")
        for table in ("fetch", "robots"):
            database.execute(f"update {table} set file = null, offset = null, length = null")
    return urls


def test_an_archive_that_the_database_does_not_know_is_moved_and_its_answers_are_named(
    folder: Path, capsys: Captured
) -> None:
    urls, path = forget_archive(folder), archive(folder)
    whole = path.read_bytes()
    assert cli.run(["verify", str(folder), "--repair"]) == 1
    said = capsys.readouterr().out
    assert any(url in said for url in urls) and "that the database does not know" in said and said.count("http") < 12
    assert not path.exists() and (folder / DAMAGED / path.name).read_bytes() == whole
    assert verify(folder).problems == []


def test_answers_after_the_last_commit_are_moved_and_named(folder: Path) -> None:
    _, offset, _ = answer(folder, 100)
    path = archive(folder)
    tail = path.read_bytes()[offset:]
    change(folder, "update fetch set file = null, offset = null, length = null where offset >= ?", offset)
    change(folder, "update robots set file = null, offset = null, length = null where offset >= ?", offset)
    change(folder, "update warc set bytes = ?", offset)
    found = verify(folder, repair=True)
    assert not found.remaining and not found.is_sound
    assert any(one.lost and one.offset == offset and "http://" in one.what for one in found.problems)
    assert path.stat().st_size == offset
    assert (folder / DAMAGED / f"{path.name}-{offset}").read_bytes() == tail


def test_two_moved_files_of_one_name_are_both_kept(folder: Path) -> None:
    stray = folder / "warc" / "trapline-00001.warc.gz"
    for text in (b"first", b"second"):
        stray.write_bytes(text)
        assert verify(folder, repair=True).is_sound
    assert (folder / DAMAGED / stray.name).read_bytes() == b"first"
    assert (folder / DAMAGED / f"{stray.name}.1").read_bytes() == b"second"


def test_archives_of_other_crawls_stay_where_they_are(folder: Path) -> None:
    names = ("my-other-crawl-00012.warc.gz", "mine-2026-00001.warc.gz", "trapline-00007.warc.gz", "trapline-1.warc.gz")
    others = [folder / "warc" / name for name in names]
    for path in others:
        path.write_bytes(b"of the user")
    found = verify(folder, repair=True)
    assert sorted(one.place for one in found.remaining) == sorted(map(str, others))
    assert cli.run(["crawl", "--quiet", "--resume", str(folder), "--max-pages", "130"]) == 0
    assert all(path.read_bytes() == b"of the user" for path in others)


def make_folder(path: Path) -> Path:
    path.unlink(missing_ok=True)
    path.mkdir()
    return path


def make_file(path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    path.write_bytes(b"of the user")
    return path


@pytest.mark.parametrize(
    "misplace",
    [
        lambda folder: make_folder(folder / "snapshot" / "²"),
        lambda folder: make_folder(folder / "snapshot" / "0999"),
        lambda folder: make_file(folder / "snapshot" / "500"),
        lambda folder: make_file(folder / DAMAGED),
        lambda folder: make_folder(archive(folder)),
        lambda folder: make_folder(folder / "index.cdxj"),
        lambda folder: make_file(folder / "warc"),
    ],
    ids=["other digits", "leading zero", "file as snapshot", "damaged", "archive", "index", "warc"],
)
def test_a_misplaced_file_or_folder_is_named_and_kept(folder: Path, misplace: Callable[[Path], Path]) -> None:
    place = misplace(folder)
    assert any(one.place == str(place) and one.repair is None for one in verify(folder).problems)
    found = verify(folder, repair=True)
    assert any(one.place == str(place) and "move it elsewhere" in one.what for one in found.remaining)
    assert place.exists() and not any("repair failed" in one.what for one in found.problems)


def test_no_repair_is_offered_if_damaged_bytes_cannot_be_kept(folder: Path) -> None:
    make_file(folder / DAMAGED)
    _, offset, length = answer(folder, 7)
    flip(archive(folder), offset + length // 2)
    before = archive(folder).read_bytes()
    assert all(one.repair is None for one in verify(folder).problems)
    assert verify(folder, repair=True).remaining and archive(folder).read_bytes() == before


def test_a_failed_repair_is_reported_and_the_others_continue(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(folder: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive_check, "rebuild_index", fail)
    (folder / "index.cdxj").unlink()
    (folder / "snapshot" / "99999").mkdir()
    found = verify(folder, repair=True)
    assert any("the repair failed: [Errno 28]" in one.what for one in found.remaining)
    assert not (folder / "snapshot" / "99999").exists()


def test_text_in_place_of_a_number_is_named(folder: Path, capsys: Captured) -> None:
    change(folder, "update progress set pages = 'many' where rowid = (select max(rowid) from progress)")
    (problem,) = verify(folder).problems
    assert "1 values of progress.pages are not finite numbers" in problem.what
    assert cli.run(["verify", str(folder)]) == 1
    assert cli.run(["status", str(folder)]) == 2
    assert "its table progress has values that are not numbers" in capsys.readouterr().err


def test_a_report_leaves_out_pages_of_a_missing_site(folder: Path) -> None:
    change(folder, "delete from site where id = (select max(id) from site)")
    assert cli.run(["report", str(folder)]) == 0


def test_a_damaged_snapshot_is_removed_if_an_older_one_suffices(folder: Path) -> None:
    older, newest = sorted((folder / "snapshot").iterdir(), key=lambda place: int(place.name))
    flip(newest / "frontier" / "site.npy", -9 + (newest / "frontier" / "site.npy").stat().st_size)
    found = verify(folder, repair=True)
    assert [one.place for one in found.problems] == [str(newest)] and found.is_sound
    assert older.exists() and not newest.exists()
    is_repaired(folder)


def test_a_snapshot_whose_log_is_of_another_version_is_kept(folder: Path) -> None:
    older, newest = sorted((folder / "snapshot").iterdir(), key=lambda place: int(place.name))
    previous = BlobKind(b"TLJ\x02", "the frontier's log")
    with closing(sqlite3.connect(folder / "crawl.db")) as database:
        log = database.execute("select batch, calls from journal where calls <> x''").fetchall()
    for number, calls in log:
        change(folder, "update journal set calls = ? where batch = ?", b"".join(_as(previous, calls)), number)
    found = verify(folder, repair=True)
    (problem,) = found.remaining
    assert problem.place == str(older) and problem.repair is None
    assert "use the version that wrote it" in problem.what
    assert older.exists() and newest.exists()


def _as(kind: BlobKind, blobs: bytes) -> Iterator[bytes]:
    return map(kind.blob, journal.BLOBS.bodies(blobs))


def test_nothing_is_removed_if_the_crawl_could_not_be_resumed_without_it(folder: Path) -> None:
    places = list((folder / "snapshot").iterdir())
    for place in places:
        flip(place / "seen" / "seen", 100) if (place / "seen" / "seen").exists() else shutil.rmtree(place / "seen")
    change(folder, "delete from journal where batch = 1")
    found = verify(folder, repair=True)
    assert len(found.remaining) == 3 and "cannot continue" in str(found.remaining[-1])
    assert all(place.exists() for place in places)


def test_a_row_with_the_wrong_place_is_found(folder: Path) -> None:
    url, offset, _ = answer(folder, 5)
    change(folder, "update fetch set offset = offset + 1 where offset = ?", offset)
    what = [str(problem) for problem in verify(folder).problems]
    assert any("no answer begins here" in one and url in one for one in what)
    assert any("that the database does not know" in one for one in what)


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("update fetch set status = 404 where offset = ?", "its status is 200, but the database has 404"),
        ("update fetch set digest = x'00' where offset = ?", "its digest is sha1:"),
        ("update fetch set length = length - 1 where offset = ?", "its length is"),
        ("update fetch set page = 0 where offset = ?", "its URL is"),
        ("update fetch set page = 123456 where offset = ?", "1 fetches of a page that does not exist"),
        (
            "update journal set batch = batch + 1 where batch = (select max(batch) from journal) and ? > 0",
            "1 batches that are missing in the log",
        ),
        ("update progress set pages = 1 where ? > 0", "the last row of progress has 1 pages, but 120 are committed"),
        ("update fetch set result = 5 where offset = ?", "in whether 1 pages were fetched"),
    ],
)
def test_rows_that_contradict_the_archive_or_the_log_are_found(folder: Path, sql: str, what: str) -> None:
    change(folder, sql, answer(folder, 9)[1])
    assert any(what in str(problem) for problem in verify(folder).problems), verify(folder).problems


def test_progress_that_lags_behind_is_corrected(folder: Path) -> None:
    change(folder, "update progress set pages = 1")
    assert verify(folder, repair=True).is_sound
    is_repaired(folder)


def destroy_root_of(folder: Path, table: str) -> None:
    with closing(sqlite3.connect(folder / "crawl.db")) as database:
        (page,) = database.execute("select rootpage from sqlite_master where name = ?", (table,)).fetchone()
        (size,) = database.execute("pragma page_size").fetchone()
    with (folder / "crawl.db").open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


@pytest.mark.parametrize("table", ["meta", "page", "fetch", "journal"])
def test_a_damaged_database_is_reported_and_cannot_be_repaired(folder: Path, capsys: Captured, table: str) -> None:
    destroy_root_of(folder, table)
    assert cli.run(["verify", str(folder), "--repair"]) == 1
    assert "not repaired" in capsys.readouterr().out


def test_a_database_that_cannot_be_opened_is_refused_by_other_commands(folder: Path, capsys: Captured) -> None:
    destroy_root_of(folder, "meta")
    for command in (["crawl", "--quiet", "--resume"], ["status"], ["report"]):
        assert cli.run([*command, str(folder)]) == 2
        assert "malformed; restore it from a copy" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("delete from meta where key = 'options'", "options cannot be read"),
        ("update meta set value = '{}' where key = 'options'", "options cannot be read"),
        ("update meta set value = '[]' where key = 'options'", "options cannot be read"),
        ("update meta set value = 'x' where key = 'options'", "options cannot be read"),
        ("delete from cdxj", "cdxj has no row"),
        ("update fetch set started = 1e308 * 10", "fetch.started are not finite numbers"),
        ("update progress set seconds = 1e999", "progress.seconds are not finite numbers"),
        ("update page set url = cast(x'ff' as text) where id = 3", "cannot be read"),
        ("drop table fetch", "no such table: fetch"),
        ("drop table robots", "no such table: robots"),
        ("drop table cdxj", "no such table: cdxj"),
    ],
)
def test_contents_that_no_crawl_writes_are_damage(folder: Path, capsys: Captured, statement: str, said: str) -> None:
    with closing(sqlite3.connect(folder / "crawl.db", isolation_level=None)) as database:
        database.execute(statement)
    for arguments in ([], ["--repair"]):
        assert cli.run(["verify", str(folder), "--quiet", *arguments]) == 1
        assert said in capsys.readouterr().out
    assert cli.run(["status", str(folder)]) in (0, 2)


@pytest.mark.parametrize("bytes_", [b"", b"not a database at all" * 100])
def test_a_database_that_is_none_beside_archives_is_damage(folder: Path, capsys: Captured, bytes_: bytes) -> None:
    (folder / "crawl.db").write_bytes(bytes_)
    assert cli.run(["verify", str(folder), "--repair"]) == 1
    assert "too damaged to be opened" in capsys.readouterr().out


def test_a_folder_that_is_being_crawled_or_has_no_crawl_is_refused(
    folder: Path, tmp_path: Path, capsys: Captured
) -> None:
    claim = claim_existing(folder)
    for arguments in ([], ["--repair"]):
        assert cli.run(["verify", str(folder), *arguments]) == 2
        assert "is being crawled by process" in capsys.readouterr().err
    claim.release()
    assert cli.run(["verify", str(tmp_path / "nothing")]) == 2


def test_a_folder_that_is_being_verified_is_refused_at_once(folder: Path, capsys: Captured) -> None:
    with held(folder, repair=False):
        resumed = ["crawl", "--quiet", "--resume", str(folder), "--max-pages", "130"]
        for command in (resumed, ["verify", str(folder), "--repair"]):
            assert cli.run(command) == 2
            assert f"{folder}: is being verified; try again" in capsys.readouterr().err
        assert cli.run(["verify", str(folder)]) == 0  # two processes may verify at the same time


@pytest.fixture(scope="module")
def sound_parts(server: Served, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Crawl with two processes. `older` has the second partition as it was before the crawl was resumed."""
    base = tmp_path_factory.mktemp("parallel")
    hosts, folder = base / "hosts", base / "parts"
    hosts.write_text("".join(f"{address} {name}\n" for name, address in server.hosts.items()))
    options = [
        "--hosts",
        str(hosts),
        "--allow-private",
        "--delay",
        "0.01",
        "--pause",
        "0",
        "--processes",
        "2",
        "--quiet",
    ]
    goal = ["--max-pages", "60"]
    assert cli.run(["crawl", *server.seed_urls[:3], "-o", str(folder), "--scope", "any", *options, *goal]) == 0
    shutil.copytree(folder / "partition-1", base / "older")
    assert cli.run(["crawl", "--resume", str(folder), "--quiet", "--max-pages", "1000"]) == 0
    return base


@pytest.fixture
def parts(sound_parts: Path, tmp_path: Path) -> Path:
    return shutil.copytree(sound_parts, tmp_path / "p") / "parts"


def swapped(folder: Path) -> None:
    (folder / "partition-0").rename(folder / "other")
    (folder / "partition-1").rename(folder / "partition-0")
    (folder / "other").rename(folder / "partition-1")


def older(folder: Path) -> None:
    shutil.rmtree(folder / "partition-1")
    (folder.parent / "older").rename(folder / "partition-1")


def older_without_merged_database(folder: Path) -> None:
    """Also remove the merged database, so that nothing is left to compare with."""
    older(folder)
    (folder / "crawl.db").unlink()


@slow
@pytest.mark.parametrize(
    ("damage", "place", "what"),
    [
        (lambda folder: shutil.rmtree(folder / "partition-1"), "partition-1", "has no crawl.db: restore"),
        (lambda folder: (folder / "partition-1" / "crawl.db").unlink(), "partition-1", "has no crawl.db: restore"),
        (swapped, "partition-0", "belongs to another crawl; restore"),
        (older, "partition-1", "but the database of all partitions already has its batch"),
        (older_without_merged_database, "partition-0", "it and partition-1 are not from the same time"),
        (
            lambda folder: change(folder, "delete from fetch where seq % 2"),
            "crawl.db",
            "fetches, and the partitions have",
        ),
    ],
    ids=["removed", "no database", "swapped", "older", "older alone", "half of the rows"],
)
def test_partitions_of_different_times_or_crawls_are_not_sound(
    parts: Path, damage: Callable[[Path], object], place: str, what: str
) -> None:
    assert verify_all(parts).problems == []
    damage(parts)
    found = verify_all(parts)
    assert not found.is_sound
    assert any(one.place == str(parts / place) and what in one.what for one in found.remaining), found.remaining


def test_a_parallel_crawl_without_its_manifest_is_refused(parts: Path, capsys: Captured) -> None:
    (parts / "parallel.json").unlink()
    before = (parts / "crawl.db").read_bytes()
    for arguments in ([], ["--repair"]):
        assert cli.run(["verify", str(parts), *arguments]) == 2
        assert "parallel.json is missing: restore that from a copy" in capsys.readouterr().err
    assert (parts / "crawl.db").read_bytes() == before


def test_a_merged_database_that_lacks_rows_is_rebuilt(parts: Path) -> None:
    change(parts, "delete from fetch where seq % 2")
    assert verify_all(parts, repair=True).is_sound
    assert cli.run(["report", str(parts)]) == 0
    assert (parts / "crawl.db").exists() and verify_all(parts).problems == []


def test_a_partition_with_a_damaged_database_is_named_and_the_others_are_checked(parts: Path) -> None:
    database = parts / "partition-1" / "crawl.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
        (page,) = connection.execute("select rootpage from sqlite_master where name = 'fetch'").fetchone()
        (size,) = connection.execute("pragma page_size").fetchone()
    body = bytearray(database.read_bytes())
    body[(page - 1) * size : page * size] = b"\xff" * size
    database.write_bytes(body)
    found = verify_all(parts)
    assert {one.place for one in found.problems} == {str(database)}


def test_all_partitions_of_a_crawl_are_checked(parts: Path, capsys: Captured) -> None:
    folder = parts
    assert cli.run(["verify", str(folder)]) == 0
    assert f"{folder}: sound: 2 archives" in capsys.readouterr().out
    coordinator = lock.take(folder)
    assert cli.run(["verify", str(folder)]) == 2  # between two commits no partition may be running
    assert "is being crawled by process" in capsys.readouterr().err
    coordinator.release()
    _, offset, length = answer(folder / "partition-1", 2)
    flip(archive(folder / "partition-1"), offset + length // 2)
    (folder / "crawl.db").write_bytes((folder / "crawl.db").read_bytes()[:-4096])
    assert cli.run(["verify", str(folder)]) == 1
    said = capsys.readouterr().out
    assert f"{archive(folder / 'partition-1')} at byte {offset:,}" in said and str(folder / "crawl.db") in said
    assert cli.run(["verify", str(folder), "--repair"]) == 1
    assert cli.run(["verify", str(folder)]) == 0
    assert cli.run(["report", str(folder)]) == 0  # the merged database is rebuilt


@pytest.fixture
def several_archives(tmp_path: Path) -> Path:
    """Make a crawl with several archives. Its batches are invented, so there is no log to replay."""
    folder = tmp_path / "several"
    claim_new(folder, asdict(CrawlOptions(seeds=("http://site0.example/",)))).release()
    keeper = Keeper(folder, StoreSettings(warc_bytes=30_000, metadata=True))
    for number in range(1, 9):
        keeper.commit([batch(number)])
    keeper.close(lambda step: None)
    return folder


def test_chunked_bodies_revisits_and_refetched_pages_are_sound(several_archives: Path) -> None:
    found = verify(several_archives)
    made_up = ("the crawl cannot continue", "of progress", "the database has 404")  # in what these batches say
    assert not [one for one in map(str, found.problems) if not any(what in one for what in made_up)]
    assert found.archives > 2 and found.records > 100


@given(st.integers(232, 3_000) | st.integers(65_000, 200_000))
def test_a_filler_is_one_record_of_exactly_its_length(length: int) -> None:
    fill = filler(length, 1.7e9)
    assert fill is not None and len(fill) == length
    descriptor = os.memfd_create("filler")
    os.write(descriptor, fill + fill)
    assert [part.length for part in read_back(descriptor, 2 * length, {}) if not isinstance(part, Damage)] == [
        length
    ] * 2
    os.close(descriptor)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 5\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 5\n\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\n",
    ],
)
def test_a_digest_covers_the_body_however_the_head_ends(head: bytes) -> None:
    for body in (b"hello", b"a\n\nb\r\n\r\nc"):
        digest = base32(sha1(body, usedforsecurity=False).digest())
        headers = {"warc-type": "response", "warc-payload-digest": f"sha1:{digest}"}
        assert Record(0, 1, headers, head + body).has_digest()
        assert not Record(0, 1, headers, head + body + b"!").has_digest()


def test_unreadable_sectors_are_read_as_zeros_and_the_other_bytes_keep_their_place(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, plain = folder / "disk", os.pread
    data = random.Random(1).randbytes(3_000_000)
    path.write_bytes(data)

    def pread(descriptor: int, count: int, at: int) -> bytes:
        if at < 1_500_000 + 512 and at + count > 1_500_000:  # one sector
            raise OSError(errno.EIO, "Input/output error")
        return plain(descriptor, count, at)

    monkeypatch.setattr(os, "pread", pread)
    keep_bytes(folder, path, 1000, len(data))
    block = 1_500_000 // 4096 * 4096
    expected = data[1000:block] + bytes(4096) + data[block + 4096 :]
    assert (folder / DAMAGED / "disk-1000").read_bytes() == expected


def test_a_damage_ends_with_the_archive_whatever_a_row_says() -> None:
    descriptor = os.memfd_create("archive")
    os.write(descriptor, (filler(180 + 100, 1.7e9) or b"")[:280])
    for known in ({10**9: 500}, {0: 10**9}, {0: 10**9, 10**9: 500}):
        os.pwrite(descriptor, b"?", 0)
        assert [(part.offset, part.length) for part in read_back(descriptor, 280, known)] == [(0, 280)]
    os.close(descriptor)


def test_a_row_far_behind_the_end_of_the_archive_does_not_fill_the_disk(folder: Path) -> None:
    size = archive(folder).stat().st_size
    flip(archive(folder), size - 20)
    change(folder, "update fetch set offset = ? where offset = ?", 10**8, answer(folder, 3)[1])
    verify(folder, repair=True)
    assert all(path.stat().st_size <= size for path in (archive(folder), *(folder / DAMAGED).iterdir()))


@pytest.mark.parametrize("damage", ["offset = null", "length = null", "offset = offset + 0.5"])
@pytest.mark.parametrize(("table", "rows"), [("fetch", "fetches"), ("robots", "robots.txt files")])
def test_a_record_without_offset_or_length_is_named(folder: Path, table: str, rows: str, damage: str) -> None:
    change(folder, f"update {table} set {damage} where seq = (select min(seq) from {table} where file = 0)")
    said = list(map(str, verify(folder).problems))
    assert any(f"1 {rows} whose record has no place or no length" in one for one in said)


@pytest.mark.parametrize(
    ("sql", "what", "unknown"),
    [
        ("delete from warc where id = 0", "1 archives that are missing", 0),
        ("update fetch set file = -1 where seq = {}", "1 fetches whose record is in no archive", 1),
    ],
)
def test_a_row_without_an_archive_or_offset_hides_no_other_row(
    several_archives: Path, sql: str, what: str, unknown: int
) -> None:
    archives = {path: path.read_bytes() for path in (several_archives / "warc").iterdir()}
    index = (several_archives / "index.cdxj").read_bytes()
    change(several_archives, sql.format("(select min(seq) from fetch where file = 0)"))
    found = verify(several_archives, repair=True)
    said = list(map(str, found.remaining))
    assert any(what in one for one in said)
    assert sum("an answer that the database does not know" in one for one in said) == unknown
    assert (several_archives / "index.cdxj").read_bytes() == index
    assert {path: path.read_bytes() for path in (several_archives / "warc").iterdir()} == archives


def test_a_row_with_the_wrong_place_is_not_repaired(folder: Path) -> None:
    url, offset, length = answer(folder, 5)
    change(folder, "update fetch set offset = offset + 1 where offset = ?", offset)
    index = (folder / "index.cdxj").read_bytes()
    found = verify(folder, repair=True)
    assert any("no answer begins here" in one.what and one.url == url for one in found.remaining)
    assert all(one.repair is None and not one.lost for one in found.remaining)
    assert answer(folder, 5) == (url, offset + 1, length) and (folder / "index.cdxj").read_bytes() == index


def test_a_row_from_before_a_repair_is_reported_as_lost_and_repaired(folder: Path) -> None:
    url, offset, length = answer(folder, 7)
    flip(archive(folder), offset + length // 2)
    shutil.copy(folder / "crawl.db", folder / "older")
    verify(folder, repair=True)
    (folder / "older").rename(folder / "crawl.db")
    found = verify(folder, repair=True)
    assert not found.remaining and any(one.url == url and one.lost for one in found.problems)
    is_repaired(folder)


class Killed(BaseException):
    """The process ends here."""


def kill_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise `Killed` at this one of the steps that change the index or its length in the database."""
    steps, rename, write = count(), Path.replace, archive_check.write

    def replace(path: Path, target: Path) -> Path:
        if next(steps) == step:
            raise Killed
        return rename(path, target)

    def written(*given: Any) -> None:
        if next(steps) == step:
            raise Killed
        write(*given)

    monkeypatch.setattr(Path, "replace", replace)
    monkeypatch.setattr(archive_check, "write", written)


@pytest.mark.parametrize("lines", [1, 0, -1], ids=["a line too many", "another line", "a line too few"])
@pytest.mark.parametrize("step", range(3))
def test_an_index_whose_repair_is_killed_at_any_step_is_complete_or_as_before(
    folder: Path, step: int, lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, resumed = folder / "index.cdxj", folder.with_name("resumed")
    whole = index.read_bytes()
    first = whole.splitlines(keepends=True)[0]
    damaged = {1: first + whole, 0: first.upper() + whole[len(first) :], -1: whole[len(first) :]}[lines]
    index.write_bytes(damaged)
    change(folder, "update cdxj set bytes = ?", len(damaged))
    with monkeypatch.context() as patched, pytest.raises(Killed):
        kill_at(step, patched)
        archive_check.rebuild_index(folder)
    shutil.copytree(folder, resumed)
    keeper = Keeper(resumed, StoreSettings())  # as a resume begins
    keeper.close(lambda step: None)
    is_known = step == 2 or (step == 1 and len(damaged) == len(whole))  # the database gets the new length
    expected = whole if is_known else damaged
    assert sorted((resumed / "index.cdxj").read_bytes().splitlines()) == sorted(expected.splitlines())
    archive_check.rebuild_index(folder)
    assert index.read_bytes() == whole and not list(folder.glob(".index.cdxj.*"))


def test_no_repair_is_offered_for_a_damage_too_short_for_a_record(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = count()

    def counted_check(*given: Any, plain: Callable[..., Any] = crawl_verify._verified) -> Any:
        next(checks)
        return plain(*given)

    monkeypatch.setattr(crawl_verify, "_verified", counted_check)
    size = archive(folder).stat().st_size
    with archive(folder).open("ab") as file:
        file.write(b"?" * 100)
    change(folder, "update warc set bytes = ?", size + 100)
    found = verify(folder, repair=True)
    (problem,) = found.remaining
    assert problem.offset == size and problem.repair is None and problem.lost
    assert next(checks) == 1
