"""`trapline parallel simulate`: the numbers for machines, the table for people, and one line for what is wrong."""

import json
from pathlib import Path

import pytest

from trapline.cli import run
from trapline.graph import generate, save


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parallel") / "web"
    save(generate(2000, 60, seed=3), folder)
    return folder


def record(web: Path, tmp_path: Path, *options: str) -> dict[str, float]:
    out = tmp_path / "out.json"
    assert (
        run(["parallel", "simulate", str(web), "--connections", "5", "--delay", "1", "--json", str(out), *options]) == 0
    )
    answer: dict[str, float] = json.loads(out.read_text())
    return answer


def test_modes_differ_as_they_should(web: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alone = record(web, tmp_path, "--processes", "1")
    exchange = record(web, tmp_path, "--processes", "8", "--mode", "exchange", "--partition", "site-hash")
    assert "coverage" in capsys.readouterr().out
    assert (exchange["overlap"], exchange["coverage"]) == (0.0, alone["coverage"])
    assert exchange["pages_distinct"] == alone["pages_distinct"]
    assert exchange["urls_exchanged_per_page"] > 0
    assert exchange["messages"] > 0
    assert exchange["politeness_violations"] == 0
    firewall = record(web, tmp_path, "--processes", "8", "--mode", "firewall", "--random-seeds", "2")
    assert firewall["overlap"] == 0.0
    assert firewall["urls_exchanged"] == 0
    assert firewall["coverage"] < 1.0
    across = record(web, tmp_path, "--processes", "4", "--mode", "cross-over", "--random-seeds", "2")
    assert across["coverage"] == 1.0
    assert across["overlap"] > 0.0


def test_fewer_urls_are_sent_by_a_filter_and_by_replication(web: Path, tmp_path: Path) -> None:
    plain = record(web, tmp_path, "--processes", "4")["urls_exchanged"]
    assert record(web, tmp_path, "--processes", "4", "--filter", "1000")["urls_exchanged"] < plain
    assert record(web, tmp_path, "--processes", "4", "--replicated", "200")["urls_exchanged"] < plain
    assert record(web, tmp_path, "--processes", "4", "--batch-pages", "100")["urls_exchanged"] < plain


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--mode", "firewal"], "firewall"),
        (["--partition", "site"], "site-hash"),
        (["--partition", "suffix"], "table of suffixes"),
        (["--partition", "suffix", "--suffixes", "edu"], "END=PARTITION"),
        (["--partition", "suffix", "--suffixes", "edu=9"], "partition 9"),
        (["--filter-policy", "fifo"], "lru"),
        (["--grain", "host"], "site"),
        (["--top", "best"], "backlinks or pagerank"),
        (["--processes", "0"], "processes"),
        (["--strategy", "partial-pagerank"], "at one place"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    web: Path, options: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["parallel", "simulate", str(web), *options]) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "error" in line.lower()]
    assert reason in line
