"""A crawl resumes from its folder, after any end, with any options, and with a damaged folder if possible."""

import json
import os
import shutil
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.crawler.kill_world import Run, fetches, options_of, prepared, rows, served, settled
from tests.effort import slow
from tests.testweb.webs import numbered
from trapline import cli
from trapline.crawler.engine import page_quality as scores
from trapline.crawler.engine.options import CrawlOptions, live_rules
from trapline.crawler.engine.run import open_crawl, resume_crawl
from trapline.crawler.files import resume
from trapline.crawler.files.layout import DATABASE
from trapline.crawler.files.reading import Reading
from trapline.crawler.store.client import Store
from trapline.crawler.store.settings import StoreSettings
from trapline.errors import ConfigError
from trapline.frontier import FETCHED
from trapline.testweb import Behaviour, Promise, Served, build_web, check, serve


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(300, 12) as server:
        yield server


def begin(server: Served, folder: Path, **changes: Any) -> dict[str, Any]:
    given = {"rules": live_rules(delay_s=0.01, rescore=40), "pause_s": 0.001, "max_pages": 90, **changes}
    return open_crawl(options_of(server, **given), folder, nullcontext(lambda standing: None))


def resume_to_end(folder: Path, **changes: Any) -> dict[str, Any]:
    return resume_crawl(folder, nullcontext(lambda standing: None), **{"max_pages": 1e9, **changes})


