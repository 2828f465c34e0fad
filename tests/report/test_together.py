"""Live crawls side by side: one measure for all, by URL, and agreement with the record of a simulated crawl of the same log."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.crawler.crawl_folder import simulated, write_crawl
from trapline.crawler.inspect.database_reader import open_database
from trapline.graph import Graph, depths, pagerank
from trapline.graph.strings import encoded
from trapline.report import compare_page, record_of, together
from trapline.report.table import columns
from trapline.report.together import records_together

ORDERS = ("breadth-first", "larger-sites-first", "opic")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    base = tmp_path_factory.mktemp("crawls")
    return [write_crawl(base / name, *simulated(400, 20, name)) for name in ORDERS]


def test_a_crawl_folder_is_measured_as_the_simulated_crawl_that_it_holds(tmp_path: Path) -> None:
    """The folder holds a simulated crawl with all its links, except for those of refused pages."""
    graph, crawl = simulated(400, 20, network=None)
    (record,) = records_together([write_crawl(tmp_path, graph, crawl)])
    same = record_of(crawl, graph, pagerank(graph))
    assert record.pages_fetched == same.pages_fetched and record.bytes == same.bytes
    assert record.average_cumulative_pagerank == pytest.approx(same.average_cumulative_pagerank)
    assert record.kendall_tau == pytest.approx(same.kendall_tau, abs=1e-3)
    assert record.simulated_seconds == pytest.approx(same.simulated_seconds, abs=1e-5)
    assert record.drained and record.politeness_violations == 0
    assert (
        record.pages_per_site == same.pages_per_site
        and record.pagerank_by_period.pages == same.pagerank_by_period.pages
    )
    assert record.pagerank_by_period.pagerank == pytest.approx(same.pagerank_by_period.pagerank)


def test_locality_and_depth_are_those_of_the_simulated_crawl_that_a_folder_holds(tmp_path: Path) -> None:
    """Several sites share an address. The crawl in the folder has one seed."""
    graph, crawl = simulated(400, 20, network=None)
    (record,) = records_together([write_crawl(tmp_path, graph, crawl)])
    assert graph.urls is not None
    seed = np.array([list(encoded(graph.urls)).index(b"http://s000000.example/")], np.int32)
    same = record_of(crawl, graph, pagerank(graph), depth=depths(graph, seed))
    assert record.server_locality == same.server_locality
    assert record.server_locality.address != record.server_locality.site
    assert record.pagerank_by_depth.pages == same.pagerank_by_depth.pages


def test_pages_of_two_crawls_are_matched_by_url(folders: list[Path]) -> None:
    records = records_together(folders)
    assert [record.strategy for record in records] == list(ORDERS)
    assert {record.pages for record in records} == {400}
    assert all(0 < record.quality_fetched <= 1 for record in records)
    assert len({record.average_cumulative_pagerank for record in records}) == len(ORDERS)


def test_crawls_are_measured_on_the_known_web(tmp_path: Path) -> None:
    """A stopped crawl knows a part of the web."""
    graph, crawl = simulated(400, 20, most=50)
    folder = write_crawl(tmp_path, graph, crawl)
    (record,), (judged,) = records_together([folder]), records_together([folder], graph)
    same = record_of(crawl, graph, pagerank(graph))
    assert judged.pages == 400 and judged.links == graph.links > record.links
    assert judged.quality_fetched == pytest.approx(same.quality_fetched)
    assert judged.quality_fetched != pytest.approx(record.quality_fetched)


def test_crawls_that_fetched_different_pages_are_compared_on_their_fetched_pages(tmp_path: Path) -> None:
    many, few = (write_crawl(tmp_path / str(most), *simulated(400, 20, most=most)) for most in (200, 50))
    different = records_together([many, few])
    assert {column.name for column in columns(different) if column.best} <= {"% of PageRank", "pages/s"}
    page = compare_page(different, "a")
    assert page.index('<ul class="headlines">') < page.index("<table>")
    assert 'class="headlines"' not in compare_page([different[0], replace(different[0], strategy="b")], "a")


def test_active_connections_are_those_that_the_crawl_counted(folders: list[Path]) -> None:
    """Including those that wait for a connection or for robots.txt."""
    with closing(open_database(folders[0])) as database:
        (most,) = database.execute("select max(active) from progress").fetchone()
    record = records_together(folders)[0]
    assert 0 < record.active_connections <= max(record.load.active_connections) <= most


def test_crawls_with_the_same_strategy_are_labelled_by_their_folders(folders: list[Path], tmp_path: Path) -> None:
    again = write_crawl(tmp_path / "again", *simulated(400, 20, "opic", seed=2))
    names = [record.name for record in records_together([folders[2], again])]
    assert names == ["opic (opic)", "opic (again)"]


def test_time_is_not_called_simulated(folders: list[Path]) -> None:
    records = records_together(folders)
    page = compare_page(records, "a")
    assert "simulat" not in page.split("<body>")[1].lower()
    assert "wall s" not in {column.name for column in columns(records)}
    assert "simulated" in compare_page([replace(record, clock="simulated") for record in records], "a")


def fetch_one_more(folder: Path) -> None:
    """The crawl continues: it discovers a page and fetches it."""
    with closing(sqlite3.connect(folder / "crawl.db")) as database, database:
        (page,) = database.execute("select max(id) + 1 from page").fetchone()
        database.execute("insert into page values (?, 0, ?)", (page, f"http://late.test/{page}"))
        columns = [name for _, name, *_ in database.execute("pragma table_info(fetch)")]
        values = ", ".join({"seq": "seq + 1", "page": str(page)}.get(name, name) for name in columns)
        database.execute(f"insert into fetch select {values} from fetch order by seq desc limit 1")


def test_a_crawl_is_read_as_of_one_moment(tmp_path: Path) -> None:
    folder = write_crawl(tmp_path, *simulated())
    with closing(open_database(folder)) as database:
        before = database.execute("select count(*) from page").fetchone()
        fetch_one_more(folder)
        assert database.execute("select count(*) from page").fetchone() == before
    with closing(open_database(folder)) as database:
        assert database.execute("select count(*) from page").fetchone() == (before[0] + 1,)


def test_a_crawl_that_continues_meanwhile_is_measured_on_its_known_web(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_crawl(tmp_path, *simulated())
    [still] = records_together([folder])
    load = together.load_graph

    def continue_after(*arguments: Any) -> Graph:
        graph = load(*arguments)
        fetch_one_more(folder)
        return graph

    monkeypatch.setattr(together, "load_graph", continue_after)
    [going_on] = records_together([folder])
    assert going_on.pages_fetched == still.pages_fetched
