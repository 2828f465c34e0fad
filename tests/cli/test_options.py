"""Options that several commands share: accepted values, one line for refused values, and defaults that equal the core's."""

import math
import shlex
from dataclasses import fields
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from trapline.cli import COMMANDS, run, trapline
from trapline.cli.options import scheduling, simulated
from trapline.cli.options.simulated import SECTIONS, condition_options, heading, options_of
from trapline.cli.options.values import Number, count, rate, seconds, share
from trapline.crawler.engine.options import live_rules
from trapline.frontier import Rules
from trapline.frontier.rules import ESTIMATORS
from trapline.graph import generate, save
from trapline.servers.model import MODELS
from trapline.simulator.conditions import CrawlConditions, WebOptions
from trapline.simulator.network import PROTOCOLS
from trapline.simulator.settings import SimulationSettings
from trapline.units import bytes_shown, duration

Captured = pytest.CaptureFixture[str]
COMMANDS_THAT_CRAWL = (["simulate", "WEB", "--strategy", "opic"], ["compare", "WEB", "opic"])


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("graph") / "web"
    save(generate(50, 5, seed=5), folder)
    return str(folder)


# ---- numbers


@given(st.floats(0, 1e9), st.sampled_from([("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0), ("d", 86400.0)]))
def test_a_time_with_a_unit_is_converted_to_seconds(number: float, unit: tuple[str, float]) -> None:
    name, length = unit
    kind = Number(float, 0, math.inf, "time", what="", units={name: length})
    assert kind.convert(f"{number!r}{name}", None, None) == number * length
    assert kind.convert(f"{number!r} {name}", None, None) == number * length


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (seconds(), "1e3", 1000.0),
        (seconds(), "1.5h", 5400.0),
        (seconds(words={"w": "w"}), "w", "w"),
        (rate(), "2000", 2000.0),
        (rate(), "20kB", 20e3),
        (rate(), "2 MB/s", 2e6),
        (rate(), "20kbit", 2500.0),
        (rate(), "unlimited", math.inf),
        (share(), "100%", 1.0),
        (count(0), "7", 7),
    ],
)
def test_numbers_are_read_as_people_write_them(kind: Number, text: str, value: object) -> None:
    assert kind.convert(text, None, None) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *((seconds(), text) for text in ("", "soon", "15 fortnights", "nan", "inf", "-1", "-1s", "1e10", "s", "1 2", "nans")),
        *((rate(), text) for text in ("0", "0kB", "-5", "nan", "inf", "20Kb", "20mb", "1e99", "kB", "")),
        *((share(), text) for text in ("1.1", "101%", "-1%", "nan", "%", "half")),
        *((count(1), text) for text in ("0", "1.5", "1e3", "2147483648", "many", "nan", "5%")),
    ],
)  # fmt: skip
def test_a_text_that_is_not_such_a_number_is_refused(kind: Number, text: str) -> None:
    with pytest.raises(click.BadParameter):
        kind.convert(text, None, None)


@given(st.floats(0, 1e12))
def test_a_printed_duration_is_right_to_two_digits(length: float) -> None:
    number, unit = duration(length).replace(",", "").split()
    in_seconds = float(number) * {"s": 1, "min": 60, "h": 3600, "days": 86400}[unit]
    assert in_seconds == pytest.approx(length, rel=0.051, abs=1e-300)


