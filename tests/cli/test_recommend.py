"""`trapline recommend`: advice, the command to crawl by, a page and JSON."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from trapline.cli import COMMANDS, run
from trapline.graph import generate, save

Captured = pytest.CaptureFixture[str]
QUICK = ("breadth-first", "opic", "--draws", "2", "--connections", "5", "--per-connection", "1,10")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("graph") / "web"
    save(generate(300, 12, seed=5), folder)
    return str(folder)


def recommended(folder: Path, *args: str) -> dict[str, Any]:
    assert run(["recommend", *args, "-o", str(folder)]) == 0
    found: dict[str, Any] = json.loads((folder / "recommend.json").read_text())
    return found


def test_the_advice_has_a_table_a_command_a_page_and_json(web: str, tmp_path: Path, capsys: Captured) -> None:
    found = recommended(tmp_path, web, *QUICK, "--time", "2min")
    said, page = capsys.readouterr(), (tmp_path / "recommend.html").read_text()
    assert found["advice"] in said.out and found["command"] in said.out
    assert "(advice" in said.out and "breadth-first" in said.out
    assert "<svg" in page and "What the advice rests on" in page and "src=" not in page
    assert "recommend.html" in said.err
    assert found["recommended"]["gain_over_default"]["mean"] >= 0


def test_the_command_is_one_that_trapline_crawl_accepts(web: str, tmp_path: Path, capsys: Captured) -> None:
    found = recommended(tmp_path, web, *QUICK, "--time", "2min", "--pages", "90", "--delay", "20s", "--retries", "1")
    words = shlex.split(found["command"])
    assert words[:2] == ["trapline", "crawl"]
    first = next(at for at, word in enumerate(words) if word.startswith("--"))
    options = dict(zip(words[first::2], words[first + 1 :: 2], strict=True))
    crawl = COMMANDS["crawl"].load()
    assert all(any(flag in param.opts for param in crawl.params) for flag in options)
    assert options["--delay"] == "20s" and options["--retries"] == "1"
    assert (options["--max-pages"], options["--max-time"]) == ("90", "120s")


@pytest.mark.parametrize(
    ("given", "kept", "omitted"),
    [
        ("--bandwidth 1MB --protocol pipelining", "--bandwidth 1MB --http pipelining", "--site-bandwidth"),
        ("--bandwidth 20kB --bandwidth-per connection", "--site-bandwidth 20kB", "--bandwidth "),
        ("--protocol http/1.0 --per-connection 1", "--http 1.0", "--bandwidth"),
        ("--protocol keep-alive", "--per-connection 1", "--http"),
    ],
)
def test_the_command_keeps_bandwidth_and_protocol(
    web: str, tmp_path: Path, capsys: Captured, given: str, kept: str, omitted: str
) -> None:
    command = recommended(tmp_path, web, *QUICK, "--pages", "50", *given.split())["command"]
    assert kept in command and f" {omitted}" not in command


def test_json_goes_to_stdout_alone(web: str, tmp_path: Path, capsys: Captured) -> None:
    assert run(["recommend", web, *QUICK, "--pages", "50", "--json", "-o", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["budget"] == {"time_s": None, "pages": 50, "sample": 1.0}


def test_a_sample_is_crawled_with_its_share_of_the_budget(web: str, tmp_path: Path, capsys: Captured) -> None:
    found = recommended(tmp_path, web, *QUICK, "--pages", "500", "--sample", "10%")
    assert found["default"]["pages"] == 50 and "--max-pages 500" in found["command"]
    assert any("sample" in sentence for sentence in found["rests_on"])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "the budget has no limit; give --time, --pages or both"),
        (("omniscient", "--pages", "9"), "omniscient knows the PageRank of pages that are not fetched yet"),
        (("historical-opic-by-directory", "--time", "1min"), "needs an older crawl, which trapline recommend does not"),
        (("mean-parent-quality", "--time", "1min"), "content, which trapline recommend does not have; choose another"),
        (("--pages", "9", "--sample", "0"), "--sample 0%"),
        (("--pages", "9", "--protocol", "http/1.0", "--per-connection", "1,10"), "--per-connection has no effect"),
        (("--pages", "9", "--delay", "-1"), "'--delay': -1"),
    ],
)
def test_invalid_input_prints_one_line(
    web: str, tmp_path: Path, capsys: Captured, args: tuple[str, ...], message: str
) -> None:
    assert run(["recommend", web, *args, "-o", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def test_files_that_are_not_from_a_recommendation_are_kept(web: str, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "seeds.txt").write_text("mine")
    assert run(["recommend", web, "--pages", "9", "-o", str(tmp_path)]) == 2
    assert "is not from a recommendation" in capsys.readouterr().err
    assert (tmp_path / "seeds.txt").read_text() == "mine"
