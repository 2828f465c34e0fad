"""The answer to the question why a crawl is not faster: what limits it, one sentence, and what would help.

The answer follows from a record of live/status, the options of the crawl, the free space on its disk, and whether it runs.
`trapline status`, the view of a running crawl and the dashboard show the same answer. This module reads no file, and
imports no array, so that any process may use it. speed_suggestions.py says what would help.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from trapline.crawler.inspect.speed_suggestions import Suggestion, suggestions
from trapline.crawler.speed.connection_states import STATES
from trapline.units import byte_rate, bytes_shown, counted, duration

# What limits a crawl. Names are part of `status --json`.
FAILED, DISK, DRAINED, GOAL, STOPPED, BROKEN_OFF = "failed", "disk", "drained", "goal", "stopped", "broken-off"
SILENT, PREPARING, PAUSED, STARTING, REFRESH = "silent", "preparing", "paused", "starting", "refresh"
STORE, HANDLER, BANDWIDTH, PROCESSOR = "store", "handler", "bandwidth", "processor"
CONNECTIONS, ANSWERS, DNS, ROBOTS, BACK_OFF = "connections", "answers", "dns", "robots", "back-off"
ADDRESS_DELAY, FEW_SITES, SITE_DELAY, PER_CONNECTION = "address-delay", "few-sites", "site-delay", "per-connection"

RUNNING, ENDED = "running", "ended"  # states of a folder, as inspect/folder_status.py has them
_LEAST_DISK = 64 << 20  # bytes: the store commits up to 16 MB at once, and snapshots come on top
_SILENT_S = 15.0  # a snapshot of a large crawl takes seconds, in which nothing is written
_BUSY_LOOP = 0.95  # share of a processor core
_WORTH = 1.5  # the least factor by which k makes the crawl faster, if it is to be the limit
_IN_USE = ("fetching", "connecting", "robots", "bandwidth")
_LIMIT_OF = {"dns": DNS, "robots": ROBOTS, "back_off": BACK_OFF, "address_delay": ADDRESS_DELAY}


class SpeedAnswer(NamedTuple):
    limit: str
    sentence: str
    shares: dict[str, int]  # connections by state, of the last seconds
    help: list[Suggestion]

    def as_json(self) -> dict[str, Any]:
        return {**self._asdict(), "help": [one._asdict() for one in self.help]}


def why_not_faster(
    status: Mapping[str, Any] | None, options: Mapping[str, Any], disk_free: int, state: str, age_s: float = 0.0
) -> SpeedAnswer:
    """Return the answer. `status`: the record of live/status, if there is one. `options`: those of the crawl, as `meta` has them.
    `disk_free`: bytes. `state`: that of the folder. `age_s`: seconds since the record was written."""
    found = Situation(status or {}, options)
    limit, sentence = (
        _why_not_running(found, disk_free, state)
        or _why_not_crawling(found, disk_free, age_s)
        or _why_held_up(found)
        or _why_busy(found)
        or _why_waiting(found)
    )
    return SpeedAnswer(limit, sentence, found.shares, suggestions(limit, found.what_ifs, options, found.is_one_site))


class Situation:
    """A record of live/status, with names for the parts that decide."""

    def __init__(self, status: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        self.status, self.options = status, options
        self.connections: Mapping[str, Any] = status.get("connections") or {}
        self.waiting: Mapping[str, Any] = status.get("waiting") or {}
        self.limit: int = self.connections.get("limit") or options.get("connections", 0)
        self.shares: dict[str, int] = {name: (self.connections.get("lately") or {}).get(name, 0) for name in STATES}
        self.progress: Mapping[str, Any] = status.get("progress") or {}
        self.what_ifs: list[Mapping[str, Any]] = status.get("what_if") or []
        self.pace: Mapping[str, Any] = status.get("pace") or {}

    def count(self, name: str) -> int:
        """Return a number about the sites with waiting pages."""
        return self.waiting.get(name) or 0

    def number(self, name: str) -> int:
        return self.progress.get(name) or 0

    @property
    def is_one_site(self) -> bool:
        return self.count("sites") == 1

    @property
    def in_demand(self) -> int:
        """Connections for which there is a site."""
        return self.limit - self.shares["nothing_to_do"] - self.shares["paused"]

    @property
    def pausing(self) -> int:
        """Visits in the pause between two pages."""
        others = ("fetching", "bandwidth", "connecting", "robots", "store", "handler")
        return max(self.number("active") - sum(self.shares[name] for name in others), 0)

    @property
    def next_s(self) -> str:
        seconds = self.waiting.get("next_s")
        if seconds is None:
            return ""
        return f"; the next visit is in {duration(seconds) if seconds >= 1.0 else 'less than a second'}"

    @property
    def more_sites(self) -> str:
        """The sites that could be visited now. Of several sites of one address, only one could."""
        what = "site" if self.count("sites") == self.count("addresses") else "address"
        number = self.count("ready_addresses")
        return f"{number:,} more {what}{'' if number == 1 else 's' if what == 'site' else 'es'} could be visited now"

    def of_all(self, *states: str) -> str:
        """Return the connections in these states, as the subject of a sentence."""
        number, all_of_them = sum(self.shares[name] for name in states), self.limit
        if number < all_of_them or all_of_them == 1:
            return f"{number:,} of {all_of_them:,} connections"
        return "Both connections" if all_of_them == 2 else f"All {all_of_them:,} connections"

    def share(self, *states: str) -> float:
        """Return the share of the connections in these states. Connections that were paused seconds ago do not count."""
        return sum(self.shares[name] for name in states) / max(self.limit - self.shares["paused"], 1)


_Answer = tuple[str, str] | None

# ---- A crawl that does not run.

_ENDS = {
    "drained": (DRAINED, "Nothing is left to fetch."),
    "max-pages": (GOAL, "The crawl has ended, because it has reached --max-pages."),
    "max-bytes": (GOAL, "The crawl has ended, because it has reached --max-bytes."),
    "max-time": (GOAL, "The crawl has ended, because it has reached --max-time."),
    "interrupted": (STOPPED, "The crawl was stopped by Ctrl-C."),
    "terminated": (STOPPED, "The crawl was stopped by SIGTERM."),
}
_FULL = "the disk is full"


def _why_not_running(found: Situation, disk_free: int, state: str) -> _Answer:
    if state == RUNNING:
        return None
    failure: str = found.status.get("failure") or ""
    if _FULL in failure:
        return DISK, f"The crawl has stopped because {failure[failure.index(_FULL) :]}."
    if failure:
        return FAILED, f"The crawl has failed: {failure}."
    if state == ENDED:
        why = found.status.get("stopped_by") or ""
        return _ENDS.get(why) or (STOPPED, f"The crawl was stopped{f' ({why})' if why else ''}.")
    if disk_free < _LEAST_DISK:
        return DISK, f"The crawl has stopped, and only {bytes_shown(disk_free)} are free on its disk."
    return BROKEN_OFF, "The crawl was broken off: its process has ended without closing the folder."


# ---- A crawl that runs, but does not crawl.


def _why_not_crawling(found: Situation, disk_free: int, age_s: float) -> _Answer:
    status, phase, doing = found.status, found.status.get("phase"), found.status.get("doing") or ""
    if not status:
        return STARTING, "The crawl has not written its status yet."
    if age_s > _SILENT_S:
        return (
            SILENT,
            f"The crawl has not written its status for {duration(age_s)}: its process is suspended or very busy.",
        )
    if phase in ("stopping", "closing"):
        return STOPPED, f"The crawl is ending: {doing.removeprefix('closing: ') or phase}."
    if status.get("paused") or phase == "paused":
        return PAUSED, "The crawl is paused, and sends no request."
    if phase == "preparing":
        has_begun = found.number("pages") or found.number("active")  # in another run, or another partition
        what = "starting" if has_begun else "preparing its first visit"
        return PREPARING, f"The crawl is {what}: {doing or 'it has just begun'}."
    if disk_free < _LEAST_DISK:
        return DISK, f"Only {bytes_shown(disk_free)} are free on the disk, and the crawl ends when the disk is full."
    return _why_done(found)


def _why_done(found: Situation) -> _Answer:
    """Return why there is nothing to fetch besides what is under way, or None."""
    goal = found.status.get("goal")
    if goal is not None and goal - found.number("pages") <= found.number("active"):
        return GOAL, "The last pages of --max-pages are being fetched."
    if 2 * found.shares["paused"] > found.limit:  # a mean over seconds
        return STARTING, "The crawl has just been continued after a pause: the first visits are on their way."
    if found.count("sites") or found.connections.get("lately") is None:
        return None
    if found.number("waiting"):  # the sites were counted up to a second ago
        return STARTING, "The crawl has just found pages: the first visits for them are on their way."
    if not found.number("pages") and not found.number("errors"):
        return STARTING, "The crawl has just begun: the first pages are on their way."
    if found.status.get("refetches") is not None:
        visits = counted(found.number("active"), "visit")
        return REFRESH, f"No new page is waiting. The crawl refetches pages that are due, in {visits}."
    return (
        DRAINED,
        f"Nothing is left to fetch except the pages of {counted(found.number('active'), 'visit')} under way.",
    )


# ---- A crawl that waits for itself.


def _why_held_up(found: Situation) -> _Answer:
    backlog = (found.status.get("store") or {}).get("bytes") or 0
    if found.share("store") >= 0.3:
        return STORE, f"{found.of_all('store')} wait for the store, which has {bytes_shown(backlog)} to write."
    if found.share("handler") >= 0.3:
        return HANDLER, f"{found.of_all('handler')} wait for the handler, which takes pages more slowly than they come."
    if found.share("bandwidth") >= 0.5:
        rates = {name: found.options.get(name) or float("inf") for name in ("bandwidth", "site_bandwidth")}
        rate = min(rates.items(), key=lambda item: item[1])
        return BANDWIDTH, f"{found.of_all('bandwidth')} wait for --{rate[0].replace('_', '-')} {byte_rate(rate[1])}."
    return None


def _why_busy(found: Situation) -> _Answer:
    """Return what limits a crawl that uses most of its connections, or None. A few of them may wait for the crawl itself."""
    if found.share(*_IN_USE, "store", "handler") < 0.8 or found.share("robots") > 0.6:
        return None
    loop = (found.status.get("processor") or {}).get("loop") or 0.0
    if loop >= _BUSY_LOOP:
        return PROCESSOR, f"The processor is the limit: the loop of the crawl uses {loop:.0%} of a core."
    if found.count("ready_addresses"):
        return CONNECTIONS, f"{found.of_all(*_IN_USE)} are in use, and {found.more_sites}."
    if found.shares["connecting"] > found.shares["fetching"]:
        return ANSWERS, f"{found.of_all('connecting')} are being opened, and the servers have not accepted them yet."
    return ANSWERS, f"{found.of_all(*_IN_USE)} wait for the answers of servers."


# ---- A crawl that waits for sites.


def _why_waiting(found: Situation) -> tuple[str, str]:
    name = _largest(found)
    if name == "nothing_to_do":
        return FEW_SITES, _few_sites(found)
    if name != "site_delay":
        return _LIMIT_OF[name], _waits(found, name)
    if found.number("active") >= 0.9 * found.limit and found.count("ready_addresses"):
        pauses = "most of them in the pause between two pages of a visit"
        return (
            CONNECTIONS,
            f"{found.of_all('fetching', 'connecting', 'site_delay')} are in use, {pauses}, and {found.more_sites}.",
        )
    if 2 * found.pausing > found.shares["site_delay"]:
        return SITE_DELAY, f"{found.of_all('site_delay')} wait for the pause between two pages of a visit."
    sentence = f"{found.of_all('site_delay')} wait for the delay of their sites"
    k = found.pace.get("visit_pages") or (found.options.get("rules") or {}).get("per_connection") or 1
    longer = max((one["factor"] for one in found.what_ifs if one["option"] == "per-connection"), default=1.0)
    if longer >= _WORTH and found.count("addresses") >= found.limit:
        return PER_CONNECTION, f"{sentence}, which follows every visit of {counted(k, 'page')}."
    return SITE_DELAY, f"{sentence}{found.next_s if not found.number('active') else ''}."


def _largest(found: Situation) -> str:
    """Return the state of most of the connections that wait. Connections without a site count only if the sites do not mostly wait
    for one thing that passes: a name server, a robots.txt or the end of a back-off."""
    for name in ("dns", "robots", "back_off"):
        if found.shares[name] and 2 * found.shares[name] > found.in_demand:
            return name
    names = ("nothing_to_do", "site_delay", "back_off", "robots", "dns", "address_delay")
    return max(names, key=lambda name: found.shares[name])


def _few_sites(found: Situation) -> str:
    pages, sites, addresses = found.number("waiting"), found.count("sites"), found.count("addresses")
    visits = (found.pace.get("visit_pages") or 0, found.pace.get("visit_every_s") or 0.0)
    where = "one site" if sites == 1 else f"{sites:,} sites"
    where += f" of {'one address' if addresses == 1 else f'{addresses:,} addresses'}" if addresses < sites else ""
    rate = f", which gives {counted(visits[0], 'page')} every {duration(visits[1])}" if sites == 1 and visits[0] else ""
    all_of_them = "the waiting page is" if pages == 1 else f"all {pages:,} waiting pages are"
    return f"{found.of_all('nothing_to_do')} have nothing to do: {all_of_them} on {where}{rate}."


def _waits(found: Situation, name: str) -> str:
    reasons: Mapping[str, int] = found.waiting.get("by_reason") or {}
    subject, number = found.of_all(name), reasons.get(name, 0)
    if name == "dns":
        return f"{subject} wait for DNS: name servers have not answered for {counted(number, 'site')} yet."
    if name == "robots":
        return f"{subject} wait for the robots.txt of their sites."
    if name == "address_delay":
        return f"{subject} wait for the delay of addresses that several sites share (--ip-delay)."
    if number >= found.count("addresses"):
        every = "The only site" if number == 1 else f"All {found.count('sites'):,} sites"
        return f"{every} with waiting pages {'is' if number == 1 else 'are'} in back-off after failed visits{found.next_s}."
    return f"{subject} wait for {counted(number, 'site')} in back-off after failed visits{found.next_s}."