@given(st.floats(1, 1e15))
def test_a_printed_number_of_bytes_is_right_to_three_digits(number: float) -> None:
    value, unit = bytes_shown(number).replace(",", "").split()
    assert float(value) * {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[unit] == pytest.approx(number, rel=0.0051)


# ---- defaults, which are written twice because importing the core would load numba for --help


def test_default_rules_are_those_of_a_live_crawl() -> None:
    chosen = {field: default for section in scheduling.SECTIONS for _, field, _, default, _ in section.rows}
    rules = {field: value for field, value in chosen.items() if value is not None}
    assert Rules(**rules, lease_s=math.inf) == live_rules(lease_s=math.inf) == parse().rules
    assert set(chosen) == {field.name for field in fields(Rules)} - {"lease_s", "pipelining"}


def test_the_default_conditions_are_those_of_python_programs() -> None:
    assert parse() == SimulationSettings().conditions() == CrawlConditions(live_rules(lease_s=math.inf))
    assert parse().world == WebOptions()


def test_the_offered_names_exist() -> None:
    assert simulated.PROTOCOLS == PROTOCOLS
    from trapline.cli.testweb import options as testweb

    for section in (simulated.SERVERS, testweb.SERVERS):
        shown = {flag: text for flag, *_, text in section.rows}["--servers"]
        assert all(f"{name}, " in shown for name in MODELS)


def test_the_names_in_the_help_are_those_of_the_modules() -> None:
    from trapline.cli.testweb import options as testweb
    from trapline.refresh import all_policies
    from trapline.strategies import strategies
    from trapline.strategies.base.registry import page_ranks, site_ranks
    from trapline.testweb.web.behaviour import FAULTS, ROBOTS, VALIDATORS

    assert scheduling.STRATEGIES.split(", ") == sorted(strategies())
    assert scheduling.PAGE_RANKS.split(", ") == sorted(page_ranks())
    assert scheduling.SITE_RANKS.split(", ") == sorted(site_ranks())
    assert scheduling.POLICIES.split(", ") == sorted(all_policies())
    explained = " ".join((COMMANDS["simulate"].load().help or "").split())
    assert scheduling.POLICIES.replace(", xu", " and xu") in explained
    assert testweb.FAULTS.split(", ") == list(FAULTS)
    texts = {flag: text for section in (testweb.CONDUCT, testweb.CHANGES) for flag, *_, text in section.rows}
    assert ", ".join(ROBOTS) in texts["--robots"] and ", ".join(VALIDATORS) in texts["--validators"]


def test_the_help_breaks_no_name_at_a_hyphen() -> None:
    shown = CliRunner().invoke(trapline, ["simulate", "--help"], terminal_width=80).output
    assert not [line for line in shown.splitlines() if line.endswith("-")]
    assert "historical-pagerank-omniscient" in shown
    assert scheduling.ESTIMATORS == ESTIMATORS


def test_servers_follow_the_measured_model_unless_a_constant_time_is_given() -> None:
    assert (WebOptions().model, WebOptions(page_seconds=2.0).model) == ("measured", "constant")
    assert (
        WebOptions().constant_s,
        WebOptions(page_seconds=2.0).constant_s,
        WebOptions(servers="constant").constant_s,
    ) == (
        None,
        2,
        1,
    )


def test_the_first_guess_with_constant_times_is_that_time() -> None:
    guessed = parse("--protocol", "pipelining", "--page-seconds", "2").rules
    assert (guessed.first_connection_s, guessed.first_response_s, guessed.pipelining) == (0.0, 2.0, True)


def test_conditions_in_json_have_no_infinity() -> None:
    parameters = CrawlConditions(
        Rules(lease_s=math.inf), WebOptions(bandwidth=math.inf), seeds=Path("seeds")
    ).parameters()
    assert all(value is None or isinstance(value, bool | int | float | str) for value in parameters.values())
    assert math.inf not in parameters.values()
    assert (parameters["lease_s"], parameters["bandwidth"], parameters["seeds"], parameters["delay_s"]) == (
        None,
        None,
        "seeds",
        15.0,
    )


# ---- conditions printed as options


@click.command()
@condition_options(*SECTIONS)
def echo(conditions: CrawlConditions) -> CrawlConditions:
    return conditions


def parse(*args: str) -> CrawlConditions:
    found: CrawlConditions = echo.main(list(args), standalone_mode=False)
    return found


def parse_printed(conditions: CrawlConditions) -> CrawlConditions:
    return parse(*shlex.split(" ".join(f"{flag} {value}" for flag, value in options_of(conditions).items())))


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["--delay", "2min", "--bandwidth", "200kB", "--connections", "64", "--seed", "7", "--max-pages", "1000"],
        ["--batch", "50", "--batch-ahead", "--pause", "w", "--failed", "model", "--refused", "2.5%", "--delay", "0"],
        ["--page-seconds", "1.7", "--per-connection", "0", "--requests", "0", "--bandwidth", "unlimited"],
        [
            "--servers",
            "thesis",
            "--protocol",
            "pipelining",
            "--ip-delay",
            "0",
            "--alpha",
            "0.123456789",
            "--retries",
            "0",
        ],
    ],
)
def test_printed_conditions_parse_to_the_same_conditions(args: list[str]) -> None:
    conditions = parse(*args)
    assert parse_printed(conditions).parameters() == conditions.parameters()


