"""The compared crawlers: on which of the two webs each runs, by which command, and how its result is read.

Scrapy and Crawlee crawl the small web, with the same sites and the same kind of pages, but fewer of them, so that a run does
not take too long. They also crawl to the last page, because speed differs between the beginning of a crawl, when most links
are new, and its end.
"""

import json
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

import nginx

HERE = Path(__file__).parent
_PEERS = HERE.parents[1] / ".venv-bench"
CONNECTIONS = 100
PEERS = ("spider-rs", "wget2", "Scrapy", "Scrapy, tuned", "Crawlee", "Crawlee, tuned")
_WGET_THREADS = 20


class Ended(NamedTuple):
    """A crawler that has ended: what it printed, its output folder, and its process."""

    output: str
    folder: Path
    started: float  # wall clock
    seconds: float


class Result(NamedTuple):
    pages: int
    started: float  # wall clock: the first request
    seconds: float  # until the last page; for Trapline until its last commit
    remarks: str = ""


class Contestant(NamedTuple):
    name: str
    small: bool
    command: Callable[[Path, Path], list[str]]
    """makes the command from a file of seeds and an output folder that does not exist yet"""
    result: Callable[[Ended], Result]
    """reads the result from the output of the command, or from that folder"""
    exits: Collection[int] = (0,)
    """statuses with which it ends after a whole crawl"""


def contestants() -> list[Contestant]:
    return [
        Contestant("bare loop, known by href", False, _bare("hrefs"), _printed),
        Contestant("bare loop, known by URL", False, _bare("urls"), _printed),
        Contestant("Trapline", False, _trapline, _summary),
        Contestant("Trapline, watched", False, _watched, _summary),
        Contestant("Trapline with a handler", False, _with_handler, _summary),
        Contestant("Trapline from Python", False, _from_python(with_folder=True), _printed),
        Contestant("Trapline from Python, no folder", False, _from_python(with_folder=False), _printed),
        Contestant("spider-rs", False, _spider, _printed),
        Contestant("wget2", False, _wget, _files, exits=(0, _ERROR_ANSWER)),
        Contestant("Scrapy", True, _other("scrapy_crawl.py", "--spider", "plain"), _printed),
        Contestant("Scrapy, tuned", True, _other("scrapy_crawl.py", "--spider", "tuned"), _printed),
        Contestant("Crawlee", True, _other("crawlee_crawl.py", "--crawler", "plain"), _printed),
        Contestant("Crawlee, tuned", True, _other("crawlee_crawl.py", "--crawler", "tuned"), _printed),
    ]


def trapline(*words: str) -> list[str]:
    """Return a command line of the Trapline that this interpreter imports."""
    return [sys.executable, "-c", "from trapline.cli import main; main()", *words]


def _bare(known_by: str) -> Callable[[Path, Path], list[str]]:
    return lambda seeds, folder: [sys.executable, str(HERE / "bare.py"), "--seeds", str(seeds), "--known-by", known_by]


def _other(script: str, *options: str) -> Callable[[Path, Path], list[str]]:
    return lambda seeds, folder: [str(_PEERS / "bin" / "python"), str(HERE / script), "--seeds", str(seeds), *options]


def _trapline(seeds: Path, folder: Path) -> list[str]:
    args = f"--connections {CONNECTIONS} --delay 0 --max-pages 30000 --allow-private --quiet"
    return trapline("crawl", "--seeds", str(seeds), "-o", str(folder), *args.split())


def _watched(seeds: Path, folder: Path) -> list[str]:
    """A crawl with an open dashboard whose metrics are scraped every second."""
    (port,) = nginx.free_ports(["127.0.0.1"], 1)
    crawl = [*_trapline(seeds, folder), "--dashboard", f"127.0.0.1:{port}"]
    return [sys.executable, str(HERE / "watched_crawl.py"), str(port), *crawl]


def _with_handler(seeds: Path, folder: Path) -> list[str]:
    return [*_trapline(seeds, folder), "--handler", f"{HERE / 'python_crawl.py'}:do_nothing"]


def _from_python(with_folder: bool) -> Callable[[Path, Path], list[str]]:
    def command(seeds: Path, folder: Path) -> list[str]:
        output = ["--output", str(folder)] if with_folder else []
        return [sys.executable, str(HERE / "python_crawl.py"), "--seeds", str(seeds), *output]

    return command


def _spider(seeds: Path, folder: Path) -> list[str]:
    return ["node", str(HERE / "spider_crawl.mjs"), str(seeds), str(_PEERS)]


_ERROR_ANSWER = 8  # wget2 got one, such as a 404 for a file that only it asks for


def _wget(seeds: Path, folder: Path) -> list[str]:
    args = f"--recursive --level=inf --max-threads={_WGET_THREADS} --quiet --input-file={seeds} --directory-prefix={folder}"
    return ["wget2", *args.split()]


def _files(ended: Ended) -> Result:
    return Result(sum(1 for _ in ended.folder.rglob("*.html")), ended.started, ended.seconds)


def _printed(ended: Ended) -> Result:
    printed = json.loads(ended.output.splitlines()[-1])
    return Result(printed["pages"], printed["started"], printed["seconds"])


def _summary(ended: Ended) -> Result:
    summary = json.loads((ended.folder / "summary.json").read_text())
    remarks = f"{summary['errors']} errors, {summary['politeness_violations']} politeness violations"
    return Result(summary["pages_fetched"], summary["began"], summary["seconds"], remarks)
