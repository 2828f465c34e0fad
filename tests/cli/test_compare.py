"""`trapline compare`: all strategies crawl the same web, and finished results stay even if another strategy fails."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.paper_options import PAPERS
from tests.effort import slow
from tests.report.records import made_up_record
from trapline.cli import run
from trapline.cli.simulate.compare import PLOTS
from trapline.cli.terminal.scoreboard import BEST, scoreboard
from trapline.errors import InvariantError
from trapline.graph import generate, save
from trapline.simulator.arena import Arena
from trapline.strategies import strategies

Captured = pytest.CaptureFixture[str]

PAGES, SITES = 300, 12
RAISES = """
from trapline.frontier.ranking import page_rank
from trapline.strategies import PageRank, Strategy, top_page

@page_rank
def rank(s, page, source, links, is_new):
    if page >= 0:
        raise ValueError('no')
    return 1.0

STRATEGY = Strategy("mine", PageRank("mine", rank), top_page.SITE)
"""


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("graph") / "web"
    save(generate(PAGES, SITES, seed=5), folder)
    return str(folder)


@pytest.fixture
def failing_strategy(tmp_path: Path) -> str:
    """A strategy file that compiles and fails at its first page."""
    file = tmp_path / "mine.py"
    file.write_text(RAISES)
    return str(file)


@pytest.fixture(autouse=True)
def quick_pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw no curves, except in the test of the pictures: drawing takes a hundred times as long as these crawls."""
    if "pictures" not in request.node.name:
        monkeypatch.setattr("trapline.report.plot.chart_png", lambda *given: b"")


def compare(folder: Path, *args: str, code: int = 0) -> dict[str, Any]:
    assert run(["compare", *PAPERS, *args, "-o", str(folder)]) == code
    found: dict[str, Any] = json.loads((folder / "compare.json").read_text())
    return found


def names(found: dict[str, Any]) -> list[str]:
    return [crawl["strategy"] for crawl in found["crawls"]]