@pytest.mark.parametrize("args", [
    ["--batch", "50"], ["--pause", "2"], ["--failed", "5%"], ["--refused", "5%"], ["--max-pages", "9"], ["--max-time", "9s"],
    ["--seed", "3"],     ["--retries", "0"], ["--quality", "zipf"], ["--delay", "3"], ["--bandwidth", "20kB"], ["--servers", "thesis"],
    ["--first-response", "9s"], ["--ip-delay", "0"], ["--page-seconds", "2"],
])  # fmt: skip
def test_other_conditions_have_another_heading(args: list[str]) -> None:
    plain, other = heading(parse()), heading(parse(*args))
    assert "--" not in plain and other != plain
    assert (" ".join(args[:1]) in other) != (args[0] in ("--delay", "--bandwidth", "--servers", "--page-seconds"))


def test_printed_options_name_only_what_was_used() -> None:
    shown = options_of(parse("--delay", "15", "--batch", "50", "--batch-ahead", "--bandwidth", "200000"))
    assert (shown["--delay"], shown["--bandwidth"], shown["--batch-ahead"]) == ("15s", "200kB", "")
    assert not {"--seeds", "--max-depth", "--failed", "--ip-delay", "--requests"} & shown.keys()
    assert not any(word in value for value in shown.values() for word in ("None", "False", "inf"))


@pytest.mark.parametrize("kind", [seconds(), rate(), share()])
@given(number=st.floats(1e-6, 1.0) | st.floats(1.0, 1e8) | st.integers(1, 10**8).map(float))
def test_a_printed_number_parses_to_the_same_number(kind: Number, number: float) -> None:
    if kind.name == "rate":
        number += 1.0
    elif kind.name == "share":
        number = min(number, 1.0)
    assert kind.convert(kind.typed(number), None, None) == number


# ---- help


