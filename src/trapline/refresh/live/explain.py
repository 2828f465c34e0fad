"""Explanations, for people, of why a page is or is not crawled again now, and which pages are due. It changes nothing. Policies run
uncompiled here."""

import math
from typing import Any, NamedTuple

import numpy as np

from trapline.refresh.core.evidence import access_rate
from trapline.refresh.core.layout import AUDITED, AWAY, CHOSEN, HOT, LEVELS, NORMAL, SHUT, WAITS, PolicyView
from trapline.refresh.live.memory import Memory
from trapline.refresh.policies.trust import is_struck_out, missed_odds, precision
from trapline.refresh.policy import Policy

_PLACES = {WAITS: "waits", HOT: "competes", CHOSEN: "is being crawled", AWAY: "waits after a failure"}
_DAY_S = 86_400.0


class DuePages(NamedTuple):
    """Which pages are due, by their values at their last evaluation."""

    pages: int  # all pages that are crawled again
    due: int  # worth as much as recently chosen pages or, if the policy has due times, due now
    signalled: int  # a signal has come since the last crawl
    failed: int  # wait after a failure
    best: list[int]  # pages, the best first
    values: list[float]  # their values; if the policy has due times, the seconds for which they have been due


def due_pages(memory: Memory, at_s: float, most: int) -> DuePages:
    """Return which pages are due, with at most `most` of the best."""
    s = memory.state
    queued = s.page[s.page["place"] < CHOSEN]
    values = s.value["key"][s.site["block"][queued["site"]] + queued["value_pos"]] + (at_s if memory.still else 0.0)
    best = np.argsort(-values, kind="stable")[:most]
    least = 0.0 if memory.still else float(s.run[0].price)
    return DuePages(
        pages=len(s.page),
        due=int((values >= least).sum()),
        signalled=int((s.page["signals"] > 0).sum()),
        failed=int((s.page["place"] == AWAY).sum()),
        best=queued["id"][best].tolist(),
        values=values[best].tolist(),
    )


def explain(memory: Memory, policy: Policy, slot: int, at_s: float, started: float) -> dict[str, Any]:
    """Return the evidence about the page in a slot, its value and when it is due. Times are on the crawl's clock."""
    s = memory.state
    view = PolicyView(*s[:9])
    page, run = s.page[slot], s.run[0]
    value = float(policy.value(view, slot, at_s))
    point = s.point[page.point] if page.point < page.point_end else None
    return {
        "page": int(page.id),
        "site": int(page.site),
        "level": LEVELS[page.level],
        "last_crawl": started + float(page.crawled_s),
        "crawls": int(page.crawls),
        "changes": int(page.changes),
        "failures": int(page.failures),
        "accesses": int(page.accesses),
        "accesses_per_day": float(access_rate(view, slot, at_s)) * _DAY_S,
        "by_quality": bool(run.accesses == 0),
        "signals": int(page.signals),
        "all_signals": int(page.all_signals),
        "trust": None if page.level == NORMAL else _trust(view, slot),
        "next_point": None if point is None else {"at": started + float(point.at_s), "p": float(point.p)},
        "value": value,
        "rank_value": at_s + value if policy.still else value,
        "price": float(run.price),
        "place": _PLACES.get(int(page.place), "waits for its site" if s.site[page.site].place == SHUT else "competes"),
        "due": started + max(at_s, _due_s(memory, slot, value)),
    }


def _trust(view: PolicyView, slot: int) -> dict[str, Any]:
    page = view.page[slot]
    row = view.trust[page.trust]
    odds = float(missed_odds(view, slot))
    return {
        "channel": int(row.channel),
        "unverified": bool(row.unverified),
        "precision": float(precision(view, slot)),
        "recall": 1.0 / (1.0 + odds),
        "judged_by": float(row.prompted),
        "struck_out": bool(is_struck_out(view, page.trust)),
        "audited": bool(page.marks & AUDITED),
    }


def _due_s(memory: Memory, slot: int, value: float) -> float:
    """Return when the page is evaluated next or, for a policy whose values are due times, when it is due."""
    s = memory.whole
    page = s.page[slot]
    if page.place == AWAY:
        return float(page.pos)
    if page.place == CHOSEN:
        return math.inf
    opens_s = -float(s.sites[SHUT, s.site[page.site].pos].key) if s.site[page.site].place == SHUT else 0.0
    if s.run[0].still:
        return max(opens_s, -value)
    return max(opens_s, -float(s.waiting[page.pos].key)) if page.place == WAITS else opens_s
