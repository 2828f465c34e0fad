"""Counts broken politeness in a fetch log. It knows the log and the rules, and nothing of the frontier: whoever
checks must not ask whom he checks."""

import numpy as np
from numpy.typing import NDArray

from trapline.frontier import Rules
from trapline.frontier.layout import Array
from trapline.simulate.log import Log


def politeness_violations(log: Log, site: Array, group: Array, rules: Rules) -> int:
    """Visits that began before an earlier one, to the same site or to the same address, had ended and rested.

    `site[page]` and `group[site]` say who owns what. A site's rest is w, or the smaller of the two if w depends on its
    size. Pages of one visit that overlap count too.
    """
    rest = min(rules.delay_s, rules.small_site_delay_s) if rules.small_site_pages else rules.delay_s
    ip_rest = rules.delay_s if rules.ip_delay_s is None else rules.ip_delay_s
    _, first, number = np.unique(log.visit, return_index=True, return_inverse=True)
    start, end = log.start[first].copy(), log.end[first].copy()
    np.minimum.at(start, number, log.start)
    np.maximum.at(end, number, log.end)
    owner = site[log.page[first]]
    within = _early(number, log.start, log.end, 0.0)
    return within + _early(owner, start, end, rest) + _early(group[owner], start, end, ip_rest)


def _early(owner: Array, start: Array, end: Array, rest: float) -> int:
    """Intervals that begin before the latest end so far of the same owner, and a rest."""
    order = np.lexsort((end, start, owner))
    owner, start, end = owner[order], start[order], end[order]
    latest = _running_maximum(owner, end)
    return int(np.count_nonzero((owner[1:] == owner[:-1]) & (start[1:] < latest[:-1] + rest)))


def _running_maximum(owner: Array, end: Array) -> NDArray[np.float64]:
    """The maximum of `end` so far, begun anew at each owner (sorted). By places in the order of ends, so that nothing is rounded."""
    by_end = np.argsort(end, kind="stable")
    place = np.empty(len(end), np.int64)
    place[by_end] = np.arange(len(end))
    base = owner.astype(np.int64) * len(end)
    return end[by_end[np.maximum.accumulate(base + place) - base]]