@pytest.mark.parametrize("command", ["simulate", "compare", "recommend"])
def test_every_option_is_explained_in_one_line_of_120(
    command: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert run([command, "--help"]) == 0
    said = capsys.readouterr().out
    assert all(len(line) < 120 for line in said.splitlines())
    options = said[said.index("\nCrawl:") :].splitlines()
    assert not [line for line in options if line.startswith("   ")]
    flags = [param.opts[-1] for param in COMMANDS[command].load().params if isinstance(param, click.Option)]
    assert all(any(flag in line.split() for line in said.splitlines()) for flag in flags)


@pytest.mark.parametrize("command", ["simulate", "compare", "recommend", "demo"])
def test_the_help_of_a_command_imports_nothing_heavy(command: str) -> None:
    import subprocess
    import sys

    program = (
        f"import sys; from trapline.cli import run; code = run([{command!r}, '--help'])\n"
        "heavy = {'numba', 'numpy', 'matplotlib', 'pyarrow'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else code)\n"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr


# ---- invalid input


WRONG: list[tuple[list[str], str]] = [
    (["--connections", "0"], "'--connections': 0"),
    (["--connections", "1.5"], "'--connections': '1.5' is not a whole number"),
    (["--max-pages", "0"], "'--max-pages': 0"),
    (["--max-time", "0"], "'--max-time': 0"),
    (["--seeds", "absent.txt"], "'absent.txt' does not exist"),
    (["--seeds", "."], "'.' is a directory"),
    (["--seed", "-1"], "'--seed': -1"),
    (["--harvest-quality", "-1"], "'--harvest-quality': -1"),
    (["--speed-up=5"], "'--speed-up' does not take a value"),
    (["--quality", "zipff"], "did you mean 'zipf'?"),
    (["--quality", "a:b:c"], "--quality a:b:c: not a file, and not MODULE:FUNCTION"),
    (["--quality", "absent.txt"], "--quality absent.txt: not a file"),
    (["--history", "absent"], "'absent' does not exist"),
    (["--delay", "nan"], "'--delay': nan"),
    (["--delay", "-1"], "'--delay': -1"),
    (["--ip-delay", "inf"], "'--ip-delay': inf"),
    (["--small-site-pages", "x"], "'--small-site-pages': 'x' is not a whole number"),
    (["--small-site-delay", "soon"], "'--small-site-delay': 'soon' is not a number of seconds"),
    (["--per-connection", "-1"], "'--per-connection': -1"),
    (["--retries", "11"], "'--retries': 11 is not between 0 and 10"),
    (["--backoff", "nan"], "'--backoff': nan"),
    (["--max-backoff", "1y"], "'--max-backoff': '1y'"),
    (["--max-pages-per-site", "-1"], "'--max-pages-per-site': -1"),
    (["--max-depth", "-1"], "'--max-depth': -1"),
    (["--max-depth-dynamic", "-1"], "'--max-depth-dynamic': -1"),
    (["--batch", "-1"], "'--batch': -1"),
    (["--batch-ahead"], "also give --batch"),
    (["--batch-min-active", "2"], "also give --batch"),
    (["--rescore", "nan"], "'--rescore': 'nan'"),
    (["--estimator", "mean"], "'mean' is not one of 'average', 'median'"),
    (["--alpha", "1.5"], "'--alpha': 1.5"),
    (["--first-connection", "-1"], "'--first-connection': -1"),
    (["--first-response", "nan"], "'--first-response': nan"),
    (["--first-requests", "0"], "'--first-requests': 0"),
    (["--bandwidth", "0"], "'--bandwidth': 0"),
    (["--bandwidth", "nan"], "'--bandwidth': nan"),
    (["--bandwidth", "20Kb"], "'20Kb' is not a number of bytes per second; give one such as unlimited, 2000, 20kB"),
    (["--bandwidth-per", "site"], "'site' is not one of 'link', 'connection'"),
    (["--protocol", "http/2"], "'http/2' is not one of 'keep-alive', 'http/1.0', 'pipelining'"),
    (["--pause", "k"], "'k' is not a number of seconds; give one such as w, 15"),
    (["--failed", "2"], "'--failed': 2"),
    (["--refused", "nan"], "'--refused': nan"),
    (["--failed", "60%", "--refused", "60%"], "failed is 0.6 and refused is 0.6"),
    (["--timeout", "inf"], "'--timeout': inf"),
    (
        ["--servers", "slow"],
        "no server model 'slow', and no such file; valid: constant, measured, measured-tcp, thesis",
    ),
    (["--servers", "measured", "--page-seconds", "1"], "--page-seconds has no effect with --servers measured"),
    (["--page-seconds", "0"], "'--page-seconds': 0"),
    (["--requests", "-1"], "'--requests': -1"),
    (["--keep-alive", "nan"], "'--keep-alive': nan"),
    (
        ["--small-site-delay", "1s"],
        "--small-site-delay has no effect without small sites; also give --small-site-pages",
    ),
    (["--bandwidth-per", "connection"], "--bandwidth-per has no effect without a limit; also give --bandwidth"),
    (["--timeout", "5s"], "--timeout has no effect if no fetch fails; also give --failed"),
]


@pytest.mark.parametrize("command", COMMANDS_THAT_CRAWL, ids=lambda command: command[0])
@pytest.mark.parametrize(("options", "named"), WRONG)
def test_a_wrong_option_is_reported_in_one_line_before_the_graph_is_read(
    web: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch, command: list[str], options: list[str], named: str
) -> None:
    module = "command" if command[0] == "simulate" else command[0]
    monkeypatch.delattr(f"trapline.cli.simulate.{module}.opened_arena")  # reading the graph would fail
    assert run([web if word == "WEB" else word for word in command] + options) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("trapline: error: ") and said.err.count("\n") == 1
    assert named in said.err


def test_every_shared_option_is_tried_with_a_wrong_value() -> None:
    tried = {word for options, _ in WRONG for word in options}
    with_value = {flag for section in SECTIONS for flag, _, kind, *_ in section.rows if kind is not None}
    assert with_value <= tried
