"""The command line: the table of commands, and the entry point that runs one of them.

This package is the top layer: no other package imports it. A command parses its options, calls one function of the layers below, and
prints the result.

Exit codes: 0 done, 2 the user must act, 3 a crawl fetched no page (crawl/end.py), 70 a defect of Trapline (EX_SOFTWARE), 130 interrupted,
143 a crawl was ended by SIGTERM before it began (crawl/ready.py).
"""

import gc
import signal
import sys
from collections.abc import Sequence

import click

from trapline.cli.lazy import Lazy, LazyGroup
from trapline.cli.terminal.errors import INTERRUPTED, complain
from trapline.terminal import guard_stderr, open_closed_streams

COMMANDS = {
    "demo": Lazy("trapline.cli.demo.command:demo", "Compare four strategies live, on a generated web."),
    "crawl": Lazy("trapline.cli.crawl.command:crawl", "Crawl the web into a folder; with --continuous, keep it fresh."),
    "config": Lazy(
        "trapline.cli.crawl.config_command:config", "Print the configuration of a crawl, as a file for --config."
    ),
    "simulate": Lazy("trapline.cli.simulate.command:simulate", "Crawl a graph in simulated time."),
    "compare": Lazy("trapline.cli.simulate.compare:compare", "Compare strategies on a graph, in simulated time."),
    "recommend": Lazy(
        "trapline.cli.simulate.recommend:recommend", "Recommend a strategy and connections for a budget."
    ),
    "report": Lazy("trapline.cli.crawl.report:report", "Write an HTML report of a crawl, or a comparison of several."),
    "export": Lazy(
        "trapline.cli.crawl.export_command:export", "Export tables of a crawl as Parquet, CSV or JSON Lines."
    ),
    "status": Lazy(
        "trapline.cli.crawl.status_command:status", "Show the status of a crawl, while it runs or afterwards."
    ),
    "control": Lazy(
        "trapline.cli.crawl.control_commands:control", "Pause, continue or stop a running crawl, or change its sites."
    ),
    "dashboard": Lazy(
        "trapline.cli.crawl.dashboard_command:dashboard", "Show crawls in the browser, while they run or afterwards."
    ),
    "explain": Lazy(
        "trapline.cli.crawl.explain_command:explain", "Explain why a page was fetched, or why it is still waiting."
    ),
    "verify": Lazy(
        "trapline.cli.crawl.verify_command:verify", "Check a crawl folder for damage; with --repair, repair it."
    ),
    "graph": Lazy("trapline.cli.graph:graph", "Make, inspect and convert web graphs."),
    "refresh": Lazy(
        "trapline.cli.refresh.command:refresh", "Receive pings and access logs, and compare refresh policies."
    ),
    "serve": Lazy("trapline.cli.serve.command:serve", "Serve a frontier to other crawlers, such as StormCrawler."),
    "parallel": Lazy(
        "trapline.cli.parallel.command:parallel", "Simulate, plan, watch and resize crawls of several partitions."
    ),
    "reproduce": Lazy(
        "trapline.cli.reproduce.command:reproduce", "Reproduce a paper's experiments and check its claims."
    ),
    "testweb": Lazy("trapline.cli.testweb.command:testweb", "Serve a graph as real web sites on loopback."),
    "warmup": Lazy("trapline.cli.warmup:warmup", "Compile Trapline's core now, instead of when it is first used."),
}


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.version_option(package_name="trapline")
def trapline() -> None:
    """Schedule web crawls: which page to fetch next, which to fetch again, and which process fetches which page."""


def main() -> None:
    open_closed_streams()
    guard_stderr()
    code = run(sys.argv[1:])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the command is done: a late signal must not change its exit code
    gc.freeze()  # Python need not look for cycles among all objects of a process that ends
    sys.exit(code)


def run(args: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        result = trapline.main(args, prog_name="trapline", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception as error:
        return complain(error)
