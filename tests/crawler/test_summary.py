"""Every number in summary.json equals the count of its rows, and the documentation has every key."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.crawler.crawl_folder import BEGAN, simulated, write_crawl
from trapline.crawler.inspect.database_reader import open_database
from trapline.crawler.inspect.summary import span_of, write_summary
from trapline.errors import ConfigError
from trapline.frontier import FETCHED
from trapline.report.together import _seconds_of_crawling

DOCS = Path(__file__).parents[2] / "docs" / "crawl-summary.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_crawl(tmp_path_factory.mktemp("crawls") / "one", *simulated())


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, Any]:
    return write_summary(folder)


def rows(folder: Path, query: str) -> list[Any]:
    return open_database(folder).execute(query).fetchall()


def test_the_written_summary_is_the_counted_one(folder: Path, found: dict[str, Any]) -> None:
    assert found == json.loads((folder / "summary.json").read_text())


def test_the_numbers_are_those_of_the_crawl(folder: Path, found: dict[str, Any]) -> None:
    graph, crawl = simulated()
    log = crawl.log
    assert found["pages_fetched"] == len(np.unique(log.page[log.result == FETCHED]))
    assert found["fetches"] == len(log.page)
    assert found["visits"] <= len(np.unique(log.visit)) and found["politeness_violations"] == 0
    assert found["urls_known"] == graph.pages and found["sites"] == graph.sites
    assert found["seconds"] == pytest.approx(crawl.simulated_seconds, abs=1e-5)
    assert found["pages_per_second"] == pytest.approx(found["pages_fetched"] / found["seconds"])
    assert found["strategy"] == "breadth-first" and found["stopped_by"] == "nothing left"
    assert (found["warc_files"], found["warc_bytes"], found["cdxj_bytes"]) == (2, 1_250_000, 80_000)


def test_errors_are_failures_and_answers_of_400_and_above(folder: Path, found: dict[str, Any]) -> None:
    every = rows(folder, "select status, error from fetch")
    kinds = [error or "http" for status, error in every if (error or status >= 400) and error != "robots"]
    assert found["errors"] == len(kinds) == sum(found["errors_by_kind"].values()) > 0
    assert found["errors_by_kind"] == {kind: kinds.count(kind) for kind in set(kinds)}
    assert found["forbidden_by_robots"] == sum(error == "robots" for _, error in every) > 0
    assert sum(found["statuses"].values()) == sum(found["types"].values()) == sum(status > 0 for status, _ in every)


def test_every_key_is_in_the_documentation(found: dict[str, Any]) -> None:
    text = DOCS.read_text()
    assert [key for key in (*found, *found["politeness_violations_by_rule"]) if f"`{key}`" not in text] == []


def test_the_time_between_two_runs_does_not_count(tmp_path: Path) -> None:
    folder = write_crawl(tmp_path, *simulated(100, 5))
    with sqlite3.connect(folder / "crawl.db") as database:
        before = span_of(database).seconds
        database.execute("update progress set at = at + 1000 where rowid > 60")
        database.execute("update fetch set started = started + 1000 where started > ?", (BEGAN + before / 2,))
    assert span_of(open_database(folder)).seconds == pytest.approx(before, abs=1e-5)


def test_a_run_that_was_killed_before_its_first_request_does_not_count(tmp_path: Path) -> None:
    folder = write_crawl(tmp_path, *simulated(100, 5))
    with sqlite3.connect(folder / "crawl.db") as database:
        before, times = span_of(database).seconds, _seconds_of_crawling(database, np.array([BEGAN, BEGAN + 5.0]))
        columns = "errors, bytes, known, waiting, sites, active, quality"
        database.execute(
            f"insert into progress (rowid, at, seconds, pages, {columns})"
            f" select -1, {BEGAN - 1000}, 0.001, 0, {columns} from progress where rowid = 1"
        )
        assert _seconds_of_crawling(database, np.array([BEGAN, BEGAN + 5.0])) == pytest.approx(times, abs=1e-5)
    assert span_of(open_database(folder)).seconds == pytest.approx(before, abs=1e-5)


def test_an_empty_crawl_has_a_summary(tmp_path: Path) -> None:
    folder = write_crawl(tmp_path, *simulated(20, 2))
    with sqlite3.connect(folder / "crawl.db") as database:
        for table in ("fetch", "robots", "progress", "warc"):
            database.execute(f"delete from {table}")
    found = write_summary(folder)
    assert (found["pages_fetched"], found["seconds"], found["pages_per_second"], found["quality"]) == (0, 0.0, 0.0, 0.0)


def test_a_folder_without_a_crawl_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"crawl\.db"):
        write_summary(tmp_path)
