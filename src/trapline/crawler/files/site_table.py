"""The numbers of all sites of a crawl, for people: pages, delays, estimates, failures. The dashboard shows them as a table.

DIR/live/sites     written by the process that crawls, when the dashboard asks for it (`write`)
DIR/snapshot/N     otherwise the newest snapshot has them, as of its moment

Both are read without compiled code: the files say what their fields are. A row is a site, in the order of the table `site`.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.crawler.files.layout import SNAPSHOT

if TYPE_CHECKING:
    from trapline.frontier import Frontier

LIVE_SITES = Path("live", "sites")
LIVE, IN_SNAPSHOT, NONE = "live", "snapshot", "none"
# What a site does. `idle`: no page waits. `budget`: its budget is used up, or it is abandoned.
STATES = ("idle", "visiting", "ready", "site_delay", "address_delay", "back_off", "dns", "budget")
IDLE, VISITING, READY, SITE_DELAY, ADDRESS_DELAY, BACK_OFF, DNS, BUDGET = range(len(STATES))
# BY_DELAY and MOST_PER_VISIT of frontier/layout.py, which imports compiled code. A test compares them.
_BY_DELAY, _MOST_PER_VISIT = 0, 1000
_UNLIMITED = np.iinfo(np.int32).max
# What numpy raises for damaged files, and for fields that another version does not have.
_UNREADABLE = (OSError, ValueError, TypeError, LookupError, EOFError, SyntaxError, MemoryError, TokenError)

Array = NDArray[Any]
ROW = np.dtype(
    [
        ("next_at", "f8"),  # from when the site may be visited; NaN: at once, or not known
        ("delay_s", "f8"),
        ("response_s", "f8"),  # NaN: not measured; so is connection_s
        ("connection_s", "f8"),
        ("waiting", "i4"),  # pages that wait and may be fetched
        ("known", "i4"),
        ("taken", "i4"),  # pages fetched, or being fetched
        ("budget", "i4"),  # largest number of pages; -1: unlimited
        ("per_connection", "i4"),  # k; 0: unlimited
        ("requests", "i4"),  # that the server allows per connection; 0: not known
        ("failures", "i4"),  # failed visits in a row
        ("group", "i4"),  # row of the table `address`; -1: not known
        ("state", "i4"),  # index of STATES
    ]
)


class SiteTable(NamedTuple):
    source: str  # LIVE, IN_SNAPSHOT or NONE
    at: float  # when the numbers were true
    took_s: float  # how long the loop was held up
    rows: Array  # ROW


EMPTY = SiteTable(NONE, 0.0, 0.0, np.zeros(0, ROW))


# ---- The process that crawls.


def write(folder: Path, frontier: "Frontier", now: float) -> None:
    """Write DIR/live/sites. The numbers are copied at once, and a thread writes the file. What cannot be written is lost."""
    began = time.perf_counter()
    rows = site_rows(frontier.site_records, frontier.queue_records, frontier.group_records, frontier.run_record, now)
    table = SiteTable(LIVE, time.time(), time.perf_counter() - began, rows)
    threading.Thread(target=_save, args=(folder / LIVE_SITES, table), daemon=True).start()


def _save(path: Path, table: SiteTable) -> None:
    fresh = path.with_name(f"{path.name}.new")
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        with fresh.open("wb") as file:
            np.save(file, np.array([table.at, table.took_s]))
            np.save(file, table.rows)
        fresh.rename(path)


def site_rows(site: Array, queue: Array, group: Array, run: Any, now: float) -> Array:
    """Return the rows of a frontier's sites. The arguments are its arrays (frontier/layout.py)."""
    rows = np.zeros(len(site), ROW)
    for name in ("known", "taken", "failures", "group"):
        rows[name] = site[name]
    common = int(run["pages_per_site"]) or _UNLIMITED
    budget = np.where(site["budget"] >= 0, site["budget"], common)
    rows["budget"] = np.where(budget == _UNLIMITED, -1, budget)
    rows["waiting"] = np.minimum(queue["waiting"].sum(axis=1), np.maximum(budget - site["taken"], 0))
    rows["per_connection"] = np.where(site["per_connection"] >= 0, site["per_connection"], run["per_connection"])
    rows["requests"] = np.where(site["requests"] < _MOST_PER_VISIT, site["requests"], 0)
    small = site["known"] < run["small_site_pages"]
    delay_s = np.where(small, run["small_site_delay_s"], run["delay_s"])
    rows["delay_s"] = np.where(np.isnan(site["delay_s"]), delay_s, site["delay_s"])
    rows["response_s"] = np.where(site["responses"] > 0, site["response_s"], np.nan)
    rows["connection_s"] = np.where(site["connections"] > 0, site["connection_s"], np.nan)
    _add_states(rows, site, queue, group, now)
    return rows


