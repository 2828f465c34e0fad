"""For each goal of a crawl, the time that is left until the crawl reaches it, and what the estimate is based on."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from trapline.units import byte_rate, three_digits


class Speed(NamedTuple):
    """The speed of a crawl: in the last seconds, and since its beginning."""

    pages_per_s: float
    bytes_per_s: float
    seconds: float  # of crawling


def goals(
    options: Mapping[str, Any], totals: Mapping[str, float], speed: Speed, pace: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """Return the goals of a crawl in the order in which they are reached, those without an estimate last.

    `pace`: what limits the crawl (crawler/speed/pace.py), with the time of all pages that wait and are to be fetched.
    """
    found = [
        _pages(_limit(options, "max_pages"), totals["pages"], speed, pace),
        _time(_limit(options, "max_seconds"), speed.seconds),
        _bytes(_limit(options, "max_bytes"), totals["bytes"], speed),
        _waiting(totals, pace),
    ]
    known = [goal for goal in found if goal is not None]
    return sorted(known, key=lambda goal: math.inf if goal["seconds_left"] is None else goal["seconds_left"])


def _limit(options: Mapping[str, Any], name: str) -> float:
    """Return the limit, which is infinite if there is none."""
    value = options.get(name)
    return math.inf if value is None else float(value)


def _pages(of: float, done: float, speed: Speed, pace: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if of == math.inf:
        return None
    left = max(of - done, 0.0)
    if pace is not None and pace["pages"] >= left > 0.0:
        return _goal("max-pages", done, of, float(pace["seconds"]), _basis(pace))
    seconds = 0.0 if not left else left / speed.pages_per_s if speed.pages_per_s > 0.0 else None
    return _goal("max-pages", done, of, seconds, f"{three_digits(speed.pages_per_s)} pages/s now")


def _time(of: float, done: float) -> dict[str, Any] | None:
    return None if of == math.inf else _goal("max-time", done, of, max(of - done, 0.0), "the clock of the crawl")


def _bytes(of: float, done: float, speed: Speed) -> dict[str, Any] | None:
    if of == math.inf:
        return None
    left = max(of - done, 0.0)
    seconds = 0.0 if not left else left / speed.bytes_per_s if speed.bytes_per_s > 0.0 else None
    return _goal("max-bytes", done, of, seconds, f"{byte_rate(speed.bytes_per_s)} now")


def _waiting(totals: Mapping[str, float], pace: Mapping[str, Any] | None) -> dict[str, Any]:
    """All pages that wait now: the end of a crawl that finds no more pages."""
    done, of = totals["pages"], totals["pages"] + totals["waiting"]
    if not totals["waiting"]:
        return _goal("waiting-pages", done, of, 0.0, "no page waits")
    if pace is None:
        return _goal("waiting-pages", done, of, None, "the crawl has not reported its pace yet")
    scale = totals["waiting"] / pace["pages"] if pace["pages"] else 1.0
    return _goal("waiting-pages", done, of, float(pace["seconds"]) * max(scale, 1.0), _basis(pace))


def _basis(pace: Mapping[str, Any]) -> str:
    """Return why the pages take this time: the text of the pace, without the time."""
    text = str(pace.get("text", pace.get("limit", "")))
    for words in (": at least ", ": about "):
        text = text.partition(words)[0]
    return text


def _goal(goal: str, done: float, of: float, seconds_left: float | None, basis: str) -> dict[str, Any]:
    return {"goal": goal, "done": done, "of": of, "seconds_left": seconds_left, "basis": basis}
