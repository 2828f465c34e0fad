"""A Python program simulates crawls as the commands do, and gets tables."""

import json
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import trapline
from trapline import ConfigError, Graph, SimulationSettings, load_strategy
from trapline.cli import run
from trapline.cli.options import simulated
from trapline.cli.options.values import Number
from trapline.crawler.engine.settings import CrawlSettings
from trapline.defaults import OF_PAPERS
from trapline.frontier.rules import RuleSettings
from trapline.graph import generate, graph_from_edges, load_graph, save
from trapline.setting_bounds import OF_SIMULATIONS
from trapline.simulator.settings import SWEPT

PAGES, SITES = 300, 12
CHANCE = ("wall_seconds", "processor")  # measured, and therefore different each time


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("graph") / "web"
    save(generate(PAGES, SITES, seed=5), folder)
    return folder


@pytest.fixture(scope="module")
def web(folder: Path) -> Graph:
    return load_graph(folder)


def plain(record: dict[str, object]) -> object:
    return json.loads(json.dumps({name: value for name, value in record.items() if name not in CHANCE}))


# ---- the same as the command


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ([], {}),
        (["--delay", "2", "--bandwidth", "20kB", "--failed", "5%"], {"delay": 2, "bandwidth": 20e3, "failed": 0.05}),
        (["--page-seconds", "1", "--no-robots", "--seed", "3"], {"page_seconds": 1.0, "robots": False, "seed": 3}),
    ],
)
def test_a_simulated_crawl_is_that_of_the_command(
    folder: Path, words: list[str], options: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", str(folder), "--strategy", "opic", *words, "--json"]) == 0
    theirs = json.loads(capsys.readouterr().out)
    ours = trapline.simulate(folder, "opic", **options)
    assert capsys.readouterr() == ("", "")
    assert ours.parameters == theirs.pop("parameters")
    assert plain(asdict(ours.record)) == plain({name: theirs[name] for name in asdict(ours.record)})


def test_a_comparison_is_that_of_the_command(
    folder: Path, web: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trapline.report.plot.chart_png", lambda *given: b"")  # drawing takes seconds
    lists = ["--connections", "1,4", "--delay", "1s"]
    assert run(["compare", str(folder), "opic", "depth", *lists, "-o", str(tmp_path)]) == 0
    theirs = json.loads((tmp_path / "compare.json").read_text())["crawls"]
    ours = trapline.compare(web, ["opic", "depth"], connections=[1, 4], delay=1.0)
    assert [plain(asdict(record)) for record in ours.records] == list(map(plain, theirs))
    assert [crawl.name for crawl in ours] == ["opic, r = 1", "opic, r = 4", "depth, r = 1", "depth, r = 4"]


def test_settings_are_the_options_of_the_commands_with_the_same_defaults() -> None:
    rows = {field: default for section in simulated.SECTIONS for _, field, _, default, _ in section.rows}
    options = {simulated.SETTINGS[field]: default for field, default in rows.items()}
    assert options == {one.name: one.default for one in fields(SimulationSettings)}
    assert tuple(map(simulated.SETTINGS.get, simulated.SWEPT)) == SWEPT
    kinds = {field: kind for section in simulated.SECTIONS for _, field, kind, _, _ in section.rows}
    bounds = {simulated.SETTINGS[field]: kind for field, kind in kinds.items() if isinstance(kind, Number)}
    ours = {name: one for name, one in OF_SIMULATIONS.items() if name in options}
    assert {name: (kind._least, kind._most) for name, kind in bounds.items()} == {
        name: (one.least, one.most) for name, one in ours.items()
    }


def test_defaults_are_those_of_a_live_crawl() -> None:
    live = {one.name: one.default for one in fields(CrawlSettings)}
    simulated_too = {one.name: one.default for one in fields(SimulationSettings) if one.name in live}
    # A simulated fetch that fails takes as long as a live crawl waits for the first byte; --timeout of a live crawl ends slow pages too.
    assert simulated_too.pop("timeout") == CrawlSettings().options(()).limits.first_byte_s
    assert simulated_too == {name: live[name] for name in simulated_too}
    assert {one.name for one in fields(RuleSettings)} < simulated_too.keys()
    assert SimulationSettings().conditions().world.pause == CrawlSettings().options(()).pause_s
    assert SimulationSettings(delay=0.2).conditions().world.pause == CrawlSettings(delay=0.2).options(()).pause_s


def test_papers_used_other_values() -> None:
    usual = {one.name: one.default for one in fields(SimulationSettings)}
    assert all(usual[name] != value for name, value in OF_PAPERS.items())


# ---- results


def test_totals_curves_and_sites_agree_with_each_other(web: Graph) -> None:
    crawl = trapline.simulate(web, "opic", failed=0.1, max_pages=100)
    (totals,) = crawl.to_arrow().to_pylist()
    assert totals["strategy"] == crawl.strategy == "opic" and totals["pages_fetched"] == 100
    sites, curve, fetches = crawl.sites, crawl.curve, crawl.fetches
    for total, column in {"pages_fetched": "pages_fetched", "failed": "failed", "visits": "visits"}.items():
        assert sum(sites[column].to_pylist()) == totals[total]
    assert sum(sites["bytes"].to_pylist()) == totals["bytes"] == sum(fetches["bytes"].to_pylist())
    assert sites.num_rows == SITES and sites["name"].to_pylist()[0] == "http://s000000.example"
    assert sum(sites["pagerank_fetched"].to_pylist()) == pytest.approx(totals["quality_fetched"])
    assert curve["pages"].to_pylist()[-1] == 100
    assert curve["quality"].to_pylist()[-1] == pytest.approx(totals["quality_fetched"])
    assert fetches.num_rows == totals["fetches"]
    unvisited = [row for row in sites.to_pylist() if row["pages_fetched"] == 0]
    assert all(row["first_s"] is None for row in unvisited)
    times = [row["last_s"] for row in sites.to_pylist() if row["last_s"] is not None]
    assert max(times) == pytest.approx(totals["simulated_seconds"])


@pytest.mark.parametrize("strategy", ["opic", "crawl-ability"])
def test_a_crawl_with_max_time_is_the_beginning_of_the_crawl_without(web: Graph, strategy: str) -> None:
    whole = trapline.simulate(web, strategy, failed=0.1).fetches.to_pylist()
    middle = whole[len(whole) // 2]["end_s"]
    for most in (middle, middle - 1e-9, 1e9):
        short = trapline.simulate(web, strategy, failed=0.1, max_time=most)
        assert short.fetches.to_pylist() == [row for row in whole if row["end_s"] <= most]
        assert short.record.drained == (most == 1e9)


def test_results_convert_to_pandas_and_files(web: Graph, tmp_path: Path) -> None:
    comparison = trapline.compare(web, ["opic", load_strategy("depth")], max_pages=50)
    frame = comparison.to_pandas()
    assert list(frame.crawl) == ["opic", "depth"] and set(frame.pages_fetched) == {50}
    assert set(comparison.curves.to_pandas().crawl) == {"opic", "depth"}
    assert comparison.sites.num_rows == 2 * SITES
    comparison.save(tmp_path / "compare.html")
    assert "<html" in (text := (tmp_path / "compare.html").read_text()) and "max_pages" in text
    crawl = trapline.simulate(web, "opic", max_pages=50)
    crawl.save(tmp_path / "one.html")
    crawl.save_log(tmp_path / "log.parquet")
    assert pq.read_table(tmp_path / "log.parquet").equals(crawl.fetches)
    assert isinstance(crawl.to_arrow(), pa.Table)
    with pytest.raises(ConfigError, match=r"trapline\.simulate"):
        _ = comparison["opic"].fetches
    assert repr(comparison) == "<Comparison of 2 crawls: opic, depth>"
    assert repr(crawl) == "<SimulationResult 'opic': 50 of 300 pages>"
    with pytest.raises(KeyError, match="did you mean 'opic'"):
        comparison["opik"]


def test_progress_is_reported_only_if_wanted(web: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[str] = []
    trapline.compare(web, "opic", max_pages=10, progress=lambda done, total, what: seen.append(what))
    assert list(dict.fromkeys(seen)) == ["PageRank", "opic (1 of 1)", "judging"]
    assert capsys.readouterr() == ("", "")


# ---- graphs


def test_edges_in_memory_are_a_graph() -> None:
    numbers = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 1)]
    for edges in (numbers, np.array(numbers), np.array(numbers, np.uint8)):
        graph = graph_from_edges(edges, ids_per_site=2)
        assert (graph.pages, graph.links, graph.home.tolist()) == (4, 4, [0, 2])
        assert trapline.simulate(edges, "opic", max_pages=4).record.pages_fetched == 4
    urls = graph_from_edges((f"http://a.org/{a}", f"http://b.org/{b}") for a, b in numbers)
    assert urls.sites == 2 and urls.urls is not None and urls.urls[0] == "http://a.org/0"
    by_url = trapline.simulate([("http://a.org/", "http://b.org/x")], seeds=["http://b.org/x"])
    assert by_url.fetches["url"].to_pylist() == ["http://b.org/x"]


@pytest.mark.parametrize(
    ("edges", "why"),
    [
        ([], "no edges"),
        ([(0, 1, 2)], "not pairs"),
        ([(0, "http://a.org/")], "mixed"),
        ([(0.5, 1)], "float64"),
        ([(-1, 1)], "not in 0"),
        (np.zeros((3, 3), np.int32), "shape"),
        ([("a", "b")], "no URL is absolute"),
    ],
)
def test_edges_that_are_no_pairs_are_reported(edges: object, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        trapline.simulate(edges, "opic")  # type: ignore[arg-type]


def test_a_sample_has_a_name() -> None:
    assert trapline.simulate("python-docs", "depth", max_pages=5).web == "python-docs"
    with pytest.raises(ConfigError, match="does not exist"):
        trapline.simulate("python-doc", "depth")


# ---- invalid settings


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"conections": 3}, "a crawl has no setting 'conections'; did you mean 'connections'"),
        ({"connections": 0}, "connections: 0 is not between 1 and 2147483647"),
        ({"connections": "many"}, "connections: 'many' is not a whole number"),
        ({"delay": -1}, "delay: -1 is not between 0 and"),
        ({"pause": "k"}, "pause: 'k' is not a number of seconds"),
        ({"failed": 2}, "failed: 2 is not between 0 and 1"),
        ({"protocol": "http/2"}, "no protocol 'http/2'"),
        ({"bandwidth_per": "conection", "bandwidth": 5}, "did you mean 'connection'"),
        ({"timeout": 5}, "--timeout has no effect"),
        ({"batch_ahead": True}, "also give --batch"),
        ({"small_site_delay": 1}, "also give --small-site-pages"),
        ({"quality": "zipff"}, "did you mean 'zipf'"),
        ({"history": "web"}, "history has no effect with opic"),
        ({"seeds": []}, "at least one"),
        ({"seeds": [999]}, "page 999 is not between"),
        ({"servers": "slow"}, "no server model 'slow'"),
    ],
)
def test_invalid_settings_are_reported_in_one_line(web: Graph, options: dict[str, object], why: str) -> None:
    for function in (trapline.simulate, trapline.compare):
        with pytest.raises(ConfigError) as error:
            function(web, "opic", **options)
        assert why in str(error.value) and "\n" not in str(error.value)


def test_a_list_is_for_a_comparison(web: Graph) -> None:
    with pytest.raises(ConfigError, match=r"trapline\.compare"):
        trapline.simulate(web, "opic", delay=[1, 2])


def test_a_failing_strategy_leaves_the_others(web: Graph, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    rank = "@page_rank\ndef rank(s, page, source, links, is_new):\n    return s.page[page].url\n"
    head = "from trapline.frontier.ranking import page_rank\nfrom trapline.strategies import *\n"
    file.write_text(f'{head}{rank}STRATEGY = Strategy("mine", PageRank("mine", rank), site_rank_named("fifo"))\n')
    found = trapline.compare(web, ["opic", file], max_pages=10)
    assert len(found) == 1 and "no field 'url'" in str(found.failures["mine"])
    assert "url_length" in str(found.failures["mine"]) and "add-a-strategy" in str(found.failures["mine"])
    with pytest.raises(ConfigError, match=r"mine\.py.*no field 'url'"):
        trapline.compare(web, file)
    with pytest.raises(ConfigError, match="did you mean 'opic'"):
        trapline.compare(web, ["opik"])
    with pytest.raises(ConfigError, match="two strategies have the name"):
        trapline.compare(web, ["opic", load_strategy("opic")])
