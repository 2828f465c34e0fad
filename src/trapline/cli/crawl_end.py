"""What is said of a crawl when it has ended: what came of it, where it did not go, and where to look. It reads the summary."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trapline.terminal import say_text
from trapline.units import bytes_shown, counted, duration, three_digits


def has_ended(folder: Path, given: dict[str, Any], goals: dict[str, float]) -> bool:
    """Whether there is nothing to go on with; then that is said."""
    from trapline.crawl.ended import ended

    over = ended(folder, given["continuous"], **goals)
    if over is not None:
        _print(over.line, over.summary, given)
    return over is not None


def say(summary: dict[str, Any], folder: Path, given: dict[str, Any]) -> None:
    _print(closing_lines(summary, folder), summary, given)


def _print(lines: str, summary: dict[str, Any], given: dict[str, Any]) -> None:
    if given["as_json"]:
        say_text(json.dumps(summary, indent=1))
    elif not given["quiet"]:
        say_text(lines)


def closing_lines(summary: dict[str, Any], folder: Path) -> str:
    """What came of it, and where to look."""
    from trapline.crawl.ends import BY_HAND

    return "\n".join(
        (
            f"{counted(summary['pages_fetched'], 'page')}, {bytes_shown(summary['bytes'])}, {counted(summary['errors'], 'error')} in"
            f" {duration(summary['seconds'])}: {three_digits(summary['pages_per_second'])} pages/s;"
            f" stopped by: {stopped_by(summary['stopped_by'])}",
            f"{counted(summary['urls_known'], 'URL')} known on {counted(summary['sites'], 'site')};"
            f" politeness violations: {summary['politeness_violations']}",
            *_fetched_again(summary),
            *_not_gone_to(summary, folder),
            f"in {folder}: {_files(folder)}. See it: trapline report {folder}"
            + (f"; go on: trapline crawl --resume {folder}" if summary["stopped_by"] in BY_HAND else ""),
        )
    )


def _files(folder: Path) -> str:
    from trapline.parallel.manifest import is_parallel

    return f"crawl.db, {'partition-0/warc/, ...' if is_parallel(folder) else 'warc/, index.cdxj'}, summary.json"


def stopped_by(why: str | None) -> str:
    """As the user knows it: by the option that was typed.

    >>> stopped_by("max-seconds"), stopped_by("drained")
    ('--max-time', 'nothing was left to fetch')
    """
    from trapline.report.live_table import ENDS

    return ENDS.get(why or "", why or "nobody knows what")


def _fetched_again(summary: dict[str, Any]) -> Iterator[str]:
    again, popularity = summary["pages_refetched"], summary["popularity"]
    if popularity:
        unchanged = f"{summary['pages_unchanged']:,} not ({summary['not_modified']:,} by 304)"
        yield (
            f"fetched again: {counted(again, 'page')}, {summary['pages_changed']:,} changed, {unchanged};"
            f" {counted(summary['signals'], 'signal')}; popularity of pages by their {popularity}"
        )


def _not_gone_to(summary: dict[str, Any], folder: Path) -> Iterator[str]:
    from trapline.crawl.summary import GIVEN_UP, LEFT_OUT

    if summary["sites_given_up"]:
        given_up = counts(summary["sites_given_up_by_kind"], GIVEN_UP)
        yield f"sites given up: {given_up}. Why one was: trapline explain {folder} SITE"
    if summary["links_left_out"]:
        yield f"links left out: {counts(summary['links_left_out'], LEFT_OUT)}"


def counts(numbers: Mapping[str, int], words: Mapping[str, str]) -> str:
    """
    >>> counts({"dns": 1_200, "new": 3}, {"dns": "no address"})
    '1,200 (no address), 3 (new)'
    """
    return ", ".join(f"{amount:,} ({words.get(name, name)})" for name, amount in numbers.items())
