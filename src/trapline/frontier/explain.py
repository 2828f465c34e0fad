"""Explanations of why a page has not been fetched, or a site not been visited, yet: its rank, what comes before it, until
when it must wait, and by which rule.

The module only reads the state. It is plain Python and takes O(n): it is for people, not for the crawl loop. Ranks are those that were
computed last. If the page rank learns, `next` computes the best ones again, so a few sites and pages that are named here as earlier may
come later (core/learning.py).
"""

import math
from dataclasses import dataclass

import numpy as np

from trapline.frontier.core import kernels
from trapline.frontier.core.core import Core
from trapline.frontier.layout import (
    BACKLOG,
    BY_BACKOFF,
    BY_DELAY,
    BY_ORDER,
    CHOSEN,
    COMPETES,
    DELAYED,
    DYNAMIC,
    FETCHED,
    FRONT,
    GONE,
    LEASED,
    REVISITED,
    UNKNOWN,
    UNRESOLVED,
    WAITING,
    Array,
    FrontierState,
)
from trapline.units import counted

MAY_BE_VISITED = "it may be visited"
WHY = {BY_DELAY: "its delay", BY_BACKOFF: "back-off", BY_ORDER: "Retry-After or another request for a longer delay"}
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
    """Explanation of a site's situation at one time."""

    site: int
    group: int
    waiting: int  # number of waiting pages
    rank: float | None  # None: no page of the site waits
    sites_before: int | None  # number of sites that would be visited before it; None: the site cannot be visited now
    first_before: tuple[int, ...]  # the first five of these sites
    wait_until: float  # -infinity: the site need not wait; infinity: it waits for an event, not for a time
    rule: str  # what the site waits for

    def __str__(self) -> str:
        rank = "no rank" if self.rank is None else f"rank {self.rank:g}"
        before = "" if self.sites_before is None else f", {self.sites_before} sites before it"
        names = f" ({', '.join(map(str, self.first_before))})" if self.first_before else ""
        until = f" until {self.wait_until:g}" if math.isfinite(self.wait_until) else ""
        return f"site {self.site}: {self.waiting} pages waiting, {rank}{before}{names}; {self.rule}{until}"


@dataclass(frozen=True, slots=True)
class PageExplanation:
    """Explanation of a page's situation at one time."""

    page: int
    life: str
    key: float | None
    tries: int
    depth: int
    pages_before: int | None  # number of pages before it in the queue of its site; None: the page does not wait
    rule: str
    site: SiteExplanation

    def __str__(self) -> str:
        key = "" if self.key is None else f", rank {self.key:g}, {self.pages_before} pages of its site before it"
        return f"page {self.page}: {self.life} (depth {self.depth}, {self.tries} failed tries){key}; {self.rule}\n{self.site}"


def explain_site(frontier: Core, site: int, now: float) -> SiteExplanation:
    """Explain why the site is not visited at `now`, or which sites come before it."""
    frontier.check_site(site)
    s = frontier.state
    now = max(now, float(s.run[0].now))
    wait_until, rule = _site_rule(s, site, now)
    run = s.run[0]
    if rule == MAY_BE_VISITED and run.scores and 0 < run.rescore_at <= run.fetched:
        wait_until, rule = math.inf, "no visit begins before new scores are computed"
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
    """Return the current rank of the site or, if the site is not among the ready sites, the rank that it would get by joining them now."""
    s = frontier.state
    record = s.site[site]
    if level == FRONT and record.place == COMPETES:
        return float(s.pool[s.group[record.group].block + record.pos].key)
    return float(kernels.evaluate_site(frontier.handle, site, level))


def _site_rule(s: FrontierState, site: int, now: float) -> tuple[float, str]:
    """Return until when the site must wait, and why, by the first rule that applies."""
    record, front = s.site[site], s.queue[site, FRONT]
    if record.visit >= 0:
        until = float(s.visit[record.visit].expires_at)
        return until, f"a visit is in progress{_lease(until)}"
    if not s.queue[site]["waiting"].any():
        return math.inf, "no page is waiting"
    if record.place == UNRESOLVED or record.group < 0:
        return math.inf, "its address is not known yet"
    if front.waiting == 0:
        return math.inf, "no page of it is in the current batch"
    if front.limit < 1:
        return math.inf, f"its page budget is used up: {record.taken} pages are fetched or leased"
    return _time_rule(s, site, now)


def _lease(until: float) -> str:
    """Return that the visit ends at this time if it is not reported. The visits of a live crawl have no such end."""
    return " and holds a lease" if math.isfinite(until) else ""


def _time_rule(s: FrontierState, site: int, now: float) -> tuple[float, str]:
    """Return until when the delays of the site and of its address hold it back, and by which rule."""
    record = s.site[site]
    group = s.group[record.group]
    if group.visit >= 0:
        other = int(s.visit[group.visit].site)
        until = float(s.visit[group.visit].expires_at)
        return until, f"a visit to site {other} on the same address is in progress{_lease(until)}"
    until = max(float(record.ready_at), float(group.ready_at))
    if until <= now:
        return -math.inf, MAY_BE_VISITED
    if record.ready_at >= group.ready_at:
        after = f" after {counted(int(record.failures), 'failed visit')}" if record.delay_rule == BY_BACKOFF else ""
        return until, f"it waits because of {WHY[int(record.delay_rule)]}{after}"
    return until, "it waits because of the delay of its address"


def _sites_before(frontier: Core, site: int, now: float) -> Array:
    """Return the sites that may be visited now and come before this one, in the order of their visits."""
    s = frontier.state
    sites, groups = s.site[: s.run[0].sites], s.group[: s.run[0].groups]
    competes = (sites["place"] == COMPETES) | ((sites["place"] == DELAYED) & (sites["ready_at"] <= now))
    rivals = np.flatnonzero(competes)
    rival_groups = groups[sites["group"][rivals]]
    rivals = rivals[(rival_groups["visit"] < 0) & (rival_groups["ready_at"] <= now)]
    ranks = np.array([_rank(frontier, int(rival)) for rival in rivals])
    order = rivals[np.lexsort((s.queue["best_serial"][rivals, FRONT], -ranks))]
    return order[: int(np.flatnonzero(order == site)[0])]


def explain_page(frontier: Core, page: int, now: float) -> PageExplanation:
    """Explain the state of the page, its place in the queue of its site, and the situation of its site."""
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
    """Return the key of a waiting page and the number of pages before it in its queue."""
    record = frontier.state.page[page]
    batch = frontier.state.run[0].batch > 0
    pages, keys = frontier.waiting_pages(int(record.site), BACKLOG if batch and not record.marks & CHOSEN else FRONT)
    place = int(np.flatnonzero(pages == page)[0])
    return float(keys[place]), place


def _page_rule(s: FrontierState, page: int, life: str) -> str:
    run, record = s.run[0], s.page[page]
    if life == "unknown":
        limit = run.depth_dynamic if record.marks & DYNAMIC else run.depth_static
        return f"no link to it was found within depth {limit}" if limit else "no fetched page links to it"
    if life == "waiting" and run.batch > 0 and not record.marks & CHOSEN:
        return "it is not in the current batch"
    return {
        "waiting": "it is in the queue of its site",
        "leased": "a visit is fetching it",
        "fetched": "it is fetched",
        "revisited": "it is fetched, and a visit is fetching it again",
        "gone": "it failed too often, was refused or left the scope, or another partition fetched it or owns it",
    }[life]
