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
    """Visits that began before an earlier one, to the same site or to the same address, had ended and rested.

    `site[page]` and `group[site]` say who owns what. A site's rest is w, or the smaller of the two if w depends on its
    size. Pages of one visit that overlap count too. Earlier is what began earlier, or at the same moment with a smaller
    number; of the pages of a visit, what ended earlier.
    """
    ready()
    rest = min(rules.delay_s, rules.small_site_delay_s) if rules.small_site_pages else rules.delay_s
    ip_rest = rules.delay_s if rules.ip_delay_s is None else rules.ip_delay_s
    log = _in_order_of_completion(log)
    within, ended = _early(log.visit, log.start, log.end, 0.0)
    page, begun = np.full(len(ended), -1), np.full(len(ended), np.inf)
    page[log.visit] = log.page
    np.minimum.at(begun, log.visit, log.start)
    visit = _by_begin(np.flatnonzero(page >= 0), begun)
    owner, begun, ended = site[page[visit]], begun[visit], ended[visit]
    return within + _early(owner, begun, ended, rest)[0] + _early(group[owner], begun, ended, ip_rest)[0]


def _in_order_of_completion(log: Log) -> Log:
    if _rises(log.end):
        return log
    order = np.argsort(log.end, kind="stable")
    return Log(*(column[order] for column in log))


def _by_begin(visit: Array, begun: Floats) -> Array:
    return visit if _rises(begun[visit]) else visit[np.argsort(begun[visit], kind="stable")]


def _rises(values: Floats) -> bool:
    return bool((values[1:] >= values[:-1]).all())


def _early(owner: Array, start: Floats, end: Floats, rest: float) -> tuple[int, Floats]:
    """Intervals that begin before the latest end so far of the same owner, and a rest; and the latest end of each owner."""
    latest = np.full(int(owner.max(initial=-1)) + 1, -np.inf)
    return int(early_starts(np.ascontiguousarray(owner, np.int32), start, end, rest, latest)), latest


@kernel("int64(int32[::1], float64[::1], float64[::1], float64, float64[::1])")
def early_starts(owner: Array, start: Floats, end: Floats, rest: float, latest: Floats) -> int:
    """Count them, in the order given, and leave in `latest` the latest end of each owner."""
    found = 0
    for at in range(owner.size):
        one = owner[at]
        if start[at] < latest[one] + rest:
            found += 1
        latest[one] = max(latest[one], end[at])
    return found