def _add_states(rows: Array, site: Array, queue: Array, group: Array, now: float) -> None:
    """Set what each site does and until when it waits, by the first rule that applies (as frontier/explain.py)."""
    resolved = site["group"] >= 0
    own = group[np.where(resolved, site["group"], 0)] if len(group) else np.zeros(len(site), group.dtype)
    until = np.maximum(site["ready_at"], own["ready_at"])
    by_site = site["ready_at"] >= own["ready_at"]
    has_pages = queue["waiting"].any(axis=1)
    rules = (
        (site["visit"] >= 0, VISITING),
        (~has_pages, IDLE),
        (rows["waiting"] == 0, BUDGET),
        (~resolved, DNS),
        (own["visit"] >= 0, ADDRESS_DELAY),
        (until <= now, READY),
        (by_site & (site["delay_rule"] == _BY_DELAY), SITE_DELAY),
        (by_site, BACK_OFF),
    )
    rows["state"] = np.select([rule for rule, _ in rules], [state for _, state in rules], ADDRESS_DELAY)
    waits = np.isin(rows["state"], (SITE_DELAY, ADDRESS_DELAY, BACK_OFF)) & (until > now)
    rows["next_at"] = np.where(waits, until, np.nan)


# ---- The reader.


def read(folder: Path) -> SiteTable:
    """Return the newest table of a crawl: that of the running process, or that of a snapshot."""
    found = [table for table in (_live(folder), _of_snapshot(folder)) if table is not None]
    return max(found, key=lambda table: table.at, default=EMPTY)


def _live(folder: Path) -> SiteTable | None:
    try:
        with (folder / LIVE_SITES).open("rb") as file:
            at, took_s = np.load(file, allow_pickle=False).tolist()
            rows = np.load(file, allow_pickle=False)
    except _UNREADABLE:
        return None
    is_ours = rows.dtype == ROW and rows.ndim == 1 and isinstance(at, float) and isinstance(took_s, float)
    if not is_ours or not np.isin(rows["state"], range(len(STATES))).all():
        return None
    return SiteTable(LIVE, at, took_s, rows)


def _of_snapshot(folder: Path) -> SiteTable | None:
    for place in _snapshots(folder):
        with suppress(*_UNREADABLE):
            site, queue, group, run = (
                np.load(place / f"{name}.npy", mmap_mode="r", allow_pickle=False)
                for name in ("site", "queue", "group", "run")
            )
            now = float(run[0]["now"])
            return SiteTable(IN_SNAPSHOT, now, 0.0, site_rows(site, queue, group, run[0], now))
    return None


def _snapshots(folder: Path) -> Iterator[Path]:
    """Yield the snapshots of the frontier, the newest first."""
    with suppress(OSError):
        names = [entry.name for entry in (folder / SNAPSHOT).iterdir() if entry.name.isascii() and entry.name.isdigit()]
        for name in sorted(names, key=int, reverse=True):
            yield folder / SNAPSHOT / name / "frontier"
