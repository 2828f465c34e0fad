"""`trapline simulate`: its report, and one line with exit code 2 for invalid input."""

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.cli.paper_options import PAPERS
from trapline.cli import run
from trapline.crawler.engine.settings import CrawlSettings
from trapline.graph import generate, load_graph, pagerank, save
from trapline.strategies import pair
from trapline.strategies.base.inputs import FROM_LINKS

Captured = pytest.CaptureFixture[str]

PAGES, SITES = 300, 12
REQUIRED = {
    "pages", "links", "sites", "strategy", "pages_fetched", "average_cumulative_pagerank", "kendall_tau",
    "simulated_seconds", "wall_seconds", "politeness_violations", "curve",
}  # fmt: skip

OWN = """
from trapline.frontier.ranking import page_rank, site_rank
from trapline.strategies import PageRank, Strategy, top_page

{rank}

STRATEGY = Strategy("mine", PageRank("mine", rank, {record}), top_page.SITE)
"""
RAISES = "if page >= 0:\n        raise ValueError('no')\n    return 1.0"


ORDER_ONLY = ("--page-seconds", "1")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("graph") / "web"
    save(generate(PAGES, SITES, seed=5, sites_per_ip=2), folder)
    return str(folder)


def own_strategy(folder: Path, body: str, record: str = "") -> str:
    file = folder / "mine.py"
    rank = f"@page_rank\ndef rank(s, page, source, links, is_new):\n    {body}"
    file.write_text(OWN.format(rank=rank, record=record))
    return str(file)


