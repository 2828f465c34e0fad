"""The parts of a section of docs/proof.md: a method, and findings that hold or do not.

A section yields each finding as soon as it is measured, so that a later failure does not lose earlier ones.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Finding(NamedTuple):
    claim: str  # one sentence that can be true or false
    measured: str  # the figures, as text
    holds: bool | None  # None: not tried; `measured` says why


class Section(NamedTuple):
    """`run(full)` runs the proof at full size if True, and its short form of a few seconds if False."""

    title: str
    method: str  # how it is measured: a paragraph for a reader who wants to repeat it
    run: Callable[[bool], Iterator[Finding]]


def say(line: str) -> None:
    """Show progress on the terminal. It never becomes part of the page."""
    print(f"  {line}", file=sys.stderr, flush=True)


def by_pytest(claim: str, *arguments: str, env: Mapping[str, str] | None = None) -> Finding:
    """Return a finding by tests that exist already, slow ones included. It holds if at least one test passed and none failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"TRAPLINE_PROOF": "1"} | (env or {}), capture_output=True, text=True
    )
    lines = [line for line in done.stdout.splitlines() if re.search(r"\d+ (passed|failed|error)", line)]
    if done.returncode != 0:
        say(done.stdout[-40_000:] + done.stderr[-2_000:])
    measured = lines[-1].strip("= ") if lines else f"pytest exited with {done.returncode}"
    return Finding(claim, re.sub(r" in [\d.]+s.*$", "", measured), done.returncode == 0 and " passed" in measured)
