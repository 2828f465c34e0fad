"""`trapline parallel plan` as a user meets it."""

import json

from click.testing import CliRunner

from trapline.cli.parallel_plan import plan

GENERIC = ["--pages", "1000000000", "--every", "30d", "--link", "10Mbit", "--page-bytes", "10kB"]


def test_the_generic_engine_in_words_and_for_machines() -> None:
    shown = CliRunner().invoke(plan, GENERIC)
    assert shown.exit_code == 0
    assert "processes       4, each with a link of 1.25 MB/s" in shown.output and "firewall" in shown.output
    found = json.loads(CliRunner().invoke(plan, [*GENERIC, "--json"]).output)
    assert (found["processes"], found["mode"], found["exchanges"], found["simulated"]) == (4, "firewall", 0, False)
    assert f"{found['coverage']:.1%}" in shown.output


def test_too_few_machines_take_longer_and_it_says_so() -> None:
    shown = CliRunner().invoke(plan, [*GENERIC, "--processes-most", "2"])
    assert "too few         4 processes are needed; 2 take 46 days" in shown.output