def test_compare_writes_a_table_a_page_pictures_and_json(web: str, tmp_path: Path, capsys: Captured) -> None:
    found = compare(tmp_path / "new" / "out", web, "breadth-first", "opic+crawl-ability", "--connections", "4")
    said = capsys.readouterr()
    assert names(found) == ["breadth-first", "opic x crawl-ability"]
    for name in names(found):
        assert f"\n{name} " in said.out
    assert BEST in said.out and "2 crawls in " in said.out
    files = {file.name for file in (tmp_path / "new" / "out").iterdir()}
    pictures = set(PLOTS) - {"waste-time.png"}  # the link has no limit
    assert files == {"compare.html", "compare.json"} | pictures
    assert "compare.html, compare.json and 7 plots" in said.err
    assert "<html" in (tmp_path / "new" / "out" / "compare.html").read_text()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_table_fits_the_terminal(
    web: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    names = ("opic", "depth", "historical-pagerank-omniscient")
    compare(tmp_path, web, *names, "--bandwidth", "20kB", "--refused", "5%", "--history", web)
    table = [line for line in capsys.readouterr().out.splitlines() if line.startswith((" ", "strategy", *names))]
    assert all(len(line) < width for line in table)
    assert ("loop" in "".join(table)) == (width > 80)
    assert "PageRank" in "".join(table)


def test_the_best_value_of_a_column_is_marked_unless_most_have_it(
    web: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    found = compare(tmp_path, web, "random", "omniscient", "quality", "depth", "--page-seconds", "1")
    rows = {
        row.split()[0]: row.split()[1:]
        for row in capsys.readouterr().out.splitlines()
        if row.startswith(("r", "o", "q"))
    }
    best = max(crawl["average_cumulative_pagerank"] for crawl in found["crawls"])
    assert rows["omniscient"][0] == rows["quality"][0] == f"{best:.3f}{BEST}"
    assert BEST not in rows["random"][0]
    fetched = [crawl["simulated_seconds"] for crawl in found["crawls"]]
    assert len(set(fetched)) > 1 or not any(BEST in row[3] for row in rows.values())
    compare(tmp_path, web, "random", "omniscient", "quality", "--page-seconds", "1")
    assert f"{best:.3f}{BEST}" not in capsys.readouterr().out


def test_the_table_of_an_order_by_quality_has_harvest_rates(
    web: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    orders = ("random", "quality", "mean-parent-quality")
    options = ("--quality", "zipf", "--harvest-quality", "0.05", "--bandwidth", "20kB")
    found = compare(tmp_path, web, *orders, *options)
    said = capsys.readouterr().out
    rates = next(crawl["harvest_rate"] for crawl in found["crawls"] if crawl["strategy"] == "random")
    row = next(line for line in said.splitlines() if line.startswith("random ")).replace(BEST, " ").split()
    assert [float(text) for text in row[2:5]] == [round(rates[share] * 100, 1) for share in ("10%", "25%", "50%")]
    assert "with a quality of at least 0.05; of all pages" in said
    assert all(len(line) < 120 for line in said.splitlines())


def test_times_use_the_unit_of_their_column_and_align_at_the_decimal_point() -> None:
    times = ((1_000.0, 5e5), (700.0, 4e5), (1_200.0, 6e6))
    records = [
        replace(made_up_record(1, name), seconds_until={"50%": half}, simulated_seconds=whole)
        for name, (half, whole) in zip("abc", times, strict=True)
    ]
    lines = scoreboard(records).splitlines()
    rows = [line for line in lines if line[:2] in ("a ", "b ", "c ")]
    assert any("(min)" in line for line in lines) and any("(days)" in line for line in lines)
    assert [row.split()[3:5] for row in rows] == [["16.7", "5.79"], ["11.7*", "4.63*"], ["20.0", "69.4"]]
    points = {row.index(text) + text.index(".") for row, text in zip(rows, ("5.79", "4.63", "69.4"), strict=True)}
    assert len(points) == 1


def test_the_table_of_stopped_crawls_shows_how_much_of_the_web_they_fetched(
    web: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    found = compare(tmp_path, web, "random", "omniscient", "--max-pages", "60")
    said = capsys.readouterr().out
    for crawl in found["crawls"]:
        assert f" {100 * crawl['quality_fetched']:.1f}" in said
    assert "% of all" in said and "optimum of the pages of random 0." in said
    compare(tmp_path, web, "random", "omniscient")
    said = capsys.readouterr().out
    assert "% of all" not in said and "random order 0.5, optimum 0." in said


def test_crawls_that_end_at_a_time_are_compared_by_what_they_fetched(
    web: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    found = compare(tmp_path, web, "breadth-first", "omniscient", "depth", "--max-time", "100s")
    crawls = {crawl["strategy"]: crawl for crawl in found["crawls"]}
    assert all(0 < crawl["simulated_seconds"] <= 100 and not crawl["drained"] for crawl in crawls.values())
    best = max(crawls, key=lambda name: crawls[name]["quality_fetched"])
    said = capsys.readouterr().out
    rows = {line.split()[0]: line.split()[1:] for line in said.splitlines() if line.startswith(tuple(crawls))}
    assert "--max-time 100s" in said and "fetched different pages" in said
    assert rows[best][0] == f"{100 * crawls[best]['quality_fetched']:.1f}{BEST}"
    assert not any(BEST in cell for row in rows.values() for cell in row[2:])


def test_a_crawl_with_no_time_for_a_page_is_said_to_have_none(web: str, tmp_path: Path, capsys: Captured) -> None:
    found = compare(tmp_path, web, "opic", "--max-time", "1ms")
    assert found["crawls"][0]["pages_fetched"] == 0
    assert "opic fetched no page in its time; give it more: --max-time" in capsys.readouterr().err


@slow
def test_without_names_every_usable_strategy_is_compared(web: str, tmp_path: Path, capsys: Captured) -> None:
    without, with_history = compare(tmp_path, web), compare(tmp_path, web, "--history", web)
    assert names(with_history) == sorted(strategies())
    assert set(names(with_history)) - set(names(without)) == {n for n in strategies() if n.startswith("historical-")}


def test_every_strategy_sees_the_same_web_as_when_it_runs_alone(web: str, tmp_path: Path, capsys: Captured) -> None:
    conditions = ("--connections", "3", "--failed", "10%", "--seed", "7", "--bandwidth", "50kB")
    found = compare(tmp_path, web, "random", "opic", "batch-pagerank", *conditions)
    capsys.readouterr()
    for crawl in found["crawls"]:
        assert run(["simulate", web, *PAPERS, "--strategy", crawl["strategy"], *conditions, "--json"]) == 0
        alone = json.loads(capsys.readouterr().out)
        timed = {"wall_seconds", "score_seconds", "processor"}
        assert {k: v for k, v in crawl.items() if k not in timed} == {k: alone[k] for k in crawl if k not in timed}


def test_each_strategy_has_its_own_speed_up(
    web: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    found = compare(tmp_path, web, "random", "opic", "--connections", "8", "--speed-up")
    said, page = capsys.readouterr().out, (tmp_path / "compare.html").read_text()
    assert "Speed-up: pages per second, relative to one connection" in said and "<dt>speed-up</dt>" in page
    for crawl in found["crawls"]:
        assert crawl["speed_up"] > 1 and f" {crawl['speed_up']:.1f}" in said
    assert "speed-up" not in (compare(tmp_path, web, "opic") and (tmp_path / "compare.html").read_text())


def test_a_strategy_that_fails_is_reported_and_the_others_are_kept(
    web: str, tmp_path: Path, capsys: Captured, failing_strategy: str
) -> None:
    found = compare(tmp_path / "out", web, "opic", failing_strategy, "depth", code=2)
    assert names(found) == ["opic", "depth"]
    assert "ValueError: no" in found["failures"]["mine"]
    said = capsys.readouterr()
    assert "\nopic " in said.out and "\ndepth " in said.out
    complaints = [line for line in said.err.splitlines() if line.startswith("trapline: error: ")]
    assert len(complaints) == 1 and "mine.py" in complaints[0] and "ValueError: no" in complaints[0]


def test_nothing_is_written_if_all_strategies_fail(
    web: str, tmp_path: Path, capsys: Captured, failing_strategy: str
) -> None:
    assert run(["compare", web, failing_strategy, "-o", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().out == ""
    assert not list((tmp_path / "out").iterdir())


def test_an_internal_error_affects_one_strategy_only(
    web: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_at(monkeypatch, "opic", InvariantError("two leases"))
    found = compare(tmp_path, web, "depth", "opic", "random", code=70)
    assert names(found) == ["depth", "random"]
    assert "opic: InvariantError: two leases" in capsys.readouterr().err


def test_an_interrupt_keeps_finished_results(
    web: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_at(monkeypatch, "opic", KeyboardInterrupt())
    found = compare(tmp_path, web, "depth", "opic", "random", code=130)
    assert names(found) == ["depth"] and found["interrupted"]
    said = capsys.readouterr()
    assert "\ndepth " in said.out and "interrupted; 1 of 3 crawls was finished and kept" in said.err


def stop_at(monkeypatch: pytest.MonkeyPatch, name: str, error: BaseException) -> None:
    crawl = Arena.crawl

    def stopped(self: Arena, chosen: Any, label: str) -> Any:
        if chosen.name == name:
            raise error
        return crawl(self, chosen, label)

    monkeypatch.setattr(Arena, "crawl", stopped)


def test_logs_are_written_on_request(web: str, tmp_path: Path, capsys: Captured) -> None:
    import pyarrow.parquet

    found = compare(tmp_path, web, "opic", "opic+fifo", "--logs")
    for name, crawl in zip(("log-opic", "log-opic-x-fifo"), found["crawls"], strict=True):
        assert pyarrow.parquet.read_table(tmp_path / f"{name}.parquet").num_rows == crawl["fetches"]


# ---- invalid input


def error_line(capsys: Captured, *args: str) -> str:
    assert run(["compare", *args]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("trapline: error: ") and said.err.count("\n") == 1
    return said.err


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (["opic", "opicc"], "no strategy 'opicc'; did you mean 'opic'?"),
        (["opic", "historical-pagerank-zero"], "give --history"),
        (["opic", "mean-parent-quality"], "give --quality pagerank, zipf, FILE or MODULE:FUNCTION, or content"),
        (["opic", "opic+nothing"], "no site rank 'nothing'"),
        (["opic", "absent.py"], "absent.py: no such strategy file"),
        (["opic+fifo", "opic x fifo"], "two strategies have the name 'opic x fifo'"),
        (["crawl-ability", "--batch-ahead"], "also give --batch"),
        (["opic", "random", "--history", "."], "--history has no effect with opic, random; omit it"),
    ],
)
def test_a_wrong_name_is_reported_in_one_line_before_any_work(
    web: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch, args: list[str], named: str
) -> None:
    monkeypatch.delattr("trapline.cli.simulate.compare.opened_arena")  # reading the graph would fail
    assert named in error_line(capsys, web, *args, "-o", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_created_is_reported_in_one_line(web: str, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "file").write_text("x")
    assert f"cannot write {tmp_path / 'file'}" in error_line(capsys, web, "opic", "-o", str(tmp_path / "file"))


def test_an_unwritable_file_is_reported_before_the_first_crawl(
    web: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "compare.html").mkdir()
    monkeypatch.delattr("trapline.cli.simulate.compare.opened_arena")
    assert f"cannot write {tmp_path / 'compare.html'}" in error_line(capsys, web, "opic", "-o", str(tmp_path))


@pytest.mark.parametrize("name", ["compare.html", "compare.json", "quality-pages.png", "log-opic.parquet"])
def test_a_file_that_no_comparison_wrote_is_kept(web: str, tmp_path: Path, capsys: Captured, name: str) -> None:
    (tmp_path / name).write_text("[1]")
    said = error_line(capsys, web, "opic", "--logs", "-o", str(tmp_path))
    assert f"{name} exists and is not from a comparison; choose another folder" in said
    assert (tmp_path / name).read_text() == "[1]"
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_the_checked_plots_are_the_written_ones(web: str, tmp_path: Path) -> None:
    compare(tmp_path, web, "opic", "--bandwidth", "20kB")
    assert {file.name for file in tmp_path.glob("*.png")} == set(PLOTS)


def test_an_earlier_comparison_is_replaced(web: str, tmp_path: Path) -> None:
    compare(tmp_path, web, "opic")
    assert [crawl["strategy"] for crawl in compare(tmp_path, web, "random")["crawls"]] == ["random"]


def test_lists_are_swept_in_all_combinations(web: str, tmp_path: Path, capsys: Captured) -> None:
    found = compare(
        tmp_path, web, "opic", "breadth-first", "--connections", "1,4", "--bandwidth", "20kB,unlimited", "--speed-up"
    )
    crawls = found["crawls"]
    assert found["sweep"] == {"connections": ["1", "4"], "bandwidth": ["20kB", "unlimited"]}
    assert [(crawl["strategy"], crawl["connections"], crawl["bandwidth"]) for crawl in crawls] == [
        (strategy, connections, bandwidth)
        for strategy in ("opic", "breadth-first")
        for connections in (1, 4)
        for bandwidth in (20e3, None)
    ]
    assert crawls[1]["variant"] == {"connections": "1", "bandwidth": "unlimited"}
    assert crawls[1]["speed_up"] == crawls[5]["speed_up"] == 1.0
    out = capsys.readouterr().out
    assert "opic, r = 4, B = 20kB " in out
    grid = out[out.index("opic: speed-up") :].splitlines()
    assert grid[1].split() == ["--bandwidth", "\\", "--connections", "1", "4"]
    assert [row.split()[0] for row in grid[2:4]] == ["20kB", "unlimited"]
    assert grid[3].split()[1] == "1.00"
    assert "<caption>opic: speed-up</caption>" in (tmp_path / "compare.html").read_text()


def test_a_crawl_of_a_sweep_is_the_crawl_by_itself(web: str, tmp_path: Path) -> None:
    options = ["--delay", "2", "--per-connection", "5", "--connections", "3"]
    alone = compare(tmp_path / "alone", web, "opic", *options, "--protocol", "http/1.0")["crawls"][0]
    swept = compare(tmp_path / "swept", web, "opic", *options, "--protocol", "keep-alive,http/1.0")["crawls"][1]
    for own in ("wall_seconds", "processor", "variant", "label"):
        alone.pop(own), swept.pop(own)
    assert swept == alone


def test_without_lists_nothing_is_swept(web: str, tmp_path: Path, capsys: Captured) -> None:
    found = compare(tmp_path, web, "opic", "--connections", "4")
    assert found["sweep"] == {} and found["crawls"][0]["label"] == ""
    assert "opic: " not in capsys.readouterr().out


def test_a_wrong_value_in_a_list_is_reported_in_one_line(web: str, tmp_path: Path, capsys: Captured) -> None:
    assert run(["compare", web, "opic", "--connections", "1,x", "-o", str(tmp_path / "out")]) == 2
    assert "'x' is not a whole number" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