@pytest.mark.parametrize("strategy", ["batch-pagerank", "partial-pagerank"])
def test_scores_include_the_links_of_earlier_runs(
    server: Served, tmp_path: Path, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(server, tmp_path / "c", strategy=strategy)
    runs: list[tuple[int, int]] = []
    own = scores.Scores.scores

    def noted(self: scores.Scores, life: Any) -> Any:
        runs.append((len(self._links), np.count_nonzero(life == FETCHED)))
        return own(self, life)

    monkeypatch.setattr(scores.Scores, "scores", noted)
    resume_to_end(tmp_path / "c", max_pages=180)
    assert runs and all(kept == fetched > 90 for kept, fetched in runs)


@slow
def test_names_that_were_not_looked_up_yet_are_looked_up_after_a_resume(server: Served, tmp_path: Path) -> None:
    """The crawl is killed while the name server is silent. Its sites are known, and their addresses are not."""
    folder = prepared(tmp_path / "c", options_of(server, hosts={}, nameservers=("127.0.0.1:9",)))
    with Run("--resume", folder) as run:
        assert run.wait_for(lambda: rows(folder, "select 1 from site limit 1") != [])
        run.send(signal.SIGKILL, run.loop)
        run.ended()
    assert rows(folder, "select count(*) from address") == [(0,)]
    hosts = {name: (address,) for name, address in server.hosts.items()}
    assert resume_to_end(folder, hosts=hosts, nameservers=(), max_pages=50)["pages_fetched"] == 50


def test_a_robots_file_older_than_an_hour_is_requested_again_after_a_resume(server: Served, tmp_path: Path) -> None:
    """Its max-age is not stored, and may have been an hour."""
    folder = tmp_path / "c"
    begin(server, folder, max_pages=5)
    options = CrawlOptions.from_json(rows(folder, "select value from meta where key = 'options'")[0][0])
    known = []
    for _ in range(2):
        sites = resume.restored(folder, options, resume.strategy_of(options)).sites
        known.append([site.robots is not None for site in sites])
        with sqlite3.connect(folder / DATABASE) as database:
            database.execute("update robots set started = started - 3600")
    assert any(known[0]) and not any(known[1])


def test_a_clock_that_was_set_back_delays_nothing(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(server, tmp_path / "c")
    monkeypatch.setattr("trapline.crawler.engine.live.time.time", lambda now=time.time: now() - 3600.0)
    assert resume_to_end(tmp_path / "c", max_pages=110, max_seconds=30.0)["stopped_by"] == "max-pages"


# ---- Ctrl-C


def interrupted(folder: Path, why: str = "interrupted") -> None:
    """Check that the folder is complete and gives this reason for the stop."""
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["stopped_by"] == why
    assert summary["pages_fetched"] == len(settled(folder))
    assert rows(folder, "select count(*) from sqlite_master where type = 'index' and name like '%_by_%'") == [(3,)]


@slow
def test_sigterm_ends_a_pause_of_an_hour(server: Served, tmp_path: Path) -> None:
    folder = prepared(tmp_path / "c", options_of(server, pause_s=3600.0))
    with Run("--resume", folder) as run:
        assert run.wait_for(lambda: rows(folder, "select 1 from robots limit 1") != [])
        run.send(signal.SIGTERM, run.loop)
        assert run.ended()[0] == 0
    interrupted(folder, "terminated")


@slow
def test_a_second_ctrl_c_ends_a_hanging_visit_and_no_page_fails(tmp_path: Path) -> None:
    web = build_web(numbered(2, 4), [Behaviour(), Behaviour(latency_s=3600.0)])
    with serve(web) as server:
        folder = prepared(tmp_path / "c", options_of(server, seeds=tuple(server.seed_urls)))
        with Run("--resume", folder) as run:
            assert run.wait_for(lambda: fetches(folder) == 4 and 1 in server.log().site)
            run.send(signal.SIGINT, run.loop, run.loop)  # as `timeout` does: to the process, and to its group
            time.sleep(1.0)
            assert run.running
            run.send(signal.SIGINT, run.loop)
            assert run.ended()[0] == 0
        interrupted(folder)
        assert fetches(folder) == 4


# ---- folders that cannot be resumed


def resumed(folder: Path, *arguments: str) -> int:
    return cli.run(["crawl", "--quiet", "--resume", str(folder), *arguments])


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_complete_crawl_is_not_resumed_and_its_folder_does_not_change(
    server: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "c"
    begin(server, folder)
    before = contents(folder)
    assert cli.run(["crawl", "--resume", str(folder)]) == 0
    assert "--max-pages 90; to continue, give a higher" in capsys.readouterr().out
    assert cli.run(["crawl", "--resume", str(folder), "--max-pages", "80"]) == 0
    assert contents(folder) == before
    assert resumed(folder, "--max-pages", "100") == 0
    assert len(settled(folder)) >= 100
    assert resumed(folder, "--max-pages", "1000") == 0
    before = contents(folder)
    assert cli.run(["crawl", "--resume", str(folder), "--max-pages", "2000"]) == 0
    assert "nothing is left to fetch" in capsys.readouterr().out
    assert contents(folder) == before


def complaint(capsys: pytest.CaptureFixture[str]) -> str:
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    return line


def test_a_folder_that_another_process_crawls_is_refused(
    server: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = prepared(tmp_path / "c", options_of(server, pause_s=3600.0))
    with Run("--resume", folder) as run:
        assert run.wait_for(lambda: rows(folder, "select 1 from journal limit 1") != [])
        assert resumed(folder) == 2
        assert f"is being crawled by process {run.loop}" in complaint(capsys)


def test_a_folder_that_is_not_a_crawl_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert resumed(tmp_path) == 2
    assert "name the folder of a crawl" in complaint(capsys)
    assert resumed(tmp_path / "missing") == 2
    assert "name the folder of a crawl" in complaint(capsys)
    (tmp_path / "crawl.db").write_bytes(b"text, and no database" * 100)
    assert resumed(tmp_path) == 2
    assert "not the database of a crawl" in complaint(capsys)


@pytest.mark.parametrize("whole", [0.1, 0.5])
def test_a_damaged_database_is_reported(
    whole: float, server: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "c"
    begin(server, folder)
    database = bytearray((folder / "crawl.db").read_bytes())
    end = int(len(database) * whole)
    database[end:] = bytes(len(database) - end)
    (folder / "crawl.db").write_bytes(database)
    assert resumed(folder, "--max-pages", "1000") == 2
    assert "crawl.db" in complaint(capsys)


@pytest.mark.parametrize("damage", ["missing", "torn", "flipped"])
def test_without_a_snapshot_a_crawl_is_replayed_from_its_beginning(server: Served, tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "c"
    begin(server, folder)
    whole = resume.rebuilt(Reading(folder))[0]
    for path in sorted(folder.glob("snapshot/*/*/*")):
        data = path.read_bytes()
        if damage == "missing":
            path.unlink()
        else:
            path.write_bytes(
                data[: len(data) // 2] if damage == "torn" else data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]
            )
    replayed = resume.rebuilt(Reading(folder))[0]
    assert np.array_equal(whole.state.page[: whole.pages], replayed.state.page[: replayed.pages])
    assert resume_to_end(folder, max_pages=110)["pages_fetched"] == 110


# ---- files of the user


@pytest.mark.parametrize(("strategy", "column"), [("omniscient", "pagerank"), ("historical-pagerank-zero", "history")])
def test_page_values_come_from_the_users_file_in_every_run(
    server: Served, tmp_path: Path, strategy: str, column: str
) -> None:
    web, file, folder = server.web, tmp_path / "values.txt", tmp_path / "c"
    page_quality = {web.url(page): 1.0 / (2 + page) for page in range(web.pages)}
    file.write_text("".join(f"{url}\t{value}\n" for url, value in page_quality.items()))
    source = {"history": str(file)} if column == "history" else {"quality": str(file)}
    begin(server, folder, strategy=strategy, **source)
    begun = len(rows(folder, "select 1 from page"))
    resume_to_end(folder)
    frontier = resume.rebuilt(Reading(folder))[0]
    values = frontier.state.columns[: frontier.pages, frontier.strategy.page.columns.index(column)]
    urls = [url for (url,) in rows(folder, "select url from page order by id")]
    assert len(urls) > begun
    assert values.tolist() == [page_quality[url] for url in urls]


def test_files_of_the_user_are_found_from_another_working_directory(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("values.txt").write_text(f"{server.seed_urls[0]}\t1\n")
    Path("hosts").write_text("".join(f"{address} {name}\n" for name, address in server.hosts.items()))
    options = ["--strategy", "omniscient", "--quality", "values.txt", "--hosts", "hosts", "--allow-private", "--quiet"]
    polite = ["--delay", "0.01", "--max-pages", "5"]
    assert cli.run(["crawl", *server.seed_urls[:3], "-o", "c", *options, *polite]) == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert resumed(Path("../c"), "--max-pages", "10") == 0
    assert len(settled(tmp_path / "c")) >= 10


def test_a_snapshot_of_an_uncommitted_batch_is_removed(server: Served, tmp_path: Path) -> None:
    """The crawl is killed after a snapshot whose batch was never committed. Another batch will get the same number."""
    folder = tmp_path / "c"
    begin(server, folder)
    newest = max(int(path.name) for path in folder.glob("snapshot/*"))
    for number in (newest + 1, newest + 5):
        shutil.copytree(folder / "snapshot" / str(newest), folder / "snapshot" / str(number))
    options = options_of(server)
    resume.restored(folder, options, resume.strategy_of(options))
    assert max(int(path.name) for path in folder.glob("snapshot/*")) == newest


# ---- a slow store


def test_connections_that_close_while_they_wait_for_the_store_are_no_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store stops for longer than servers keep a connection open. Then the crawl continues, and no page has failed."""
    monkeypatch.setattr("trapline.crawler.files.opening.StoreSettings", partial(StoreSettings, backlog_batches=1))
    stores: list[int] = []
    started = Store.__init__

    def noted(self: Store, process: Any, *rest: Any) -> None:
        stores.append(process.pid)
        started(self, process, *rest)

    monkeypatch.setattr(Store, "__init__", noted)
    folder = tmp_path / "c"

    def stop_store() -> None:
        while not stores or fetches(folder) < 60:
            time.sleep(0.01)
        os.kill(stores[0], signal.SIGSTOP)
        time.sleep(1.5)
        os.kill(stores[0], signal.SIGCONT)

    with serve(build_web(numbered(8, 60), Behaviour(keep_alive_s=0.3))) as server:
        holding = threading.Thread(target=stop_store)
        holding.start()
        summary = begin(server, folder, seeds=tuple(server.seed_urls), max_pages=1e9)
        holding.join()
    assert (summary["pages_fetched"], summary["errors"], summary["stopped_by"]) == (480, 0, "drained")


@slow
def test_a_resume_that_is_quicker_than_the_delay_keeps_the_delay(tmp_path: Path) -> None:
    """The crawl is killed just after it sent the requests of its second visits, which its log does not contain yet."""
    delay_s = 4.0
    with serve(build_web(numbered(4, 3), sites_per_address=2)) as server:
        rules = live_rules(delay_s=delay_s, per_connection=1)
        folder = prepared(tmp_path / "c", options_of(server, seeds=tuple(server.seed_urls), rules=rules))
        for requests in (4, 6):
            with Run("--resume", folder) as run:
                assert run.wait_for(lambda requests=requests: np.count_nonzero(server.log().page >= 0) >= requests)  # type: ignore[misc]
                run.send(signal.SIGKILL, run.loop, run.store)
                run.ended()
        assert check(server.log(), Promise(delay_s, 1)).violations == 0


@pytest.mark.parametrize("at", [0.4, *(pytest.param(at, marks=slow) for at in (0.1, 0.6, 0.9))])
def test_a_damaged_database_page_is_refused_in_one_line(server: Served, tmp_path: Path, at: float) -> None:
    folder = tmp_path / "c"
    begin(server, folder, max_pages=300)
    with (folder / "crawl.db").open("r+b") as file:
        file.seek(int(at * (folder / "crawl.db").stat().st_size))
        file.write(b"\x55" * 8192)  # the head of a page is damaged; free space within a page may hold anything
    with pytest.raises(ConfigError, match=r"crawl\.db: (is damaged|not the database).*"):
        resume_to_end(folder)
