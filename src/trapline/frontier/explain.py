"""Why a page or a site has not been fetched yet: its ranks, what stands before it, until when it must wait and by
which rule.

It only reads the state. Python and O(n): for people, not for the loop.
"""

import math
from dataclasses import dataclass

import numpy as np

from trapline.frontier import kernels
from trapline.frontier.core import Core
from trapline.frontier.layout import (
    BACKLOG,
    BY_BACKOFF,
    BY_DELAY,
    BY_ORDER,
    CHOSEN,
    CONTEST,
    DYNAMIC,
    FETCHED,
    FRONT,
    GONE,
    LEASED,
    RESTING,
    REVISITED,
    UNKNOWN,
    UNRESOLVED,
    WAITING,
    Array,
    State,
)

MAY_BE_VISITED = "it may be visited"
WHY = {BY_DELAY: "delay of the site", BY_BACKOFF: "back-off", BY_ORDER: "told not to come before"}
LIFE = {
    UNKNOWN: "unknown",
    WAITING: "waiting",
    LEASED: "leased",
    FETCHED: "fetched",
    GONE: "gone",
    REVISITED: "revisited",
}


@dataclass(frozen=True, slots=True)
class SiteExplanation:
    """How a site stands at `now`."""

    site: int
    group: int
    waiting: int
    rank: float | None  # None: no page of it waits
    sites_before: int | None  # that would be visited before it; None: it cannot be visited now
    first_before: tuple[int, ...]  # the first of them
    wait_until: float  # -infinity: it need not wait; infinity: not for a moment, but for something to happen
    rule: str  # what it waits for

    def __str__(self) -> str:
        rank = "no rank" if self.rank is None else f"rank {self.rank:g}"
        before = "" if self.sites_before is None else f", {self.sites_before} sites before it"
        names = f" ({', '.join(map(str, self.first_before))})" if self.first_before else ""
        until = f" until {self.wait_until:g}" if math.isfinite(self.wait_until) else ""
        return f"site {self.site}: {self.waiting} pages waiting, {rank}{before}{names}; {self.rule}{until}"


@dataclass(frozen=True, slots=True)
class PageExplanation:
    """How a page stands at `now`."""

    page: int
    life: str
    key: float | None
    tries: int
    depth: int
    pages_before: int | None  # in the queue of its site
    rule: str
    site: SiteExplanation

    def __str__(self) -> str:
        key = "" if self.key is None else f", rank {self.key:g}, {self.pages_before} pages of its site before it"
        return f"page {self.page}: {self.life} (depth {self.depth}, {self.tries} failed tries){key}; {self.rule}\n{self.site}"


def explain_site(frontier: Core, site: int, now: float) -> SiteExplanation:
    frontier.check_site(site)
    s = frontier.state
    now = max(now, float(s.run[0].now))
    wait_until, rule = _site_rule(s, site, now)
    run = s.run[0]
    if rule == MAY_BE_VISITED and run.scores and 0 < run.rescore_at <= run.fetched:
        wait_until, rule = math.inf, "fresh scores are due before any visit"
    before = _sites_before(frontier, site, now) if rule == MAY_BE_VISITED else None
    level = FRONT if s.queue[site, FRONT].waiting else s.queue.shape[1] - 1
    return SiteExplanation(
        site=site,
        group=int(s.site[site].group),
        waiting=int(s.queue[site]["waiting"].sum()),
        rank=_rank(frontier, site, level) if s.queue[site, level].waiting else None,
        sites_before=None if before is None else len(before),
        first_before=() if before is None else tuple(before[:5].tolist()),
        wait_until=wait_until,
        rule=rule,
    )


def _rank(frontier: Core, site: int, level: int = FRONT) -> float:
    """The rank that stands, or the one it would have if it joined the contest now."""
    s = frontier.state
    record = s.site[site]
    if level == FRONT and record.place == CONTEST:
        return float(s.pool[s.group[record.group].block + record.pos].key)
    return float(kernels.evaluate_site(frontier.handle, site, level))


