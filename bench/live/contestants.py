"""Who crawls, on which of the two webs, by which command, and where its result is read.

Scrapy and Crawlee take the small web: the same sites and the same kind of pages, fewer of them, so that a run ends while one
waits. They too crawl to the last page, as speed differs between the beginning of a crawl, when most links are new, and its
end.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
_OTHERS = HERE.parents[1] / ".venv-bench" / "bin" / "python"
CONNECTIONS = 100


class Result(NamedTuple):
    pages: int
    started: float  # wall clock: the first request
    seconds: float  # to the last page, for Trapline to its last commit
    remarks: str = ""


class Contestant(NamedTuple):
    name: str
    small: bool
    command: Callable[[Path, Path], list[str]]
    """from a file of seeds and a folder that does not exist yet"""
    result: Callable[[str, Path], Result]
    """from what it printed, and that folder"""


def contestants() -> list[Contestant]:
    return [
        Contestant("bare loop, known by href", False, _bare("hrefs"), _printed),
        Contestant("bare loop, known by URL", False, _bare("urls"), _printed),
        Contestant("Trapline", False, _trapline, _summary),
        Contestant("Scrapy", True, _other("scrapy_crawl.py", "--spider", "plain"), _printed),
        Contestant("Scrapy, tuned", True, _other("scrapy_crawl.py", "--spider", "tuned"), _printed),
        Contestant("Crawlee", True, _other("crawlee_crawl.py", "--crawler", "plain"), _printed),
        Contestant("Crawlee, tuned", True, _other("crawlee_crawl.py", "--crawler", "tuned"), _printed),
    ]


def trapline(*words: str) -> list[str]:
    """A command line of the Trapline that this interpreter imports."""
    return [sys.executable, "-c", "from trapline.cli import main; main()", *words]


def _bare(known_by: str) -> Callable[[Path, Path], list[str]]:
    return lambda seeds, folder: [sys.executable, str(HERE / "bare.py"), "--seeds", str(seeds), "--known-by", known_by]


def _other(script: str, *options: str) -> Callable[[Path, Path], list[str]]:
    return lambda seeds, folder: [str(_OTHERS), str(HERE / script), "--seeds", str(seeds), *options]


def _trapline(seeds: Path, folder: Path) -> list[str]:
    asked = f"--strategy crawl-ability --connections {CONNECTIONS} --delay 0 --max-pages 30000 --allow-private --quiet"
    return trapline("crawl", "--seeds", str(seeds), "-o", str(folder), *asked.split())


def _printed(output: str, folder: Path) -> Result:
    said = json.loads(output.splitlines()[-1])
    return Result(said["pages"], said["started"], said["seconds"])


def _summary(output: str, folder: Path) -> Result:
    said = json.loads((folder / "summary.json").read_text())
    remarks = f"{said['errors']} errors, {said['politeness_violations']} politeness violations"
    return Result(said["pages_fetched"], said["began"], said["seconds"], remarks)
