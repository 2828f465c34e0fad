"""Which robots.txt was in force when: what a crawl's database has of them, by site and moment. For the audit and for reports.

It does not know how an answer is read (`fetch.robots_answer` does) nor how the crawl obeyed it. An answer holds from its arrival until
the site's next one.
"""

import math
import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.crawl.folder import Longs
from trapline.crawl.requests import microseconds
from trapline.fetch.robots import ALLOW_ALL, DISALLOW_ALL, Robots
from trapline.fetch.robots_answer import read_answer

NONE_SEEN = -1  # instead of the number of an answer


class RobotsKept(NamedTuple):
    """The answers in order of site and of arrival."""

    site: Longs
    end_us: Longs
    rules: Sequence[Robots]
    free: NDArray[np.bool_]
    """that forbid nothing"""
    own_delay_us: Longs
    """Crawl-delay; 0: it asks for none"""

    def in_force(self, site: Longs, moment_us: Longs) -> Longs:
        """The number of the last answer that each site had given by the moment beside it; NONE_SEEN: there was none."""
        moments = np.unique(self.end_us)
        key = self.site * (len(moments) + 1) + np.searchsorted(moments, self.end_us, "right")
        wanted = site * (len(moments) + 1) + np.searchsorted(moments, moment_us, "right")
        found = np.searchsorted(key, wanted, "right") - 1
        return np.where(_at(self.site, found, -1) == site, found, NONE_SEEN)

    def delay_us(self, number: Longs) -> Longs:
        return _at(self.own_delay_us, number, 0)

    def is_free(self, number: Longs) -> NDArray[np.bool_]:
        return _at(self.free, number, False)


def robots_kept(database: sqlite3.Connection, agent: str) -> RobotsKept:
    read: dict[tuple[int, str, bytes], Robots] = {}  # of many sites it is the same
    rows = database.execute("select site, started + total_s, status, error, body from robots order by site, 2, seq")
    site: list[int] = []
    ended, rules, since = [], [], math.inf
    for at_site, end, *answer in rows:
        key = (answer[0], answer[1], bytes(answer[2]))
        rule = read.get(key) or read.setdefault(key, read_answer(*key, agent).robots)
        if site and site[-1] != at_site:
            since = math.inf
        if rule is DISALLOW_ALL:
            since = min(since, end)
            rule = read_answer(*key, agent, unreachable_for_s=end - since).robots
        elif not 300 <= key[0] < 400:  # a redirect leads on, and says nothing
            since = math.inf
        site.append(at_site)
        ended.append(end)
        rules.append(rule)
    return RobotsKept(
        site=np.array(site, np.int64),
        end_us=microseconds(np.array(ended, np.float64)),
        rules=rules,
        free=np.array([one is ALLOW_ALL for one in rules], np.bool_),
        own_delay_us=microseconds(np.array([one.crawl_delay_s or 0.0 for one in rules], np.float64)),
    )


def _at(values: NDArray[Any], number: Longs, missing: object) -> NDArray[Any]:
    """The values at these places; `missing` where the place is NONE_SEEN."""
    return np.append(values, np.array([missing], values.dtype))[number]  # the last one is number -1
