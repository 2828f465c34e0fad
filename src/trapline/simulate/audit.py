"""Counts broken politeness in a fetch log. It knows the log and the rules, and nothing of the frontier: whoever
checks must not ask whom he checks.

It takes a few passes and no sorting, for rows are logged in order of completion and visits are numbered as they begin. A
log of which that is not true is put in order first.
"""

import numpy as np
from numpy.typing import NDArray

from trapline.frontier import Rules
from trapline.frontier.layout import Array
from trapline.jit import kernel, ready
from trapline.simulate.log import Log

Floats = NDArray[np.float64]


def politeness_violations(log: Log, site: Array, group: Array, rules: Rules) -> int:
    """Visits that began before an earlier one, to the same site or to the same address, had ended and rested, or
    whose own pages overlap: each once, however many rules it broke.

    `site[page]` and `group[site]` say who owns what. Earlier is what began earlier, or at the same moment with a smaller
    number; of the pages of a visit, what ended earlier. What a log does not tell is not seen: if w depends on the size
    of a site, the smaller of the two is asked of all, and back-off after failures is not checked.
    """
    ready()
    rest = min(rules.delay_s, rules.small_site_delay_s) if rules.small_site_pages else rules.delay_s
    ip_rest = rules.address_rest_s
    log = _in_order_of_completion(log)
    broken = np.zeros(int(log.visit.max(initial=-1)) + 1, np.bool_)
    ended = _mark_early(log.visit, log.visit, log.start, log.end, 0.0, broken)
    page, begun = np.full(len(ended), -1), np.full(len(ended), np.inf)
    page[log.visit] = log.page
    np.minimum.at(begun, log.visit, log.start)
    visit = _by_begin(np.flatnonzero(page >= 0), begun)
    owner, begun, ended = site[page[visit]], begun[visit], ended[visit]
    _mark_early(owner, visit, begun, ended, rest, broken)
    _mark_early(group[owner], visit, begun, ended, ip_rest, broken)
    return int(np.count_nonzero(broken))


def _in_order_of_completion(log: Log) -> Log:
    if _rises(log.end):
        return log
    order = np.argsort(log.end, kind="stable")
    return Log(*(column[order] for column in log))


def _by_begin(visit: Array, begun: Floats) -> Array:
    return visit if _rises(begun[visit]) else visit[np.argsort(begun[visit], kind="stable")]


def _rises(values: Floats) -> bool:
    return bool((values[1:] >= values[:-1]).all())


def _mark_early(owner: Array, visit: Array, start: Floats, end: Floats, rest: float, broken: Array) -> Floats:
    """Mark the visits of intervals that begin before the latest end so far of their owner, and a rest; answer the
    latest end of each owner."""
    latest = np.full(int(owner.max(initial=-1)) + 1, -np.inf)
    owner, visit = np.ascontiguousarray(owner, np.int32), np.ascontiguousarray(visit, np.int32)
    mark_early(owner, visit, start, end, rest, latest, broken)
    return latest


@kernel("void(int32[::1], int32[::1], float64[::1], float64[::1], float64, float64[::1], boolean[::1])")
def mark_early(
    owner: Array, visit: Array, start: Floats, end: Floats, rest: float, latest: Floats, broken: Array
) -> None:
    """In the order given; `latest` becomes the latest end of each owner, `broken` is by visit."""
    for at in range(owner.size):
        one = owner[at]
        if start[at] < latest[one] + rest:
            broken[visit[at]] = True
        latest[one] = max(latest[one], end[at])
