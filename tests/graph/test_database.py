"""A crawl folder as a graph: the fetched pages and their links, during the crawl and afterwards."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from tests.crawler.crawl_folder import simulated, write_crawl
from trapline.cli import run
from trapline.errors import ConfigError
from trapline.frontier import FETCHED
from trapline.graph import Graph, LoadOptions, load_graph
from trapline.graph.graph import fault
from trapline.graph.strings import decoded


def links(graph: Graph) -> set[tuple[str, str]]:
    assert graph.urls is not None
    urls = list(decoded(graph.urls))
    return {(urls[page], urls[target]) for page in range(graph.pages) for target in graph.targets_of(page).tolist()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_crawl(tmp_path / "crawl", *simulated(300, 12, most=150))


def test_the_graph_has_the_fetched_pages_and_the_links_between_them(folder: Path) -> None:
    whole, crawl = simulated(300, 12, most=150)
    graph = load_graph(folder)
    assert fault(graph) is None and graph.origin["format"] == "crawl"
    assert whole.urls is not None and graph.urls is not None
    came = np.unique(crawl.log.page[crawl.log.result == FETCHED]).tolist()
    assert list(decoded(graph.urls)) == [whole.urls[page] for page in came]
    inside = {whole.urls[page] for page in came}
    assert links(graph) == {link for link in links(whole) if inside.issuperset(link)}
    assert graph.sizes is not None and (graph.sizes > 0).all()


def test_the_graph_has_all_known_pages_on_request(folder: Path) -> None:
    whole, crawl = simulated(300, 12, most=150)
    graph = load_graph(folder, LoadOptions(dangling=True))
    assert graph.pages == whole.pages
    came = set(crawl.log.page[crawl.log.result == FETCHED].tolist())
    for page in range(whole.pages):
        assert graph.targets_of(page).tolist() == (whole.targets_of(page).tolist() if page in came else [])


def test_sites_on_one_address_share_their_group(tmp_path: Path) -> None:
    whole, crawl = simulated(300, 12)
    graph = load_graph(write_crawl(tmp_path, whole, crawl), LoadOptions(dangling=True))
    assert len(np.unique(whole.ips)) < whole.sites
    assert [(graph.ips == group).sum() for group in graph.ips] == [(whole.ips == group).sum() for group in whole.ips]


def fetched_again(database: sqlite3.Connection, page: int, otherwise: dict[str, object]) -> None:
    names = [row[1] for row in database.execute("pragma table_info(fetch)")][1:]
    values = ", ".join("?" if name in otherwise else name for name in names)
    given = [otherwise[name] for name in names if name in otherwise]
    rows = f"select null, {values} from fetch where page = ? and result = 3 limit 1"
    database.execute(f"insert into fetch {rows}", (*given, page))


def test_an_unchanged_page_keeps_its_links(folder: Path) -> None:
    before = load_graph(folder, LoadOptions(dangling=True))
    with sqlite3.connect(folder / "crawl.db") as database:
        (page,) = database.execute("select page from fetch where found > 3 and result = 3").fetchone()
        fetched_again(database, page, {"links": b"", "status": 304, "bytes": 0})
    after = load_graph(folder, LoadOptions(dangling=True))
    assert after.targets.tolist() == before.targets.tolist() and after.sizes.tolist() == before.sizes.tolist()


def test_the_last_fetch_of_a_refetched_page_counts(folder: Path) -> None:
    with sqlite3.connect(folder / "crawl.db") as database:
        page, many = database.execute("select page, links from fetch where found > 3 and result = 3").fetchone()
        fetched_again(database, page, {"links": many[:4]})
    assert len(load_graph(folder, LoadOptions(dangling=True)).targets_of(page)) == 1


def test_the_folder_is_read_while_it_is_written(folder: Path) -> None:
    with sqlite3.connect(folder / "crawl.db") as database:
        database.execute("begin immediate")
        database.execute("delete from fetch where seq > 10")
        assert load_graph(folder).pages > 10
        database.rollback()


def test_commands_take_a_crawl_as_a_graph(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["graph", "info", str(folder)]) == 0
    assert capsys.readouterr().out.split()[:2] == ["format", "crawl"]
    assert run(["simulate", str(folder), "--strategy", "historical-pagerank-zero", "--history", str(folder)]) == 0


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ("delete from fetch", "has no fetched pages"),
        ("drop table page", "not the database of a crawl: no such table: page"),
        ("delete from page where id = 3", "299 pages must be numbered 0 to 298, but the last number is 299"),
        ("update fetch set links = x'00000070'", "page 1879048192 is linked or fetched, but is not in 0..299"),
    ],
)
def test_a_damaged_folder_is_reported_in_one_line(folder: Path, damage: str, says: str) -> None:
    with sqlite3.connect(folder / "crawl.db") as database:
        database.execute(damage)
    with pytest.raises(ConfigError, match=says):
        load_graph(folder)
