"""The command line: one file per command, and here the one place where they begin and end.

Above everything and imported by nothing. Commands parse options, call one function below, and show what it answers.

Exit codes: 0 done, 2 the user must act, 70 a defect of Trapline (EX_SOFTWARE), 130 interrupted.
"""

import sys
from collections.abc import Sequence

import click

from trapline.cli.complaints import INTERRUPTED, complain
from trapline.cli.lazy import Lazy, LazyGroup

COMMANDS = {
    "demo": Lazy("trapline.cli.demo:demo", "Compare a few strategies on a generated web."),
    "crawl": Lazy("trapline.cli.crawl:crawl", "Crawl the web into a folder: WARC files, an index, a database."),
    "report": Lazy("trapline.cli.report:report", "Show a crawl, or several side by side, as one HTML page."),
    "simulate": Lazy("trapline.cli.simulate:simulate", "Crawl a graph in simulated time."),
    "compare": Lazy("trapline.cli.compare:compare", "Crawl a graph by several strategies, and compare them."),
    "graph": Lazy("trapline.cli.graph:graph", "Make, inspect and convert web graphs."),
    "warmup": Lazy("trapline.cli.warmup:warmup", "Compile the core now instead of at the first run."),
}


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
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
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception as error:
        return complain(error)
