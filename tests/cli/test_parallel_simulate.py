"""`trapline parallel simulate`: its JSON, its table and its errors."""

import json
import re
from functools import partial
from pathlib import Path

import pytest

from trapline.cli import run
from trapline.cli.parallel import simulate as parallel_simulate
from trapline.cli.terminal.progress import Progress
from trapline.graph import generate, save


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parallel") / "web"
    save(generate(2000, 60, seed=3), folder)
    return folder


def simulated(web: Path, *options: str) -> None:
    assert run(["parallel", "simulate", str(web), "--connections", "5", "--delay", "1", *options]) == 0


def record(web: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, float]:
    simulated(web, "--json", *options)
    answer: dict[str, float] = json.loads(capsys.readouterr().out)
    return answer


def rows(web: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, str]:
    """Return the rows of the table that the command prints."""
    simulated(web, *options)
    return {line[:26].strip(): line[26:] for line in capsys.readouterr().out.splitlines()}


def test_modes_differ_as_they_should(web: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alone = record(web, capsys, "--processes", "1")
    exchange = record(web, capsys, "--processes", "8", "--mode", "exchange", "--partition", "site-hash")
    assert (exchange["overlap"], exchange["coverage"]) == (0.0, alone["coverage"])
    assert exchange["pages_distinct"] == alone["pages_distinct"]
    assert exchange["urls_exchanged_per_page"] > 0
    assert exchange["messages"] > 0
    assert exchange["politeness_violations"] == 0
    firewall = record(web, capsys, "--processes", "8", "--mode", "firewall", "--random-seeds", "2")
    assert firewall["overlap"] == 0.0
    assert firewall["urls_exchanged"] == 0
    assert firewall["coverage"] < 1.0
    across = record(web, capsys, "--processes", "4", "--mode", "cross-over", "--random-seeds", "2")
    assert across["coverage"] == 1.0
    assert across["overlap"] > 0.0


@pytest.mark.parametrize("mode", ["firewall", "cross-over", "exchange", "independent", "dynamic"])
def test_progress_and_its_total_count_the_same_pages(
    mode: str, web: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel_simulate, "Progress", partial(Progress, plain_every_s=0.0))
    simulated(web, "--processes", "4", "--mode", mode)
    shown = re.findall(r"crawling: ([\d,]+)/([\d,]+) (\w+)", capsys.readouterr().err)
    done, total, unit = ({row[at] for row in shown} for at in range(3))
    again = mode in ("cross-over", "independent")  # each partition may fetch the page
    assert (total, unit) == (({"8,000"}, {"downloads"}) if again else ({"2,000"}, {"pages"}))
    assert max(int(one.replace(",", "")) for one in done) <= (8000 if again else 2000)


def test_a_filter_and_replication_reduce_the_urls_sent(web: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = record(web, capsys, "--processes", "4")["urls_exchanged"]
    assert record(web, capsys, "--processes", "4", "--filter", "1000")["urls_exchanged"] < plain
    assert record(web, capsys, "--processes", "4", "--replicate", "200")["urls_exchanged"] < plain
    assert record(web, capsys, "--processes", "4", "--exchange-every", "100")["urls_exchanged"] < plain


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--mode", "firewal"], "firewall"),
        (["--partition", "site"], "site-hash"),
        (["--partition", "suffix"], "give --suffixes, such as edu=0,org=1"),
        (["--suffixes", "edu=0"], "--partition suffix"),
        (["--partition", "suffix", "--suffixes", "edu"], "END=PROCESS"),
        (["--partition", "suffix", "--suffixes", "edu=9"], "no process 9"),
        (["--filter-policy", "fifo"], "lru"),
        (["--mode", "dynamic", "--grain", "host"], "site"),
        (["--top", "best"], "backlinks or pagerank"),
        (["--processes", "0"], "processes"),
        (["--strategy", "partial-pagerank"], "at one place"),
        (["--speed-up"], "No such option"),
        (["--rescore", "10"], "No such option"),
        (
            ["--grain", "page"],
            "--grain page has no effect in mode exchange; omit it, or give --mode dynamic",
        ),
        (["--mode", "firewall", "--filter", "9"], "--filter 9 has no effect in mode firewall"),
        (["--mode", "cross-over", "--exchange-every", "9"], "give --mode exchange or dynamic"),
        (["--mode", "dynamic", "--partition", "url-hash"], "--partition url-hash has no effect in mode dynamic"),
        (["--mode", "dynamic", "--partition", "site-hash"], "--partition site-hash has no effect in mode dynamic"),
        (["--filter-policy", "popular"], "also give --filter"),
        (
            ["--filter", "2147483647", "--processes", "64"],
            "the filters of 64 partitions need 3,299 GB, but this machine",
        ),
        (["--quality", "zipf"], "backlink-count does not use quality"),
        (["--history", "."], "--history has no effect with backlink-count"),
    ],
)
def test_invalid_input_is_reported_in_one_line(
    web: Path, options: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["parallel", "simulate", str(web), *options]) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "error" in line.lower()]
    assert reason in line


def test_the_table_names_how_pages_are_partitioned(web: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dynamic = rows(web, capsys, "--mode", "dynamic", "--max-pages", "50")
    assert dynamic["partitions"] == "4, mode dynamic: a coordinator assigns sites"
    independent = rows(web, capsys, "--mode", "independent", "--max-pages", "50")
    assert independent["partitions"].startswith("4, mode independent: seeds by site-hash")
    assert "links between partitions" not in independent


def test_firewall_shows_how_many_links_it_did_not_follow(web: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From all home pages, firewall fetches the same pages as exchange, so it finds the same links."""
    exchange = record(web, capsys)
    assert rows(web, capsys)["partitions"] == "4 by site-hash, mode exchange"
    firewall = record(web, capsys, "--mode", "firewall")
    assert firewall["pages_distinct"] == exchange["pages_distinct"]
    assert firewall["links_between_partitions"] == exchange["links_between_partitions"] > 0
    shown = rows(web, capsys, "--mode", "firewall")
    assert shown["links between partitions"] == f"{firewall['links_between_partitions']:,} (not followed)"


def test_links_are_counted_of_fetched_pages_for_any_length_of_a_step(
    web: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    firewall, exchange = (
        [record(web, capsys, "--mode", mode, "--max-pages", "200", "--step", step) for step in ("1", "1000")]
        for mode in ("firewall", "exchange")
    )
    assert firewall[0]["links_between_partitions"] == firewall[1]["links_between_partitions"] > 0
    assert exchange[0]["pages_downloaded"] == exchange[1]["pages_downloaded"] == 200
    # In one long step no link arrives, so the partitions fetch the same pages as under firewall and find the same links.
    assert exchange[1]["links_between_partitions"] == firewall[0]["links_between_partitions"]


def test_the_help_names_the_printed_quality_and_has_no_option_of_one_process(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["parallel", "simulate", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "--top sets which pages count as the best in the result; --quality sets the quality that the strategy uses"
        in said
    )
    assert "--quality NAME Quality for strategies that use it" in said
    assert "--speed-up" not in said and "--rescore" not in said
