"""`trapline reproduce castillo` and `cao`: a page, plots and JSON; an interrupted command continues; mistakes are reported in one line."""

import json
from pathlib import Path

import pytest

from tests.effort import slow
from tests.lab.made_up_crawls import no_live_crawls
from trapline.cli import run
from trapline.cli.reproduce.scheduling import PaperOptions, cao_plan, castillo_plan, thesis_plan
from trapline.errors import ConfigError
from trapline.graph import generate, save
from trapline.lab import simulated
from trapline.report import plot

Captured = pytest.CaptureFixture[str]
SMALL = ["reproduce", "castillo", "--pages", "2000", "--webs", "2"]


def test_it_writes_a_page_plots_and_json_and_continues_after_an_interrupt(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawled, times = simulated.crawled, 0

    def interrupted(*args: object) -> object:
        nonlocal times
        times += 1
        if times == 10:
            raise KeyboardInterrupt
        return crawled(*args)  # type: ignore[arg-type]

    no_live_crawls(monkeypatch)
    monkeypatch.setattr(plot, "chart_png", lambda *_: b"")  # cao draws real ones
    monkeypatch.setattr(simulated, "crawled", interrupted)
    assert run([*SMALL, "-o", str(tmp_path)]) == 130
    assert not (tmp_path / "castillo.html").exists()
    assert run([*SMALL, "-o", str(tmp_path)]) == 0
    done = capsys.readouterr()
    assert "castillo: 20 claims: " in done.out and "were done before and not repeated" in done.err
    found = json.loads((tmp_path / "castillo.json").read_text())
    assert found["paper"] == "castillo" and sum(len(item["claims"]) for item in found["items"]) == 20
    page = (tmp_path / "castillo.html").read_text()
    assert (
        page.count("<tr><td class=") == 20 and "<script src" not in page and "http://" not in page.split("</style>")[1]
    )
    names = {chart["name"] for item in found["items"] for chart in item["charts"]}
    assert {path.name for path in tmp_path.glob("*.png")} == {f"castillo-{name}.png" for name in names}
    the_thesis_reuses_the_runs(tmp_path, capsys)


def the_thesis_reuses_the_runs(folder: Path, capsys: Captured) -> None:
    assert run(["reproduce", "thesis", *SMALL[2:], "-o", str(folder), "--json"]) == 0
    done = capsys.readouterr()
    assert "runs were done before" in done.err
    found = json.loads(done.out)
    assert found == json.loads((folder / "thesis.json").read_text())
    assert found["paper"] == "thesis" and found["items"][2]["name"] == "table 4.1"


def test_a_graph_of_the_user_is_used(tmp_path: Path) -> None:
    save(generate(2000, 50, seed=3), tmp_path / "mine")
    options = PaperOptions(graph=(str(tmp_path / "mine"),), webs=1, quick=True)
    for plan in (castillo_plan(options), thesis_plan(options), cao_plan(options)):
        assert plan.webs[0].startswith("mine, 2,000 pages, ")
        assert any(run.key.startswith(f"{plan.webs[0]}; ") for run in plan.runs())


def test_the_short_form_has_the_live_crawls_of_servers_as_slow_as_real_ones() -> None:
    options = PaperOptions(quick=True)
    assert any("live batches by protocol" in run.key for run in cao_plan(options).runs())
    timed = [run.key for run in thesis_plan(options).runs() if "simulated and live" in run.key]
    assert len(timed) == 4 and set(timed) < {run.key for run in thesis_plan(PaperOptions()).runs()}


def test_mistakes_are_reported_in_one_line(tmp_path: Path, capsys: Captured) -> None:
    assert run([*SMALL, "--graph", "absent", "-o", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert run(["reproduce", "castillo", "--graph", str(tmp_path / "absent"), "-o", str(tmp_path)]) == 2
    assert "absent" in capsys.readouterr().err


def test_two_graphs_with_the_same_name_are_refused(tmp_path: Path) -> None:
    save(generate(2000, 50, seed=3), tmp_path / "mine")
    with pytest.raises(ConfigError, match=r"two graphs are called 'mine, 2,000 pages, .*'; give each graph once"):
        castillo_plan(PaperOptions(graph=(str(tmp_path / "mine"), str(tmp_path / "mine")), quick=True))


@slow
def test_cao_writes_the_same_kinds_of_files(tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    no_live_crawls(monkeypatch)
    assert run(["reproduce", "cao", "--pages", "2000", "--webs", "2", "-o", str(tmp_path)]) == 0
    assert "cao: 24 claims: " in capsys.readouterr().out
    found = json.loads((tmp_path / "cao.json").read_text())
    assert [item["name"] for item in found["items"]] == [
        "fig. 3",
        "fig. 4",
        "fig. 4, live",
        "fig. 5",
        "fig. 6",
        "fig. 7",
    ]
    assert len(list(tmp_path.glob("cao-*.png"))) == 10 and (tmp_path / "cao.html").exists()
