"""The overview of a crawl: what its database and its loop report, put together as the first view shows it.

The loop reports itself twice a second (live/status). If it does not, because the crawl has ended or is of an earlier version, the numbers
are those of the last commit. `goals` gives each goal of the crawl with the time that is left until the crawl reaches it.
"""

import math
import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from trapline.crawler.engine.records import CrawlProgress
from trapline.crawler.inspect.why_not_faster import why_not_faster
from trapline.dashboard.folder_reader import NEW, NOTHING, RUNNING, UNREADABLE, FolderReading, finite
from trapline.units import byte_rate, three_digits

_LIVE_WITHIN_S = 3.0  # an older report of the loop is not live
_WITHOUT_STATUS = {
    NEW: ("new", "The crawl has not begun yet."),
    RUNNING: ("unknown", "The crawl does not report what its connections do."),
}
_SUMS = ("pages", "errors", "bytes", "known", "waiting", "sites", "active", "quality")


class CrawlReading(NamedTuple):
    """Everything that one tick has read of a crawl."""

    folder: Path
    state: str
    stopped_by: str | None
    options: Mapping[str, Any]
    parts: Sequence[FolderReading]  # of the crawl, or of its partitions that have begun
    status: dict[str, Any] | None  # live/status
    part_statuses: Sequence[dict[str, Any] | None]
    at: float
    partitions: int = 1


_MOST = 1e300  # of a number in live/status


def overview(reading: CrawlReading, processor: Mapping[str, float | None]) -> dict[str, Any]:
    """Return the overview as JSON. `processor`: busy shares of loop and store, as of the last commits."""
    live = live_status(reading)
    progress, before = _together(part.progress for part in reading.parts), _together(p.before for p in reading.parts)
    if live is not None:
        progress = progress_of(live)
    rates = _rates(progress, before, live)
    disk, totals = _disk(reading), {name: getattr(progress, name) for name in _SUMS if name != "active"}
    speed = Speed(rates["pages_per_s"], rates["bytes_per_s"], progress.seconds)
    status = reading.status
    found = {
        "state": reading.state,
        "stopped_by": reading.stopped_by,
        "error": "",
        "at": progress.at or None,
        "age_s": max(reading.at - progress.at, 0.0) if progress.at else None,
        "seconds": progress.seconds,
        "live": live is not None,
        "doing": live.get("doing", "") if live else "",
        "paused": bool(live and live.get("paused")),
        "strategy": _strategy(reading.options),
        "totals": totals,
        "rates": {**rates, "pages_per_s_average": progress.pages / progress.seconds if progress.seconds else 0.0},
        "connections": {
            "active": progress.active if reading.state == RUNNING else 0,
            "limit": _most_connections(reading, live),
        },
        "disk": disk,
        "processor": {**processor, **_live_processor(live)},
        "goals": goals(reading.options, _to_fetch(totals, live), speed, _pace(reading, live))
        if reading.state == RUNNING
        else [],
        "speed": _speed_answer(status, reading.options, disk["free"], reading.state, reading.at),
        "errors": status.get("errors") or {} if status else {},
        "abandoned": _added(part.abandoned for part in reading.parts),
        "rejected": _added(part.rejected for part in reading.parts),
        "busiest": live.get("busiest") or [] if live else [],
        "backlog": live.get("store") if live else None,
        "notes": _notes(reading, live),
    }
    cleaned: dict[str, Any] = finite(found)
    return cleaned


def unreadable(folder: Path, error: str) -> dict[str, Any]:
    """Return the overview of a crawl that cannot be read."""
    empty = overview(CrawlReading(folder, NEW, None, {}, (), None, (), time.time()), {})
    speed = {"limit": "unreadable", "sentence": error, "shares": {}, "help": []}
    return {**empty, "state": UNREADABLE, "error": error, "speed": speed}


def live_status(reading: CrawlReading) -> dict[str, Any] | None:
    """Return what the loop reports, if it runs and has reported in the last seconds."""
    status = reading.status
    if reading.state != RUNNING or status is None or not _is_whole(status):
        return None
    return status if reading.at - status["at"] < _LIVE_WITHIN_S else None


def _is_whole(status: Mapping[str, Any]) -> bool:
    """Return whether a record has the numbers that the overview needs. That of another version, or of a crawl that failed at its
    start, may not have them."""
    numbers = [status.get(name) for name in ("at", "pages_per_s", "bytes_per_s")]
    progress, connections = status.get("progress"), status.get("connections")
    if not isinstance(progress, dict) or not isinstance(connections, dict):
        return False
    states = connections.get("now") or {}
    if not isinstance(states, dict):
        return False
    numbers += [progress.get(name) for name in CrawlProgress._fields] + [connections.get("limit"), *states.values()]
    return all(isinstance(value, int | float) and abs(value) < _MOST for value in numbers)