def _site_rule(s: State, site: int, now: float) -> tuple[float, str]:
    """Until when, and why; the first rule that holds."""
    record, front = s.site[site], s.queue[site, FRONT]
    if record.visit >= 0:
        return float(s.visit[record.visit].expires_at), "a visit is under way; its lease runs"
    if not s.queue[site]["waiting"].any():
        return math.inf, "no page waits"
    if record.place == UNRESOLVED or record.group < 0:
        return math.inf, "its address is not resolved"
    if front.waiting == 0:
        return math.inf, "its pages are not of this batch"
    if front.limit < 1:
        return math.inf, f"its page budget is used up ({record.taken} pages fetched or leased)"
    return _time_rule(s, site, now)


def _time_rule(s: State, site: int, now: float) -> tuple[float, str]:
    record = s.site[site]
    group = s.group[record.group]
    if group.visit >= 0:
        other = int(s.visit[group.visit].site)
        return float(
            s.visit[group.visit].expires_at
        ), f"site {other} on the same address is under visit; its lease runs"
    until = max(float(record.ready_at), float(group.ready_at))
    if until <= now:
        return -math.inf, MAY_BE_VISITED
    if record.ready_at >= group.ready_at:
        after = f" after {record.failures} failed visits" if record.rest_rule == BY_BACKOFF else ""
        return until, f"{WHY[int(record.rest_rule)]}{after}: it rests"
    return until, "delay of its address: it rests"


def _sites_before(frontier: Core, site: int, now: float) -> Array:
    """The sites that may be visited now and come before this one, first first."""
    s = frontier.state
    sites, groups = s.site[: s.run[0].sites], s.group[: s.run[0].groups]
    competes = (sites["place"] == CONTEST) | ((sites["place"] == RESTING) & (sites["ready_at"] <= now))
    rivals = np.flatnonzero(competes)
    of_rivals = groups[sites["group"][rivals]]
    rivals = rivals[(of_rivals["visit"] < 0) & (of_rivals["ready_at"] <= now)]
    ranks = np.array([_rank(frontier, int(rival)) for rival in rivals])
    order = rivals[np.lexsort((s.queue["best_serial"][rivals, FRONT], -ranks))]
    return order[: int(np.flatnonzero(order == site)[0])]


def explain_page(frontier: Core, page: int, now: float) -> PageExplanation:
    life = LIFE[frontier.page_state(page)]
    s = frontier.state
    record = s.page[page]
    site = explain_site(frontier, int(record.site), now)
    key, before = _place_in_queue(frontier, page) if life == "waiting" else (None, None)
    return PageExplanation(
        page=page,
        life=life,
        key=key,
        tries=int(record.tries),
        depth=int(record.depth),
        pages_before=before,
        rule=_page_rule(s, page, life),
        site=site,
    )


def _place_in_queue(frontier: Core, page: int) -> tuple[float, int]:
    record = frontier.state.page[page]
    batch = frontier.state.run[0].batch > 0
    pages, keys = frontier.waiting_pages(int(record.site), BACKLOG if batch and not record.marks & CHOSEN else FRONT)
    at = int(np.flatnonzero(pages == page)[0])
    return float(keys[at]), at


def _page_rule(s: State, page: int, life: str) -> str:
    run, record = s.run[0], s.page[page]
    if life == "unknown":
        limit = run.depth_dynamic if record.marks & DYNAMIC else run.depth_static
        return f"no link to it was found within depth {limit}" if limit else "no fetched page links to it"
    if life == "waiting" and run.batch > 0 and not record.marks & CHOSEN:
        return "not chosen for this batch"
    return {
        "waiting": "it waits for its turn",
        "leased": "a visit is fetching it",
        "fetched": "it is fetched",
        "revisited": "it is fetched, and a visit is fetching it again",
        "gone": "it failed too often, was refused, its site moved, or it was had before its site came here",
    }[life]
