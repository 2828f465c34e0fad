"""Counts broken politeness in a fetch log. It knows the log and the rules, and nothing of the frontier: whoever
checks must not ask whom he checks."""

import numpy as np
from numpy.typing import NDArray

from trapline.frontier import Rules
from trapline.frontier.layout import Array
from trapline.simulate.driver import Log


def politeness_violations(log: Log, site: Array, group: Array, rules: Rules) -> int:
    """Visits that began before the one before them, to the same site or to the same address, had ended and rested.

    `site[page]` and `group[site]` say who owns what. A site's rest is w, or the smaller of the two if w depends on
    its size.
    """
    rest = min(rules.delay_s, rules.small_site_delay_s) if rules.small_site_pages else rules.delay_s
    ip_rest = rules.delay_s if rules.ip_delay_s is None else rules.ip_delay_s
    sites = site[log.page]
    return _early_visits(log, sites, rest) + _early_visits(log, group[sites], ip_rest)


def _early_visits(log: Log, owner: NDArray[np.int32], rest: float) -> int:
    order = np.lexsort((log.end, log.start, owner))
    same_owner = owner[order][1:] == owner[order][:-1]
    new_visit = log.visit[order][1:] != log.visit[order][:-1]
    latest_end = log.end[order][:-1]
    must_wait = np.where(new_visit, latest_end + rest, latest_end)  # within a visit pages come one after the other
    return int(np.count_nonzero(same_owner & (log.start[order][1:] < must_wait)))
