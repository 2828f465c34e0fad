"""`trapline explain` tells what happened to a page and what the page waits for. For an unknown page it suggests the
nearest name."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.crawler.crawl_folder import BEGAN, simulated, write_crawl
from trapline.cli import run
from trapline.frontier import FETCHED
from trapline.frontier.layout import WAITING
from trapline.graph import Graph
from trapline.report import explanation
from trapline.simulator import SimulatedCrawl

Captured = pytest.CaptureFixture[str]
World = tuple[Path, Graph, SimulatedCrawl]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    graph, crawl = simulated(400, 20, most=150)
    return write_crawl(tmp_path_factory.mktemp("crawls") / "one", graph, crawl), graph, crawl


@pytest.fixture(autouse=True)
def frontier_of_the_simulated_crawl(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use the simulated crawl's frontier in place of one replayed from a log, because the folder has no log."""
    frontier = world[2].frontier
    now = float(frontier.state.run[0].now)
    monkeypatch.setattr(explanation, "rebuilt", lambda reading: (frontier, now))
    yield


def explain(world: World, capsys: Captured, what: str) -> str:
    assert run(["explain", str(world[0]), what]) == 0
    return capsys.readouterr().out


def url(world: World, page: int) -> str:
    assert world[1].urls is not None
    return world[1].urls[page]


def test_a_fetched_page_shows_its_place_in_the_crawl(world: World, capsys: Captured) -> None:
    log = world[2].log
    by_start = np.argsort(log.start, kind="stable")
    row = int(by_start[np.flatnonzero(log.result[by_start] == FETCHED)[-1]])
    page, of = int(log.page[row]), int(np.count_nonzero(log.visit == log.visit[row]))
    text = explain(world, capsys, url(world, page))
    assert text.startswith(url(world, page) + "\n") and "status 200" in text and f" of {of} in its visit\n" in text
    assert "discovered: " in text and "last commit" not in text
    before = int(np.count_nonzero((world[1].site[log.page] == world[1].site[page]) & (log.result == FETCHED))) - 1
    assert f"pages fetched earlier from this site: {before:,}\n" in text


def test_the_first_page_that_linked_to_the_page_is_named(world: World, capsys: Captured) -> None:
    _, graph, crawl = world
    log = crawl.log
    came = {
        int(page): float(end)
        for page, end, result in zip(log.page, log.end, log.result, strict=True)
        if result == FETCHED
    }
    page = next(page for page in came if page not in graph.home)
    linking = {source: end for source, end in came.items() if page in graph.targets_of(source) and source != page}
    first = min(linking, key=linking.__getitem__)
    text = explain(world, capsys, url(world, page))
    assert f"by a link on {url(world, first)}, " in text
    if len(linking) > 1:
        assert f"; {len(linking) - 1} other fetched page" in text


@pytest.fixture
def robots_first(world: World, tmp_path: Path) -> tuple[Path, int]:
    """A crawl whose first two visits to a site brought robots.txt alone, as from a server that allows one request per connection.
    Return the folder, and the number of visits that brought pages."""
    folder, site = write_crawl(tmp_path / "c", *world[1:]), 1
    with closing(sqlite3.connect(folder / "crawl.db")) as database, database:
        names = "address, total_s, status, error, bytes, body"
        for visit, started in ((1 << 50, BEGAN - 7.0), (1 << 51, BEGAN - 5.0)):
            sql = f"insert into robots (site, visit, started, {names}) select site, ?, ?, {names} from robots where site = ? limit 1"
            database.execute(sql, (visit, started, site))
        database.execute("update robots set total_s = 1.0 where visit >= 1 << 50")
        pages = "select count(distinct visit) from fetch join page on page.id = page where site = ? and address != ''"
        ((visits,),) = database.execute(pages, (site,)).fetchall()
    return folder, visits


def test_visits_for_robots_txt_alone_are_visits(robots_first: tuple[Path, int], capsys: Captured) -> None:
    folder, visits = robots_first
    assert run(["explain", str(folder), "http://s000001.example"]) == 0
    said = f"  visits: {visits + 2}, 2 of them for robots.txt alone; the first began when the crawl began; the last"
    assert said in capsys.readouterr().out


