"""Runs Scrapy's own tests with Scrapy's scheduler and with ours: python bench/live/scrapy_suite.py SOURCE

SOURCE is the unpacked source of the installed Scrapy (`pip download --no-deps --no-binary :all: scrapy==2.19.0`). Its tests need the
packages that its tox.ini lists. Only files count in which a test opens a scheduler; tests that name another scheduler keep it. Prints
how many tests pass with each scheduler, and which differ.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

_OURS = "trapline.scrapy.Scheduler"
_SCHEDULER, _OPENED = "SUITE_SCHEDULER", "SUITE_OPENED"  # environment variables of the tests
_MOST_S = 1200  # of one file


def pytest_configure(config: Any) -> None:
    """Choose the scheduler; this module is a plugin of the tests' pytest. Note that one was opened, by the engine."""
    from scrapy.core.engine import ExecutionEngine
    from scrapy.settings import default_settings

    default_settings.SCHEDULER = os.environ.get(_SCHEDULER) or default_settings.SCHEDULER
    open_spider = ExecutionEngine.open_spider_async

    async def noted(self: Any, *args: Any, **more: Any) -> None:
        Path(os.environ[_OPENED]).touch()
        await open_spider(self, *args, **more)

    ExecutionEngine.open_spider_async = noted  # type: ignore[method-assign]


def outcomes(source: Path, file: Path, scheduler: str, scratch: Path) -> dict[str, str] | None:
    """Return the outcome of each test of a file; None: no test opens a scheduler."""
    report, opened = scratch / "report.xml", scratch / "opened"
    for old in (report, opened):
        old.unlink(missing_ok=True)
    paths = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "src"), str(source)]
    names = {_SCHEDULER: scheduler, _OPENED: str(opened), "PYTHONPATH": os.pathsep.join(paths)}
    words = ["-q", "-p", "scrapy_suite", "-p", "no:cacheprovider", "--timeout", "120", "--junitxml", str(report)]
    words += ["-W", "default", str(file.relative_to(source))]
    subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=source,
        env={**os.environ, **names},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=_MOST_S,
    )
    if not report.exists():
        return {"the file": "did not end"}
    return (
        {_name(case): _outcome(case) for case in ElementTree.parse(report).iter("testcase")}
        if opened.exists()
        else None
    )


def _name(case: ElementTree.Element) -> str:
    return f"{case.get('classname', '').rpartition('.')[2]}: {case.get('name')}"


def _outcome(case: ElementTree.Element) -> str:
    return next((child.tag for child in case if child.tag in ("failure", "error", "skipped")), "passed")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("source", type=Path, help="folder of Scrapy's source")
    options.add_argument("--file", action="append", help="run this file of its tests; may be repeated")
    args = options.parse_args()
    source = args.source.resolve()
    files = [source / "tests" / name for name in args.file or ()] or sorted((source / "tests").glob("test_*.py"))
    passed = {"": 0, _OURS: 0}
    counted = 0
    for file in files:
        with tempfile.TemporaryDirectory() as scratch:
            theirs = outcomes(source, file, "", Path(scratch))
            if theirs is None:
                continue
            ours = outcomes(source, file, _OURS, Path(scratch)) or {}
        counted += 1
        for scheduler, found in (("", theirs), (_OURS, ours)):
            passed[scheduler] += sum(outcome == "passed" for outcome in found.values())
        print(
            f"{file.name}: {sum(one == 'passed' for one in theirs.values())} pass with Scrapy's scheduler", flush=True
        )
        for name, outcome in theirs.items():
            if ours.get(name) != outcome:
                print(f"  {name}: {outcome}, with ours {ours.get(name, 'not run')}", flush=True)
    print(f"{counted} files: {passed['']} tests pass with Scrapy's scheduler, {passed[_OURS]} with ours")


if __name__ == "__main__":
    main()
