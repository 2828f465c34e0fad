"""The shell completes commands, options and names, quickly: no command is imported to list commands, and numba never."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from trapline.cli import COMMANDS, trapline

PROGRAMS = Path(sys.executable).parent


def completed(*words: str) -> list[str]:
    """Return what the shell offers for the last word."""
    shell = ShellComplete(trapline, {}, "trapline", "_TRAPLINE_COMPLETE")
    return [item.value for item in shell.get_completions(list(words[:-1]), words[-1])]


def test_commands_are_completed_with_their_help() -> None:
    assert completed("") == list(COMMANDS)
    assert completed("re") == ["recommend", "report", "refresh", "reproduce"]
    assert completed("--v") == ["--version"]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("crawl", "--max-pages"), ["--max-pages", "--max-pages-per-site"]),
        (("crawl", "--strategy", "crawl-ability-"), ["crawl-ability-and-delay", "crawl-ability-diminishing"]),
        (("crawl", "--scope", "d"), ["domain"]),
        (("compare", "web", "larger"), ["larger-sites-first"]),
        (("refresh", "s"), ["serve", "subscribe"]),
        (("simulate", "web", "--page-rank", "./min"), ["./min"]),  # a file: the shell completes it
    ],
)
def test_options_and_values_are_completed(words: tuple[str, ...], offered: list[str]) -> None:
    assert completed(*words) == offered


def test_completion_imports_no_command_for_commands_and_never_numba() -> None:
    program = """if True:
        import sys
        from tests.cli.test_completion import completed
        assert completed("s") == ["simulate", "status", "serve"]
        assert not [name for name in sys.modules if name.startswith("trapline.cli.simulate")]
        assert completed("crawl", "--strategy", "op") == ["opic", "opic-by-directory"]
        assert not {"numba", "numpy"} & {*sys.modules}"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2])


def test_bash_completes_the_command() -> None:
    script = """
        eval "$(_TRAPLINE_COMPLETE=bash_source trapline)"
        COMP_WORDS=(trapline crawl --sco) COMP_CWORD=2
        _trapline_completion trapline
        echo "${COMPREPLY[@]}"
        complete -p trapline"""
    environment = {**os.environ, "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"}
    said = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, check=True, env=environment
    ).stdout
    assert said.splitlines() == ["--scope", "complete -o nosort -F _trapline_completion trapline"]
