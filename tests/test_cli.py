"""The command line: its output on success, and one line with an exit code on failure."""

import io
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from trapline.cli import COMMANDS, run
from trapline.cli.terminal.progress import Progress, said_if_long
from trapline.errors import ConfigError, InvariantError

TRAPLINE = Path(sys.executable).with_name("trapline")
Probe = Callable[[BaseException], None]


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> Probe:
    """Add a command `probe` that raises the given error."""

    def install(error: BaseException) -> None:
        def fail() -> None:
            raise error

        command = click.Command("probe", callback=fail)
        monkeypatch.setitem(COMMANDS, "probe", SimpleNamespace(help="", load=lambda: command))

    return install


def test_help_lists_every_command_and_imports_none() -> None:
    program = (
        "import sys; from trapline.cli import COMMANDS, run; code = run(['--help'])\n"
        "heavy = {'numba', 'numpy', 'matplotlib', 'scipy', 'asyncio'} & set(sys.modules)\n"
        "commands = {c.where.split(':')[0] for c in COMMANDS.values()} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy | commands}' if heavy | commands else code)\n"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    for name, command in COMMANDS.items():
        assert f"{name} " in answer.stdout
        assert command.help in answer.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--help"]) == 0
    assert f"Usage: trapline {name}" in capsys.readouterr().out


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    import trapline

    assert run(["--version"]) == 0
    assert trapline.__version__ in capsys.readouterr().out


def test_without_a_command_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2
    assert "Usage: trapline" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["simulat"], "did you mean 'simulate'?"),
        (["zzz"], f"valid: {', '.join(sorted(COMMANDS))}"),
        (["--versoin"], "Did you mean '--version'?"),
        (["warmup", "--hepl"], "Did you mean '--help'?"),
        (["warmup", "surplus"], "surplus"),
    ],
)
def test_a_wrong_word_is_reported_in_one_line_with_the_nearest_name(
    args: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(args) == 2
    answer = capsys.readouterr()
    assert answer.out == ""
    assert answer.err.startswith("trapline: error: ")
    assert hint in answer.err
    assert answer.err.count("\n") == 1


def test_a_user_error_is_one_line_with_exit_code_2(probe: Probe, capsys: pytest.CaptureFixture[str]) -> None:
    probe(ConfigError("links.csv, row 7:\n  no page 12"))
    assert run(["probe"]) == 2
    assert capsys.readouterr().err == "trapline: error: links.csv, row 7: no page 12\n"


def test_too_little_memory_is_no_defect(probe: Probe, capsys: pytest.CaptureFixture[str]) -> None:
    probe(MemoryError("Unable to allocate 373 GiB"))
    assert run(["probe"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("trapline: error: not enough memory: Unable to allocate 373 GiB; ask for fewer pages")


@pytest.mark.parametrize("error", [InvariantError("two leases on site 3"), KeyError("site 3")])
def test_an_internal_error_is_reported_without_a_traceback(
    error: Exception, probe: Probe, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRAPLINE_DEBUG", raising=False)
    probe(error)
    assert run(["probe"]) == 70
    shown = capsys.readouterr().err
    assert "site 3" in shown
    assert "this is a defect of Trapline; please report" in shown
    assert "Traceback" not in shown


def test_an_internal_error_shows_its_traceback_on_request(
    probe: Probe, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAPLINE_DEBUG", "1")
    probe(InvariantError("two leases"))
    assert run(["probe"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_ends_with_130_and_no_traceback(probe: Probe, capsys: pytest.CaptureFixture[str]) -> None:
    probe(KeyboardInterrupt())
    assert run(["probe"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_a_closed_pipe_is_not_an_error() -> None:
    process = subprocess.Popen([TRAPLINE, "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.wait()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal_is_one_line_that_disappears_at_the_end() -> None:
    terminal = Terminal()
    with Progress("compiling", stream=terminal) as progress:
        progress.update(1, 8, "next_visit")
    assert terminal.getvalue() == "\rcompiling: 1/8 next_visit\x1b[K\r\x1b[K"


def test_progress_in_a_log_is_plain_lines_and_none_for_short_work() -> None:
    log = io.StringIO()
    with Progress("pages", stream=log) as progress:
        progress.update(1_000, 5_000)
    assert log.getvalue() == ""
    with Progress("pages", stream=log, plain_every_s=0.0) as progress:
        progress.update(1_000, 5_000)
    assert log.getvalue() == "pages: 1,000/5,000\n"


def test_a_wait_is_announced_at_once_and_only_once() -> None:
    terminal, log, nobody = Terminal(), io.StringIO(), io.StringIO()
    for stream in (terminal, log, nobody):
        with Progress("compiling", stream=stream, quiet=stream is nobody) as progress:
            progress.say("waiting for another trapline process to finish compiling")
    assert terminal.getvalue() == "\rwaiting for another trapline process to finish compiling\x1b[K\r\x1b[K"
    assert (log.getvalue(), nobody.getvalue()) == ("waiting for another trapline process to finish compiling\n", "")


class SignallingLog(io.StringIO):
    """A log that signals when something is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def write(self, text: str) -> int:
        self.written.set()
        return super().write(text)


def test_work_without_steps_prints_a_line_only_if_it_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    log = SignallingLog()
    monkeypatch.setattr(sys, "stderr", log)
    monkeypatch.setattr("trapline.cli.terminal.progress._LONG_S", 3_600.0)  # however busy the machine is
    with said_if_long("opening out"):
        pass
    assert log.getvalue() == ""
    monkeypatch.setattr("trapline.cli.terminal.progress._LONG_S", 0.0)
    with said_if_long("opening out"):
        assert log.written.wait(60.0)
    with said_if_long("opening out", quiet=True):
        pass
    assert log.getvalue() == "opening out ...\n"


def test_long_progress_shows_the_rate_and_the_remaining_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, log = 100.0, io.StringIO()
    monkeypatch.setattr("trapline.cli.terminal.progress.time.monotonic", lambda: now)
    with Progress("crawling", unit="pages", stream=log, plain_every_s=0.0) as progress:
        progress.update(0, 9_000)
        now = 110.0
        progress.update(3_000, 9_000)
        now = 120.0
        progress.update(4_000, 9_000)
    assert log.getvalue().splitlines() == [
        "crawling: 0/9,000 pages",
        "crawling: 3,000/9,000 pages, 300 pages/s, 20 s left",
        "crawling: 4,000/9,000 pages, 100 pages/s, 50 s left",
    ]
