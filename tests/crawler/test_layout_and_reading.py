"""Claims decide which process may write into a folder, and `Reading` returns what a crawl has written."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.crawler.store_world import batch, robots
from trapline.crawler.engine.records import RobotsFetched
from trapline.crawler.files import lock
from trapline.crawler.files.layout import FORMAT, check_crawl, claim_existing, claim_new
from trapline.crawler.files.lock import holder
from trapline.crawler.files.reading import IS_UNREACHABLE, Reading
from trapline.crawler.inspect.database_reader import open_database
from trapline.crawler.inspect.summary import processor_of
from trapline.crawler.store.keeper import Keeper
from trapline.crawler.store.settings import StoreSettings
from trapline.errors import ConfigError, InvariantError
from trapline.fetch.robots.answer import is_unreachable
from trapline.processor import ProcessorTime


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    """Write three batches, and the robots.txt of sites 1, 2 and 3."""
    folder = tmp_path / "crawl"
    claim_new(folder, {"strategy": "fifo", "seeds": ["http://site0.example/"]}).release()
    keeper = Keeper(folder, StoreSettings())
    keeper.commit([batch(1), batch(2)])
    keeper.commit([batch(3)])
    keeper.leave()
    return folder


def test_a_new_crawl_may_use_an_empty_folder_or_make_a_missing_one(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "missing"):
        claim_new(tmp_path / name, {}).release()
        check_crawl(tmp_path / name)


def test_a_crawl_without_a_commit_is_started_again(tmp_path: Path) -> None:
    claim_new(tmp_path / "c", {"run": 1}).release()
    claim_new(tmp_path / "c", {"run": 2}).release()
    assert Reading(tmp_path / "c").options() == {"run": 2}


@pytest.mark.parametrize(
    ("prepare", "says"),
    [
        (lambda path: path.write_text("x"), "exists and is not a folder"),
        (lambda path: (path / "photos").mkdir(parents=True), r"holds other files \(photos\); name a new or an empty"),
        (lambda path: path.mkdir() or (path / "crawl.db").write_text("no database"), "not the database of a crawl"),
    ],
)
def test_a_new_crawl_does_not_touch_other_files(tmp_path: Path, prepare: object, says: str) -> None:
    prepare(tmp_path / "c")  # type: ignore[operator]
    with pytest.raises(ConfigError, match=says):
        claim_new(tmp_path / "c", {})


def test_a_new_crawl_needs_the_parent_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no folder"):
        claim_new(tmp_path / "no" / "c", {})


def test_a_new_crawl_does_not_replace_an_old_one(crawl: Path) -> None:
    with pytest.raises(ConfigError, match="holds a crawl; continue with --resume"):
        claim_new(crawl, {})
    claim_existing(crawl).release()


def test_two_crawls_in_one_folder_are_refused(crawl: Path) -> None:
    claim = claim_existing(crawl)
    assert holder(crawl) == os.getpid()
    for again in (lambda: claim_existing(crawl), lambda: claim_new(crawl, {})):
        with pytest.raises(ConfigError, match=f"is being crawled by process {os.getpid()}; wait"):
            again()
    claim.release()
    assert holder(crawl) is None
    claim_existing(crawl).release()


def test_the_error_names_the_activity_that_holds_the_folder(crawl: Path) -> None:
    taken = lock.take(crawl, "repaired")
    with pytest.raises(ConfigError, match=f"is being repaired by process {os.getpid()}; wait"):
        claim_existing(crawl)
    taken.release()


def test_a_crawl_on_another_machine_is_named_and_not_taken_for_dead(crawl: Path) -> None:
    claim = claim_existing(crawl)
    (crawl / "lock").write_text("999999999 elsewhere\n")
    with pytest.raises(ConfigError, match=r"is being crawled by process 999999999 on elsewhere; wait"):
        claim_existing(crawl)
    claim.release()
    claim_existing(crawl).release()


def test_a_new_claim_waits_for_a_store_that_outlives_its_loop(crawl: Path) -> None:
    """The lock is inherited. The named holder is dead, but its child process still holds the lock."""
    code = (
        "import subprocess, sys; from pathlib import Path; from trapline.crawler.files.layout import claim_existing\n"
        f"claim = claim_existing(Path({str(crawl)!r}))\n"
        "subprocess.Popen(['sleep', '0.3'], pass_fds=(claim.lock.descriptor,), stdout=subprocess.DEVNULL)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    claim_existing(crawl).release()


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()], ids=["missing", "empty"])
def test_a_folder_without_a_crawl_is_refused(tmp_path: Path, make: object) -> None:
    make(tmp_path / "c")  # type: ignore[operator]
    for opening in (claim_existing, Reading, check_crawl):
        with pytest.raises(ConfigError, match="name the folder of a crawl"):
            opening(tmp_path / "c")


def test_a_crawl_of_another_format_is_refused(crawl: Path) -> None:
    with sqlite3.connect(crawl / "crawl.db") as database:
        database.execute("update meta set value = '99' where key = 'format'")
    for opening in (claim_existing, Reading):
        with pytest.raises(
            ConfigError, match=f"format 99; this version reads {FORMAT}: .* crawl anew into another folder"
        ):
            opening(crawl)


def test_the_written_rows_are_read_back(crawl: Path) -> None:
    reading = Reading(crawl)
    assert reading.options() == {"strategy": "fifo", "seeds": ["http://site0.example/"]}
    assert list(reading.sites()) == [(site, f"http://site{site}.example") for site in range(5)]
    assert list(reading.addresses()) == []
    assert list(reading.pages(after=12)) == [row for n in (2, 3) for row in batch(n).pages if row[0] > 12]
    assert list(reading.journal(after=1)) == [(2, b"calls of 2"), (3, b"calls of 3")]
    assert reading.progress() == batch(3).progress
    assert reading.last_batch() == 3
    assert [reading.url(page) for page in (20, 0)] == ["http://site0.example/page20", "http://site0.example/page0"]
    with pytest.raises(InvariantError, match="page 21 is not"):
        reading.url(21)


def test_the_latest_robots_txt_of_each_site_is_read(crawl: Path) -> None:
    keeper = Keeper(crawl, StoreSettings())
    fresh = batch(4)._replace(robots=[robots(2, b"new rules", started=1.8e9)])
    keeper.commit([fresh])
    keeper.leave()
    found = {latest.site: (latest.started, latest.body) for latest in Reading(crawl).robots()}
    old = (1_700_000_000.5, b"User-agent: *\nDisallow: /x\n")
    assert found == {1: old, 2: (1.8e9, b"new rules"), 3: old}


def test_the_first_of_the_last_unreachable_answers_is_read(crawl: Path) -> None:
    def robots_fetches(site: int, *answers: tuple[float, int, str]) -> list[RobotsFetched]:
        return [robots(site, b"", started=1.8e9 + at, status=status, error=error) for at, status, error in answers]

    keeper = Keeper(crawl, StoreSettings())
    said = [
        *robots_fetches(1, (10.0, 503, ""), (20.0, 301, ""), (30.0, 0, "timeout")),
        *robots_fetches(2, (10.0, 503, ""), (20.0, 404, ""), (30.0, 429, ""), (40.0, 200, "encoding")),
        *robots_fetches(3, (10.0, 503, ""), (20.0, 200, "")),
        *robots_fetches(4, (5.0, 500, "")),
    ]
    keeper.commit([batch(4)._replace(robots=said)])
    keeper.leave()
    assert Reading(crawl).robots_unreachable(after=1.8e9 + 9.0) == {1: 1.8e9 + 30.0, 2: 1.8e9 + 30.0}


@pytest.mark.parametrize("error", ["", "timeout"])
def test_the_database_knows_which_answers_count_as_unreachable(error: str) -> None:
    found = sqlite3.connect(":memory:").execute(
        "with recursive answer(status) as (select 0 union all select status + 1 from answer where status < 1000)"
        f" select status, {IS_UNREACHABLE} from (select status, ? as error from answer)",
        (error,),
    )
    assert dict(found) == {status: is_unreachable(status, error) for status in range(1001)}


def test_long_tables_are_read_in_pieces(crawl: Path) -> None:
    reading = Reading(crawl)
    assert list(reading._pieces("select id from page where id > ? order by id", -1, 4)) == [(i,) for i in range(21)]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_crawl_on_a_read_only_medium_is_read(crawl: Path) -> None:
    crawl.chmod(0o555)
    try:
        assert Reading(crawl).last_batch() == 3
    finally:
        crawl.chmod(0o755)


def test_a_folder_whose_making_was_killed_is_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    for name in ("crawl.db.new", "crawl.db.new-journal"):
        (folder / name).write_bytes(b"half of a page")
    claim_new(folder, {}).release()
    check_crawl(folder)
    assert not list(folder.glob("crawl.db.new*"))


def test_a_write_that_breaks_off_before_the_first_batch_leaves_a_readable_folder(tmp_path: Path) -> None:
    """A rollback journal would force readers to write. So the database has a write-ahead log from the beginning."""
    claim_new(tmp_path / "c", {}).release()
    writer = sqlite3.connect(tmp_path / "c" / "crawl.db", isolation_level=None)
    writer.execute("pragma cache_size = 1")  # so that uncommitted rows are written to the disk
    writer.execute("begin")
    writer.executemany("insert into meta values (?, ?)", ((str(number), "x" * 3000) for number in range(100)))
    shutil.copytree(tmp_path / "c", tmp_path / "broken off")
    writer.close()
    claim_existing(tmp_path / "broken off").release()


def test_processor_times_of_all_runs_are_added(crawl: Path) -> None:
    """The fixture's run recorded none. Each of two runs replaces its own times with every commit."""
    for run in range(2):
        keeper = Keeper(crawl, StoreSettings())
        for number in (4 + 2 * run, 5 + 2 * run):
            keeper.commit([batch(number)._replace(processor=ProcessorTime(float(number), 1.0, 2.0))])
        keeper.leave()
    with closing(open_database(crawl)) as database:
        found = processor_of(database)
    assert found is not None and found.loop == ProcessorTime(5.0 + 7.0, 2.0, 4.0)
    assert found.store is not None and found.store.user_s + found.store.system_s > 0
