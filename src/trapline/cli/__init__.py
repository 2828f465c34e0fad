"""The command line: one file per command, and here the one place where errors become a line and an exit code.

Above everything and imported by nothing. Commands parse options, call one function below, and show what it answers.

Exit codes: 0 done, 2 the user must act, 70 a defect of Trapline (EX_SOFTWARE), 130 interrupted.
"""

import os
import sys
from collections.abc import Sequence

import click

from trapline.cli.lazy import Lazy, LazyGroup
from trapline.errors import ConfigError

COMMANDS = {
    "demo": Lazy("trapline.cli.demo:demo", "Order a generated web by three strategies and plot it."),
    "simulate": Lazy("trapline.cli.simulate:simulate", "Crawl a graph in simulated time."),
    "graph": Lazy("trapline.cli.graph:graph", "Make, inspect and convert web graphs."),
    "warmup": Lazy("trapline.cli.warmup:warmup", "Compile the core now instead of at the first run."),
}


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name="trapline")
def trapline() -> None:
    """Schedule web crawls: what to fetch next, what to fetch again, and who fetches it."""


def main() -> None:
    sys.exit(run(sys.argv[1:]))


def run(args: Sequence[str]) -> int:
    """Run one command line and answer its exit code."""
    try:
        answer = trapline.main(args, prog_name="trapline", standalone_mode=False)
        return answer if isinstance(answer, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        return _complain(f"{error.format_message()}{_where_to_look(error)}")
    except ConfigError as error:
        return _complain(str(error))
    except (click.Abort, KeyboardInterrupt):
        return 130
    except OSError as error:  # a full disk, a pipe that ended: not ours to mend
        return _complain(str(error))
    except Exception as error:
        return _own_up(error)


def _complain(message: str) -> int:
    click.echo(f"trapline: error: {_one_line(message)}", err=True)
    return 2


def _own_up(error: Exception) -> int:
    """Say that this is ours to mend: an `InvariantError`, or anything else that nobody below expected."""
    if os.environ.get("TRAPLINE_DEBUG") == "1":
        import traceback

        traceback.print_exception(error)
    click.echo(
        f"trapline: {type(error).__name__}: {_one_line(str(error))}\n"
        "this is a defect of Trapline, please report it (TRAPLINE_DEBUG=1 shows the traceback)",
        err=True,
    )
    return 70


def _where_to_look(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f" (see: {context.command_path} --help)" if context else ""


def _one_line(message: str) -> str:
    return " ".join(line.strip() for line in message.splitlines())