def progress_of(live: Mapping[str, Any]) -> CrawlProgress:
    """Return the progress that the loop reports, without what another version may add."""
    return CrawlProgress(*(live["progress"][name] for name in CrawlProgress._fields))


def _together(parts: Iterable[CrawlProgress]) -> CrawlProgress:
    every = list(parts) or [NOTHING]
    sums = {name: sum(getattr(progress, name) for progress in every) for name in _SUMS}
    return CrawlProgress(
        at=max(progress.at for progress in every), seconds=max(progress.seconds for progress in every), **sums
    )


def _rates(last: CrawlProgress, before: CrawlProgress, live: Mapping[str, Any] | None) -> dict[str, float]:
    if live is not None:
        return {name: float(live[name]) for name in ("pages_per_s", "bytes_per_s")}
    passed = max(last.seconds - before.seconds, 1e-9)
    return {"pages_per_s": (last.pages - before.pages) / passed, "bytes_per_s": (last.bytes - before.bytes) / passed}


def _most_connections(reading: CrawlReading, live: Mapping[str, Any] | None) -> int:
    """Return the largest number of connections of all processes together."""
    if live is not None and (live.get("connections") or {}).get("limit"):
        return int(live["connections"]["limit"])
    return int(reading.options.get("connections", 0)) * max(len(reading.parts), 1)


def _disk(reading: CrawlReading) -> dict[str, int]:
    room = _room(reading.folder.absolute())
    return {
        "free": room.f_bavail * room.f_frsize,
        "total": room.f_blocks * room.f_frsize,
        "crawl_db": sum(part.database_bytes for part in reading.parts),
        "warc": sum(part.warc_bytes for part in reading.parts),
    }


def _room(folder: Path) -> os.statvfs_result:
    """Return the space on the disk of a folder, or of the nearest one above it that this user may look at."""
    for path in (folder, *folder.parents[:-1]):
        with suppress(OSError):
            return os.statvfs(path)
    return os.statvfs("/")


def _live_processor(live: Mapping[str, Any] | None) -> dict[str, float]:
    loop = (live.get("processor") or {}).get("loop") if live else None
    return {} if loop is None else {"loop": float(loop)}


def _to_fetch(totals: Mapping[str, float], live: Mapping[str, Any] | None) -> Mapping[str, float]:
    """Return the totals without the waiting pages of blocked and abandoned sites and above budgets, which no estimate may count."""
    pages = live["connections"].get("pages") if live else None
    if not isinstance(pages, int) or not 0 < pages < totals["waiting"]:
        return totals
    return {**totals, "waiting": pages}


def _pace(reading: CrawlReading, live: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the pace of the crawl; of several partitions, that of the slowest, for the pages of all."""
    if live is not None:
        found: dict[str, Any] | None = live.get("pace")
        return found
    paces = [part.pace for part in reading.parts if part.pace is not None]
    if not paces:
        return None
    slowest = max(paces, key=lambda pace: pace["seconds"])
    return {**slowest, "pages": sum(pace["pages"] for pace in paces)}


def _strategy(options: Mapping[str, Any]) -> str:
    ranks = ((options.get("page_rank"), "page rank"), (options.get("site_rank"), "site rank"))
    replaced = " and ".join(f"{kind} {name}" for name, kind in ranks if name)
    return str(options.get("strategy", "")) + (f" with {replaced}" if replaced else "")


def _notes(reading: CrawlReading, live: Mapping[str, Any] | None) -> list[str]:
    found = []
    if reading.state == RUNNING and live is None and reading.status is not None:
        found.append("The crawl has not reported for some seconds; it may be suspended, or its machine very busy.")
    if reading.status is not None and reading.status.get("failure") and reading.state != RUNNING:
        found.append(f"The crawl failed: {reading.status['failure']}")
    return found


def _added(tables: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for table in tables:
        total.update(table)
    return dict(total.most_common())


def _speed_answer(
    status: Mapping[str, Any] | None, options: Mapping[str, Any], disk_free: int, state: str, now: float
) -> dict[str, Any]:
    """Return what limits the crawl, one sentence about it, connections by state, and what would help. `status`: the last report of the
    loop; a running crawl of an earlier version has none."""
    if status is None and state in _WITHOUT_STATUS:
        limit, sentence = _WITHOUT_STATUS[state]
        return {"limit": limit, "sentence": sentence, "shares": {}, "help": []}
    age_s = 0.0 if status is None else max(now - status["at"], 0.0)
    answer = why_not_faster(status, options, disk_free, state, age_s).as_json()
    return answer if state == RUNNING else answer | {"shares": {}}  # connections that are closed now


# ---- For each goal of the crawl: the time that is left until the crawl reaches it, and what the estimate is based on


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
