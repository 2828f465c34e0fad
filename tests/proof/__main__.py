"""Run the proofs and write docs/proof.md: `python -m tests.proof [SECTION ...]`.

The result of each section is stored in docs/results/proof/ as JSON. The page is written from all stored results, each with its own
date and commit, so that one section can be repeated alone. The exit code is 1 if a claim does not hold.
"""

import datetime
import importlib
import json
import os
import platform
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from tests.proof.section import ROOT, Finding, Section, say

# The order of the sections on the page. The longest one is last.
NAMES = (
    "suite",
    "scheduling",
    "goals",
    "politeness",
    "durability",
    "adapters",
    "conformance",
    "hostile",
    "hostile_peers",
    "surfaces",
    "dashboard",
    "scale",
    "soak",
)
RESULTS = ROOT / "docs" / "results" / "proof"
PAGE = ROOT / "docs" / "proof.md"
INTRODUCTION = """# How Trapline is tested

This page lists claims about Trapline, how each claim is tested, and what was measured. `make proof` runs all sections and writes the
page. Each section names its date, its commit and its machine. `make proof PROOF=durability` repeats one section. `make test` contains a
short form of most sections.

A claim *holds*, *FAILS*, or was *not tried*. It is not tried if something that the test needs is missing, such as recorded data or a
program; the table then names what is missing.

The dependencies of Trapline were not audited for known vulnerabilities, because `pip-audit` needs network access, which the test
machine does not have. The section "Interfaces to the outside" checks only that the installed versions are those of the lock file.
"""


def main(wanted: list[str]) -> int:
    unknown = sorted(set(wanted) - set(NAMES))
    if unknown:
        print(f"no such section: {', '.join(unknown)}; there are: {', '.join(NAMES)}", file=sys.stderr)
        return 2
    RESULTS.mkdir(exist_ok=True)
    for name in wanted or NAMES:
        result = result_of(name, section_of(name))
        (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
        PAGE.write_text(page())
    return 1 if any(failures(result) for result in results().values()) else 0


def section_of(name: str) -> Section:
    return importlib.import_module(f"tests.proof.{name}").SECTION


def result_of(name: str, section: Section) -> dict[str, Any]:
    print(f"== {name}: {section.title}", file=sys.stderr, flush=True)
    at, began, findings = commit(), time.monotonic(), list[Finding]()
    try:
        for finding in section.run(True):
            findings.append(finding)
            say(f"{mark(finding.holds)}: {finding.claim} [{finding.measured}]")
    except Exception:
        traceback.print_exc()
        findings.append(Finding("The section runs to its end.", traceback.format_exc().strip().splitlines()[-1], False))
    return {
        "findings": [finding._asdict() for finding in findings],
        "minutes": round((time.monotonic() - began) / 60, 1),
        "date": datetime.date.today().isoformat(),
        "commit": at,
        "machine": machine(),
    }


def commit() -> str:
    """Return the commit that was run, and whether files other than the page and the results differed from it."""
    head = _git("rev-parse", "--short", "HEAD")
    written = [f":!{path.relative_to(ROOT)}" for path in (PAGE, RESULTS)]
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", *written)
    return (head + ("-dirty" if changed else "")) or "unknown"


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def machine() -> str:
    linux = platform.release().split("-")[0]
    cores = len(os.sched_getaffinity(0))
    return f"{platform.machine()}, {cores} cores, {memory_gib():.0f} GiB, Linux {linux}, Python {platform.python_version()}"


def memory_gib() -> float:
    first = Path("/proc/meminfo").read_text().splitlines()[0]
    return int(first.split()[1]) / 2**20


def results() -> dict[str, dict[str, Any]]:
    """Return the stored results in the order of the page."""
    paths = {name: RESULTS / f"{name}.json" for name in NAMES}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


def failures(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [finding for finding in result["findings"] if finding["holds"] is False]


def mark(holds: bool | None) -> str:
    return {True: "holds", False: "FAILS", None: "not tried"}[holds]


def page() -> str:
    done = results()
    parts = [INTRODUCTION, overview(done)]
    for name in NAMES:
        parts.append(chapter(section_of(name), done.get(name)))
    return "\n".join(parts)


def overview(done: dict[str, dict[str, Any]]) -> str:
    failed = [(name, finding) for name, result in done.items() for finding in failures(result)]
    findings = [finding for result in done.values() for finding in result["findings"]]
    tested = sum(finding["holds"] is not None for finding in findings)
    minutes = sum(result["minutes"] for result in done.values())
    lines = [
        f"{tested} claims were tested in {minutes:.0f} minutes; {len(failed)} of them fail. {len(findings) - tested} were not tried.",
        *(f"Not run: {section_of(name).title}." for name in NAMES if name not in done),
        "",
    ]
    lines += [f"- **Fails** ({name}): {finding['claim']} {finding['measured']}" for name, finding in failed]
    return "\n".join([*lines, ""] if failed else lines)


def chapter(section: Section, result: dict[str, Any] | None) -> str:
    lines = [f"## {section.title}", "", section.method.strip(), ""]
    if result is None:
        return "\n".join([*lines, "Not run.", ""])
    lines += [f"{result['date']}, commit {result['commit']}, {result['minutes']} minutes on {result['machine']}.", ""]
    lines += ["| claim | measured | |", "|---|---|---|"]
    lines += [f"| {cell(f['claim'])} | {cell(f['measured'])} | {mark(f['holds'])} |" for f in result["findings"]]
    return "\n".join([*lines, ""])


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