def result(capsys: Captured, *args: str) -> dict[str, Any]:
    assert run(["simulate", *PAPERS, *args, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def error_line(capsys: Captured, *args: str) -> str:
    """Run a simulation that must fail with exit code 2, and return its only line of output."""
    assert run(["simulate", *args]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("trapline: error: ") and said.err.count("\n") == 1
    return said.err


# ---- the report


def test_the_json_holds_the_whole_result(web: str, capsys: Captured) -> None:
    options = ["--strategy", "opic", "--connections", "1", "--delay", "15", "--page-seconds", "1"]
    assert run(["simulate", web, *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) >= REQUIRED
    graph = load_graph(web)
    assert (found["pages"], found["links"], found["sites"]) == (PAGES, graph.links, SITES)
    assert (found["strategy"], found["page_rank"], found["site_rank"]) == ("opic", "opic", "top-page")
    assert (found["pages_fetched"], found["drained"], found["politeness_violations"]) == (PAGES, True, 0)
    assert found["curve"][0] == [0, 0] and found["curve"][-1] == [1, 1]
    assert 0.5 < found["average_cumulative_pagerank"] <= found["optimal_average_cumulative_pagerank"] < 1
    assert found["parameters"]["delay_s"] == 15


def test_the_default_output_is_a_table(web: str, capsys: Captured) -> None:
    assert run(["simulate", web, "--strategy", "larger-sites-first"]) == 0
    said = capsys.readouterr().out
    assert "\npage rank x site rank            fifo x larger-sites-first\n" in said
    assert "300 (nothing left to fetch)" in said
    assert "politeness violations            0 (waits after failed visits are not checked)\n" in said
    assert "r = 100 connections, w = 15 s, k = 10\n" in said and "B unlimited, measured servers" in said
    assert all(len(line) < 80 for line in said.splitlines())


def test_a_crawl_without_options_is_that_of_the_live_crawl(web: str, capsys: Captured) -> None:
    assert run(["simulate", web, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["strategy"], found["page_rank"], found["quality"]) == (
        "crawl-ability",
        "opic-by-directory",
        "PageRank",
    )
    live = CrawlSettings().options(())
    shared = {name: value for name, value in asdict(live.rules).items() if name != "lease_s"}
    shared |= {"connections": live.connections, "quality": live.quality, "pause": live.pause_s, "robots": True}
    assert {name: found["parameters"][name] for name in shared} == shared
    assert run(["simulate", web, *PAPERS, "--json"]) == 0
    papers = json.loads(capsys.readouterr().out)
    assert papers["parameters"] | {"robots": False, "pause": 0.0} == papers["parameters"]
    assert papers["simulated_seconds"] > 2 * found["simulated_seconds"]


def test_the_real_graph_agrees_with_the_reference(recorded_data: Path, capsys: Captured) -> None:
    for strategy, reference in (("breadth-first", 0.635), ("larger-sites-first", 0.623), ("opic", 0.650)):
        found = result(capsys, str(recorded_data / "ku-crawl-2021b"), "--strategy", strategy, *ORDER_ONLY)
        assert found["average_cumulative_pagerank"] == pytest.approx(reference, abs=0.01)


def test_speed_up_is_the_rate_divided_by_the_rate_of_one_connection_on_an_unlimited_link(
    web: str, capsys: Captured
) -> None:
    given = ("--strategy", "larger-sites-first", "--delay", "1")
    many = ("--connections", "8", "--bandwidth", "50kB", "--speed-up")
    slow, fast = result(capsys, web, *given), result(capsys, web, *given, *many)
    expected = (fast["pages_fetched"] / fast["simulated_seconds"]) / (slow["pages_fetched"] / slow["simulated_seconds"])
    assert fast["speed_up"] == pytest.approx(expected) and fast["speed_up"] > 1
    assert slow["speed_up"] is None
    assert result(capsys, web, *given, "--speed-up")["speed_up"] == 1
    assert run(["simulate", web, *PAPERS, *given, *many]) == 0
    assert f"\nspeed-up                         {expected:.1f} times one connection" in capsys.readouterr().out


def test_a_crawl_stops_at_max_pages(web: str, capsys: Captured) -> None:
    found = result(capsys, web, "--strategy", "opic", "--max-pages", "50")
    assert (found["pages_fetched"], found["drained"]) == (50, False)
    assert run(["simulate", web, *PAPERS, "--strategy", "opic", "--max-pages", "50"]) == 0
    said = capsys.readouterr().out
    assert (
        f"\nPageRank fetched                 {found['quality_fetched']:.2%} of the PageRank of the whole web\n" in said
    )
    assert "\n50% of the fetched PageRank      after " in said


def test_options_reach_the_rules(web: str, capsys: Captured) -> None:
    slow = result(capsys, web, "--strategy", "breadth-first", "--delay", "30", *ORDER_ONLY)
    fast = result(capsys, web, "--strategy", "breadth-first", "--delay", "0", "--connections", "1000000", *ORDER_ONLY)
    assert fast["simulated_seconds"] < slow["simulated_seconds"] / 10
    few = result(capsys, web, "--strategy", "breadth-first", "--max-pages-per-site", "2")
    assert few["pages_fetched"] <= 2 * SITES
    options = ["--batch", "20", "--batch-ahead", "--per-connection", "0", "--ip-delay", "3", "--max-depth", "4"]
    batches = result(capsys, web, "--strategy", "crawl-ability", *options)
    assert batches["politeness_violations"] == 0 < batches["pages_fetched"]
    assert batches["parameters"]["batch"] == 20


def test_options_reach_the_network_and_the_servers(web: str, capsys: Captured) -> None:
    def seconds(*options: str) -> float:
        found = result(capsys, web, "--strategy", "breadth-first", "--delay", "0", *options)
        assert found["politeness_violations"] == 0
        return found["simulated_seconds"]

    free, narrow = seconds(), seconds("--bandwidth", "2kB")
    assert narrow > 5 * free
    assert seconds("--bandwidth", "2kB", "--bandwidth-per", "connection", "--connections", "12") < narrow
    assert seconds("--servers", "constant") == PAGES == seconds("--page-seconds", "1s")
    together = ("--per-connection", "10", "--page-seconds", "1")
    assert seconds("--pause", "2", *together) > seconds(*together) == PAGES
    assert seconds("--per-connection", "10") < seconds("--per-connection", "10", "--protocol", "http/1.0")
    assert seconds("--failed", "20%", "--timeout", "1h", "--backoff", "0", *ORDER_ONLY) > 10 * 3600


def test_a_server_that_closes_early_costs_connections(web: str, capsys: Captured) -> None:
    def visits(*options: str) -> int:
        together = ("--per-connection", "10", "--delay", "0", "--ip-delay", "0")
        return result(capsys, web, "--strategy", "breadth-first", *together, *options, *ORDER_ONLY)["visits"]

    assert visits("--requests", "0") < visits("--requests", "2") < visits("--requests", "1") == PAGES
    assert visits("--pause", "20", "--keep-alive", "30") < visits("--pause", "20", "--keep-alive", "10") == PAGES


def test_w_inside_a_connection_is_a_pause_as_long_as_the_delay(web: str, capsys: Captured) -> None:
    options = (web, "--strategy", "breadth-first", "--per-connection", "5", "--delay", "7", *ORDER_ONLY)
    by_name, by_number = (result(capsys, *options, "--pause", pause) for pause in ("w", "7"))
    assert by_name["curve"] == by_number["curve"]
    assert by_name["simulated_seconds"] == by_number["simulated_seconds"]


def test_refused_pages_are_gone_and_failed_pages_are_retried(web: str, capsys: Captured) -> None:
    refused = result(capsys, web, "--strategy", "opic", "--refused", "0.2")
    assert refused["pages_fetched"] < PAGES and refused["refused"] > 0
    failed = result(capsys, web, "--strategy", "opic", "--failed", "0.2", "--retries", "10", "--backoff", "1s")
    assert failed["pages_fetched"] == PAGES and failed["failed"] > 0
    measured = result(capsys, web, "--strategy", "opic", "--refused", "model", "--connections", "4")
    assert 0 < measured["refused"] < PAGES / 5


def test_another_seed_gives_other_servers(web: str, capsys: Captured) -> None:
    first, again, other = (
        result(capsys, web, "--strategy", "opic", "--seed", seed)["simulated_seconds"] for seed in ("1", "1", "2")
    )
    assert first == again != other


# ---- seeds and quality


def test_seeds_are_urls_or_page_numbers(web: str, tmp_path: Path, capsys: Captured) -> None:
    graph = load_graph(web)
    assert graph.urls is not None
    home = int(graph.home[3])
    for name in (str(home), graph.urls[home]):
        seeds = tmp_path / "seeds.txt"
        seeds.write_text(f"# where to begin\n\n{name}\n{name}\n")
        found = result(capsys, web, "--strategy", "breadth-first", "--seeds", str(seeds), "--max-pages", "1")
        assert found["pages_fetched"] == 1
        rank = pagerank(graph)
        assert found["quality_fetched"] == pytest.approx(rank[home])


def test_a_crawl_that_ends_almost_at_once_prints_the_reason(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "edges.txt").write_text("".join(f"{page}\t{page - 1}\n" for page in range(1, 300)))
    assert run(["simulate", str(tmp_path), "--strategy", "depth"]) == 0
    said = capsys.readouterr()
    assert "1 (nothing left to fetch)" in said.out and "299 links, 1 site\n" in said.out
    assert " s (0" not in said.out  # the same seconds are not printed a second time
    assert (
        "depth ended after 1 of 300 pages: no other page can be reached from its seeds" in said.err
        and "--seeds" in said.err
    )
    (tmp_path / "seeds.txt").write_text("299\n")
    assert (
        run(["simulate", str(tmp_path / "edges.txt"), "--strategy", "depth", "--seeds", str(tmp_path / "seeds.txt")])
        == 0
    )
    assert "ended after" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "contains no seeds"),
        ("0\nhttp://nowhere/\n", "row 2: 'http://nowhere/': not a page of the graph"),
        ("300", "row 1: page 300 is not between 0 and 299"),
        ("9" * 30, "row 1: page 999"),
        ("-1", "row 1: '-1': not a page"),
    ],
)
def test_an_unknown_seed_is_named_with_its_row(
    web: str, tmp_path: Path, capsys: Captured, text: str, named: str
) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_text(text)
    said = error_line(capsys, web, "--strategy", "opic", "--seeds", str(seeds))
    assert f"{seeds}" in said and named in said


def test_quality_orders_the_crawl_and_measures_it(web: str, tmp_path: Path, capsys: Captured) -> None:
    graph = load_graph(web)
    assert graph.urls is not None
    file = tmp_path / "votes.txt"
    file.write_text("".join(f"{graph.urls[page]}\t{page}\n" for page in range(PAGES)))
    by_votes = result(capsys, web, "--strategy", "quality", "--quality", str(file))
    assert by_votes["quality"] == str(file)
    plain = result(capsys, web, "--strategy", "breadth-first", "--quality", str(file))
    assert by_votes["average_cumulative_quality"] > plain["average_cumulative_quality"]
    for source in FROM_LINKS:
        from_links = result(capsys, web, "--strategy", "quality", "--quality", source)
        assert from_links["curve"] == result(capsys, web, "--strategy", source)["curve"]


def test_an_old_crawl_orders_a_new_one(web: str, capsys: Captured) -> None:
    found = result(capsys, web, "--strategy", "historical-pagerank-zero", "--history", web)
    assert found["curve"] == result(capsys, web, "--strategy", "omniscient")["curve"]


# ---- strategies by name


def test_a_named_page_rank_or_site_rank_replaces_that_of_the_strategy(
    web: str, tmp_path: Path, capsys: Captured
) -> None:
    both = result(capsys, web, "--page-rank", "opic", "--site-rank", "crawl-ability")
    assert both["strategy"] == pair("opic", "crawl-ability").name
    for name in ("opic+crawl-ability", both["strategy"]):
        assert result(capsys, web, "--strategy", name)["curve"] == both["curve"]
    one = result(capsys, web, "--strategy", "opic", "--site-rank", "fifo")
    assert (one["page_rank"], one["site_rank"]) == ("opic", "fifo")
    mine = own_strategy(tmp_path, "return -float(page)")
    own = result(capsys, web, "--strategy", mine, "--site-rank", "larger-sites-first")
    assert (own["page_rank"], own["site_rank"]) == ("mine", "larger-sites-first")
    assert result(capsys, web, "--strategy", f"{mine}+larger-sites-first")["curve"] == own["curve"]


def test_a_users_own_strategy_orders_the_crawl(web: str, tmp_path: Path, capsys: Captured) -> None:
    mine = own_strategy(tmp_path, "return s.columns[page, 0]", 'columns=("quality",), inputs=("quality",)')
    own = result(capsys, web, "--strategy", mine)
    assert own["strategy"] == "mine"
    assert own["curve"] == result(capsys, web, "--strategy", "quality")["curve"]


def test_the_plot_is_written_and_announced_apart_from_the_result(web: str, tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "order.png"
    assert run(["simulate", web, "--strategy", "opic", "--json", "--plot", str(file)]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["strategy"] == "opic"
    assert said.err == f"wrote {file}\n"
    assert file.read_bytes().startswith(b"\x89PNG")


def test_the_log_has_a_row_for_every_fetch(web: str, tmp_path: Path, capsys: Captured) -> None:
    import pyarrow.parquet

    file = tmp_path / "log.parquet"
    found = result(capsys, web, "--strategy", "opic", "--failed", "0.1", "--log", str(file))
    log = pyarrow.parquet.read_table(file)
    assert log.num_rows == found["fetches"] > PAGES
    assert sum(log["bytes"].to_pylist()) == found["bytes"] > 0
    assert json.loads(log.schema.metadata[b"parameters"])["failed"] == 0.1


def test_without_a_plot_no_plot_library_is_loaded(web: str) -> None:
    program = (
        "import sys; from trapline.cli import run\n"
        f"code = run(['simulate', {web!r}, '--strategy', 'opic'])\n"
        "sys.exit('matplotlib is loaded' if 'matplotlib' in sys.modules else code)\n"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr


# ---- invalid input


def test_a_malformed_graph_is_named_with_its_row(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "urlmap.txt").write_text("http://a/\nhttp://b/\n")
    (tmp_path / "webgraph.txt").write_text("2\n3\n")
    assert "webgraph.txt, row 2: page 3" in error_line(capsys, str(tmp_path), "--strategy", "opic")


def test_a_missing_graph_is_named(tmp_path: Path, capsys: Captured) -> None:
    assert "nowhere" in error_line(capsys, str(tmp_path / "nowhere"), "--strategy", "opic")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--strategy", "opicc"], "did you mean 'opic'?"),
        (["--strategy", ""], "no strategy ''"),
        (["--strategy", "opic+"], "no site rank ''"),
        (["--strategy", "opic+top-pag"], "no site rank 'top-pag'; did you mean 'top-page'?"),
        (["--page-rank", "qualty", "--site-rank", "fifo"], "no page rank 'qualty'; did you mean 'quality'?"),
        (["--strategy", "opic", "--site-rank", "top-pag"], "no site rank 'top-pag'; did you mean 'top-page'?"),
        (["--strategy", "absent.py"], "absent.py: no such strategy file; give the path"),
        (["--strategy", "historical-pagerank-zero"], "give --history"),
        (["--strategy", "opic", "--plot", "order.pdf"], "ends in .png"),
        (["--strategy", "opic", "--log", "log.csv"], "ends in .parquet"),
    ],
)
def test_a_wrong_name_is_reported_in_one_line_before_the_graph_is_read(
    web: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch, options: list[str], named: str
) -> None:
    monkeypatch.delattr("trapline.cli.simulate.command.opened_arena")  # reading the graph would fail
    assert named in error_line(capsys, web, *options)


@pytest.mark.parametrize(
    ("body", "record", "named"),
    [
        ("return 1e400 - 1e400", "", "mine.py: strategy 'mine': rank 'mine' of page 0 is not a finite number"),
        ("return unheard_of(page)", "", "mine.py: rank function 'rank' does not compile: NameError: name 'unheard_of' is not defined"),
        ("return s.page[page].weight", "", "does not compile: there is no field 'weight'; s.page[page] has depth"),
        ("return -1.0 * s.page[page].depht", "", "there is no field 'depht'; did you mean 'depth'?"),
        ("return s.pagee[page].depth", "", "there is no field 'pagee'; did you mean 'page'?"),
        ("s.columns[page, 0] = 1.0", "", "a rank must return a number on every path"),
        ("return [float(page)][0]", "", "mine.py, row 7: rank function 'rank' does not compile: a rank may not make lists"),
        ("return 'high'", "", "mine.py, row 7: rank function 'rank' does not compile: a rank must return a number"),
        (RAISES, "", "mine.py: strategy 'mine': rank 'mine' raised ValueError: no; to see the row, run the command again with NUMBA"),
        ("return s.columns[page, 0]", 'columns=("votes",), inputs=("votes",)', "needs the input 'votes'; the inputs are: "),
        ("return s.columns[page, 0]", 'columns=("url_length",)', "`inputs` does not list its column 'url_length'; add 'url_length'"),
    ],
)  # fmt: skip
def test_a_strategy_file_that_cannot_run_is_named_with_the_reason(
    web: str, tmp_path: Path, capsys: Captured, body: str, record: str, named: str
) -> None:
    assert named in error_line(capsys, web, "--strategy", own_strategy(tmp_path, body, record))


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("rank = 1", "mine.py: declares no strategy; add STRATEGY"),
        ("def rank(:\n", "mine.py: cannot be loaded: SyntaxError"),
        ("import not_installed_anywhere", "mine.py, row 1: cannot be loaded: ModuleNotFoundError"),
        (OWN.format(rank="def rank(s, page, source, links, is_new):\n    return 1.0", record=""), "not decorated"),
        (
            OWN.format(rank="@page_rank\ndef rank(s, page):\n    return 1.0", record=""),
            "has 2 parameters; a page rank is: def rank(s, page, source, links, is_new)",
        ),
    ],
)
def test_a_file_without_a_strategy_is_named_with_the_reason(
    web: str, tmp_path: Path, capsys: Captured, source: str, named: str
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(source)
    assert named in error_line(capsys, web, "--strategy", str(file))


@pytest.mark.parametrize(("option", "end"), [("--plot", ".png"), ("--log", ".parquet")])
def test_an_output_that_cannot_be_written_is_named_before_the_crawl(
    web: str, tmp_path: Path, capsys: Captured, option: str, end: str
) -> None:
    # The strategy is unknown too. The message about the output shows which check comes first.
    file = tmp_path / "no" / f"out{end}"
    assert f"cannot write {file}" in error_line(capsys, web, "--strategy", "unknown", option, str(file))


def test_a_failing_crawl_keeps_existing_files(web: str, tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "out.png"
    file.write_text("before")
    mine = own_strategy(tmp_path, RAISES)
    error_line(capsys, web, "--strategy", mine, "--plot", str(file))
    assert file.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.py", "out.png"]


def test_a_closed_pipe_does_not_prevent_the_files(web: str, tmp_path: Path) -> None:
    """The table goes into a pipe that nobody reads."""
    command = [sys.executable, "-c", "from trapline.cli import main; main()", "simulate", web, "--strategy", "opic"]
    log = tmp_path / "crawl.parquet"
    with subprocess.Popen([*command, "--log", str(log)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.wait(timeout=120)
    assert log.exists()
