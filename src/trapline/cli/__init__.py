"""The command line: one file per command, and here the one place where they begin and end.

Above everything and imported by nothing. Commands parse options, call one function below, and show what it answers.

Exit codes: 0 done, 2 the user must act, 70 a defect of Trapline (EX_SOFTWARE), 130 interrupted.
"""

import signal
import sys
from collections.abc import Sequence

import click

from trapline.cli.complaints import INTERRUPTED, complain
from trapline.cli.lazy import Lazy, LazyGroup
from trapline.terminal import guard_stderr

COMMANDS = {
    "demo": Lazy("trapline.cli.demo:demo", "Compare a few strategies on a generated web."),
    "crawl": Lazy("trapline.cli.crawl:crawl", "Crawl the web into a folder; with --continuous, keep it fresh."),
    "simulate": Lazy("trapline.cli.simulate:simulate", "Crawl a graph in simulated time."),
    "compare": Lazy("trapline.cli.compare:compare", "Crawl a graph by several strategies, and compare them."),
    "report": Lazy("trapline.cli.report:report", "Write an HTML page about a crawl, or one that compares several."),
    "status": Lazy("trapline.cli.status:status", "Say how a crawl stands, also while it runs."),
    "explain": Lazy("trapline.cli.explain:explain", "Say why a page was fetched when it was, or why it was not yet."),
    "verify": Lazy("trapline.cli.verify:verify", "Check a crawl's folder for damage, and repair it."),
    "graph": Lazy("trapline.cli.graph:graph", "Make, inspect and convert web graphs."),
    "refresh": Lazy("trapline.cli.refresh:refresh", "Keep pages fresh: take pings and access logs, compare policies."),
    "parallel": Lazy(
        "trapline.cli.parallel:parallel", "Crawls of many partitions: simulate, plan, watch and resize them."
    ),
    "reproduce": Lazy(
        "trapline.cli.reproduce:reproduce", "A paper's experiments again: its figures, and what of it holds."
    ),
    "testweb": Lazy("trapline.cli.testweb:testweb", "Serve a graph as real web sites on loopback."),
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
    guard_stderr()
    code = run(sys.argv[1:])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done: a late Ctrl-C must not say otherwise
    sys.exit(code)


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