def test_a_site_of_which_only_robots_txt_came_is_visited(robots_first: tuple[Path, int], capsys: Captured) -> None:
    folder, _ = robots_first
    with closing(sqlite3.connect(folder / "crawl.db")) as database, database:
        database.execute("delete from fetch")
        database.execute("delete from robots where visit != 1 << 50")
    assert run(["explain", str(folder), "http://s000001.example"]) == 0
    said = "  visits: 1, for robots.txt alone; the first began when the crawl began; the last ended 1.0 s after"
    assert said in capsys.readouterr().out


def test_the_visit_before_a_page_may_have_been_for_robots_txt_alone(
    robots_first: tuple[Path, int], world: World, capsys: Captured
) -> None:
    site, log = world[1].site, world[2].log
    rows = np.flatnonzero(site[log.page] == 1)
    first = int(log.page[rows[np.argmin(log.start[rows])]])
    assert run(["explain", str(robots_first[0]), url(world, first)]) == 0
    assert "  previous visit to its site: ended 3.0 s after the crawl began\n" in capsys.readouterr().out


def test_time_between_two_runs_is_shown_separately(world: World, tmp_path: Path, capsys: Captured) -> None:
    _, graph, crawl = world
    folder, by_start = write_crawl(tmp_path / "c", graph, crawl), np.argsort(crawl.log.start, kind="stable")
    row = int(by_start[-1])
    page, began = url(world, int(crawl.log.page[row])), BEGAN + float(crawl.log.start[row]) - 0.1
    assert run(["explain", str(folder), page]) == 0 and "the crawl was stopped" not in capsys.readouterr().out
    with closing(sqlite3.connect(folder / "crawl.db")) as database:
        database.execute("update fetch set started = started + 10000 where started > ?", (began,))
        database.execute("update progress set at = at + 10000 where at > ?", (began,))
        database.commit()
    assert run(["explain", str(folder), page]) == 0
    assert "the delay of 1 s had passed; the crawl was stopped for 2.8 h of this time\n" in capsys.readouterr().out


def waiting_page(world: World) -> int:
    tried = set(world[2].log.page.tolist())
    state = world[2].frontier.state.state
    return next(page for page in np.flatnonzero(state == WAITING).tolist() if page not in tried)


def test_a_waiting_page_shows_what_comes_before_it(world: World, capsys: Captured) -> None:
    page = waiting_page(world)
    expected = world[2].frontier.explain_page(page, 0.0)
    text = explain(world, capsys, url(world, page))
    assert "waiting (depth" in text and f"{expected.pages_before} page" in text
    # The rule may name another site, by its number. The text names it by its origin.
    assert expected.site.rule.partition(" site ")[0] in text and f"{expected.site.waiting} page" in text


def test_a_url_is_normalised_as_in_a_browser(world: World, capsys: Captured) -> None:
    page = int(world[2].log.page[0])
    odd = url(world, page).replace("http://s", "HTTP://S").replace(".example/", ".EXAMPLE:80/") + "#part"
    assert explain(world, capsys, odd).startswith(url(world, page) + "\n")


@pytest.mark.parametrize("form", ["http://{}", "{}", "{}:80"])
def test_a_site_is_a_name_without_a_path(world: World, capsys: Captured, form: str) -> None:
    text = explain(world, capsys, form.format("s000001.example"))
    assert text.startswith("http://s000001.example\n")
    assert "known" in text and "visits: " in text and "  at the last commit: " in text


@pytest.mark.parametrize(
    ("what", "says"),
    [
        (
            "http://s000001.exampl/p/1",
            "the crawl knows neither this page nor its site; did you mean 'http://s000001.example'?",
        ),
        ("http://s000001.example/p/x1", "the crawl does not know this page; did you mean 'http://s000001.example/"),
        ("s00000l.example", "the crawl does not know this site; did you mean 'http://s0000"),
        ("qqq", "the crawl does not know this site; a site that it knows: http://s000000.example"),
        ("mailto:a@b/c", "neither an http or https URL nor a site"),
    ],
)
def test_an_unknown_page_is_reported_in_one_line_with_a_hint(
    world: World, capsys: Captured, what: str, says: str
) -> None:
    assert run(["explain", str(world[0]), what]) == 2
    error: Any = capsys.readouterr().err
    assert says in error and error.count("\n") == 1
