"""Whether a crawl has anything left to do: asked before a resume, of its folder alone, so that nothing is touched for nothing."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from trapline.crawl.ends import BYTES, DRAINED, PAGES, SECONDS
from trapline.crawl.folder import meta, opened
from trapline.crawl.options import CrawlOptions
from trapline.crawl.store.folder import SUMMARY

_GOALS = {
    PAGES: ("max_pages", "--max-pages"),
    SECONDS: ("max_seconds", "--max-time"),
    BYTES: ("max_bytes", "--max-bytes"),
}


class Ended(NamedTuple):
    line: str  # for the user
    summary: dict[str, Any]


def ended(folder: Path, continuous: bool = False, **goals: float) -> Ended | None:
    """The end that the crawl has come to, if a resume with these goals would fetch nothing. `continuous`: it would fetch pages again."""
    with closing(opened(folder)) as database:
        kept = meta(database)
    summary = _whole_summary(folder, kept)
    if summary is None:
        return None
    why = kept.get("stopped_by")
    if why == DRAINED and continuous:
        return None
    if why == DRAINED:
        return Ended(f"{folder}: the crawl has ended: nothing is left to fetch", summary)
    if why not in _GOALS:
        return None
    name, option = _GOALS[why]
    goal = getattr(CrawlOptions.from_json(kept["options"]), name)
    if goals.get(name, goal) > goal:
        return None
    return Ended(f"{folder}: the crawl has reached its {option} {goal:,.15g}; go on with a higher {option}", summary)


def _whole_summary(folder: Path, kept: dict[str, str]) -> dict[str, Any] | None:
    """The summary, if it is of the crawl's last run: else that one was killed, or goes on."""
    try:
        summary: dict[str, Any] = json.loads((folder / SUMMARY).read_text())
        return summary if summary["runs"] == int(kept["runs"]) and "closed" in kept else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
