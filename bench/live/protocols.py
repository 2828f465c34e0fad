"""Compares HTTP/1.0, HTTP/1.1 and pipelining by the number of connections, as cao fig. 4: python bench/live/protocols.py

`trapline testweb` serves a generated web of 2,000 sites whose answers take 20 ms, and whose connections take another 20 ms, as if
every round trip took that long. Each crawl runs for a fixed time; the table shows its pages per second. The last row shows that
1,000 connections work.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from contestants import trapline
from ending import end_in_order

PROTOCOLS = ("1.0", "1.1", "pipelining")
CONNECTIONS = (1, 8, 32, 96, 192)
MANY = 1_000
_PAGES, _SITES = 100_000, 2_000
_STARTS_AND_ENDS_S = 120.0  # time for compiling in the first run, and for the last visits


@contextmanager
def served(scratch: Path, latency: str) -> Iterator[list[str]]:
    """Serve the web; yield the options by which a crawl finds it."""
    graph, hosts, urls = scratch / "graph", scratch / "hosts", scratch / "urls"
    size = ["--pages", str(_PAGES), "--sites", str(_SITES), "--seed", "1"]
    subprocess.run(trapline("graph", "generate", *size, "-o", str(graph)), check=True, stdout=subprocess.DEVNULL)
    slow = ["--latency", latency, "--connection-latency", latency]
    files = ["--hosts-file", str(hosts), "--urls-file", str(urls)]
    command = trapline("testweb", str(graph), *slow, *files, "--json")
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout
    try:
        if not server.stdout.readline():  # it prints a line once it serves
            sys.exit("testweb did not start")
        yield ["--seeds", str(urls), "--hosts", str(hosts), "--allow-private"]
    finally:
        server.terminate()
        server.communicate()


def crawl(web: list[str], protocol: str, connections: int, seconds: float) -> dict[str, Any] | None:
    """Run a crawl; return its summary, None if it did not end in time."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "crawl"
        args = ["--http", protocol, "--connections", str(connections), "--max-time", str(seconds), "--delay", "0"]
        command = trapline("crawl", *web, *args, "--quiet", "-o", str(folder))
        try:
            subprocess.run(command, check=True, timeout=seconds + _STARTS_AND_ENDS_S)
        except subprocess.TimeoutExpired:
            return None
        return json.loads((folder / "summary.json").read_text())


def complain(which: str, summary: dict[str, Any] | None) -> None:
    """Print errors and politeness violations, which must not occur on this web."""
    if summary and summary["errors"]:
        print(f"{which}: errors: {summary['errors_by_kind']}", file=sys.stderr)
    if summary and summary["politeness_violations"]:
        print(f"{which}: politeness violations: {summary['politeness_violations_by_rule']}", file=sys.stderr)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--latency", default="20ms", help="latency of an answer, and of a connection [20ms]")
    options.add_argument("--seconds", type=float, default=8.0, help="length of each crawl [8]")
    args = options.parse_args()
    end_in_order()
    with tempfile.TemporaryDirectory() as scratch, served(Path(scratch), args.latency) as web:
        print(f"| connections | {' | '.join(PROTOCOLS)} |\n|---:|{'---:|' * len(PROTOCOLS)}")
        for connections in (*CONNECTIONS, MANY):
            summaries = [crawl(web, protocol, connections, args.seconds) for protocol in PROTOCOLS]
            cells = [f"{summary['pages_per_second']:,.0f}" if summary else "did not end" for summary in summaries]
            print(f"| {connections:,} | {' | '.join(cells)} |", flush=True)
            for protocol, summary in zip(PROTOCOLS, summaries, strict=True):
                complain(f"{protocol}, {connections:,} connections", summary)


if __name__ == "__main__":
    main()
