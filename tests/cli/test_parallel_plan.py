"""`trapline parallel plan`: its numbers, its help and its errors."""

import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from trapline.cli import COMMANDS, run
from trapline.cli.parallel.plan import plan
from trapline.graph import generate, save

GENERIC = ["--pages", "1000000000", "--every", "30d", "--link", "10Mbit", "--page-bytes", "10kB"]


def test_the_generic_engine_as_text_and_as_json() -> None:
    shown = CliRunner().invoke(plan, GENERIC)
    assert shown.exit_code == 0
    assert "processes       4, each with a link of 1.25 MB/s" in shown.output and "firewall" in shown.output
    found = json.loads(CliRunner().invoke(plan, [*GENERIC, "--json"]).output)
    assert (found["processes"], found["mode"], found["exchanges"], found["simulated"]) == (4, "firewall", 0, False)
    assert f"{found['coverage']:.1%}" in shown.output


def test_too_few_machines_are_reported_to_take_longer() -> None:
    shown = CliRunner().invoke(plan, [*GENERIC, "--processes-most", "2"])
    assert "too few         4 processes are needed; with 2 the crawl takes 46 days" in shown.output


EXAMPLES = (Path(__file__).parents[2] / "docs" / "parallel-plan.md").read_text().split("\n$ ")[1:]


@pytest.mark.parametrize("example", EXAMPLES, ids=["generic", "fresh", "medium"])
def test_the_examples_of_the_documentation_are_what_it_prints(example: str) -> None:
    command, shown = example.split("```")[0].split("\n", 1)
    assert CliRunner().invoke(plan, shlex.split(command)[3:]).output == shown


def shown(*options: str) -> dict[str, str]:
    """The printed values by the name of their row. Of rows with one name the last counts."""
    answer = CliRunner().invoke(plan, [*GENERIC, *options])
    assert answer.exit_code == 0, answer.output
    return {line[:16].strip(): line[16:] for line in answer.output.splitlines()}


def test_the_last_row_is_a_command_that_crawl_accepts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes").write_text("mine")
    for options in ((), ("--every", "7d"), ("--link", "10Gbit"), ("--every", "2h", "--processes-most", "64")):
        command = shlex.split(shown(*options)["command"])
        assert command[:2] == ["trapline", "crawl"]
        assert run([*command[1:], "http://a.test/", "-o", str(tmp_path)]) == 2
        assert (
            "holds other files" in capsys.readouterr().err
        )  # so the options passed, which are checked before the folder
    few = ("--every", "7d", "--pages", "10000000", "--link", "100kbit")
    assert "--processes 14 --exchange-every 44642" in shown(*few)["command"]  # 10^7 pages, 14 processes, 16 exchanges
    assert "--exchange-every 667664" in shown("--every", "7d")["command"]  # 10^6 URLs wait, at 1.5 a page
    assert "at most 64 processes" in shown("--every", "2h")["command"]
    found = json.loads(CliRunner().invoke(plan, [*GENERIC, "--every", "2h", "--json"]).output)
    assert found["processes"] > 64 and found["command"] is None


def test_the_other_mode_is_not_the_chosen_one() -> None:
    assert shown()["mode"] == "firewall" and shown()["other mode"].startswith("exchange: ")
    fresh = shown("--every", "7d")
    assert fresh["mode"] == "exchange" and fresh["other mode"].startswith("firewall: ")
    assert "other mode" not in shown("--link", "10Gbit")


def test_a_link_may_be_unlimited() -> None:
    assert shown("--link", "unlimited")["processes"] == "1, each with an unlimited link"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--web-pages", "100"], "--pages 1000000000 is more than --web-pages 100"),
        (["--ids-per-site", "10"], "--ids-per-site has no effect without a graph"),
    ],
)
def test_invalid_input_is_reported_in_one_line_with_exit_code_2(
    options: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["parallel", "plan", *GENERIC, *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert reason in line


def test_missing_options_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["parallel", "plan", "--pages", "1000", "--link", "1MB"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "Missing option '--every'" in line


def test_the_help_has_sections() -> None:
    said = CliRunner().invoke(plan, ["--help"]).output
    assert [line for line in said.splitlines() if line.endswith(":") and not line.startswith(" ")] == [
        "The crawl:", "Machines:", "Graph:", "Output:", "Help:",
    ]  # fmt: skip


def test_a_graph_can_be_simulated(tmp_path: Path) -> None:
    save(generate(400, 20, seed=3), tmp_path / "web")
    answer = CliRunner().invoke(plan, [*GENERIC, "--graph", str(tmp_path / "web")])
    (coverage,) = [line for line in answer.output.splitlines() if line.startswith("coverage")]
    assert coverage.endswith(f"(simulated on {tmp_path / 'web'}, with 5 random seeds per process)")


def test_the_help_of_the_group_names_its_commands() -> None:
    assert all(word in COMMANDS["parallel"].help.lower() for word in ("simulate", "plan", "watch", "resize"))
