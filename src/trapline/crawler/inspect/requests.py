"""All requests of a crawl, read from its database: for pages and for robots.txt, as columns, in order of sending; and the
robots.txt that was in force at each moment.

This module judges nothing: it has which page was requested at which address, from when to when, and which rules of
robots.txt were known then. audit.py judges. Pages for which no request was sent (robots.txt forbade them, the name had no
address) are not included.

Times are whole microseconds since 1970. The database has seconds as floats, which at today's date are exact to a
quarter of a microsecond. Whole microseconds compare correctly, and sums of them are exact.
"""

import math
import sqlite3
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.crawler.inspect.database_reader import Longs, columns, numbers
from trapline.fetch.robots.answer import read_answer
from trapline.fetch.robots.parser import ALLOW_ALL, DISALLOW_ALL, Robots

ROBOTS = -1  # used instead of a page number for a request of robots.txt
_COLUMNS = (
    "{0}.visit",
    "cast(round({0}.started * 1e6) as integer)",
    "cast(round(({0}.started + {0}.total_s) * 1e6) as integer)",
    "case when {0}.error = 'robots' then '' else {0}.address end",
)


class Requests(NamedTuple):
    page: Longs  # or ROBOTS
    site: Longs
    visit: Longs
    begin_us: Longs
    end_us: Longs
    address: Longs  # numbered in order of first use

    def rows(self, chosen: NDArray[Any]) -> "Requests":
        return Requests(*(column[chosen] for column in self))


def requests_of(database: sqlite3.Connection) -> Requests:
    # A missing key gets the next number without running Python code. 0: no request was sent.
    addresses: defaultdict[str, int] = defaultdict(count(1).__next__, {"": 0})
    parts = [Requests(*[np.zeros(0, np.int64)] * len(Requests._fields))]
    for *texts, names in _texts(database):
        numbered = np.array([addresses[name] for name in names.split(",")], np.int64)
        parts.append(Requests(*[*map(numbers, texts), numbered]))
    every = Requests(*map(np.concatenate, zip(*parts, strict=True)))
    sent = every.rows(np.flatnonzero(every.address > 0))
    return sent.rows(np.lexsort((sent.end_us, sent.begin_us)))


def _texts(database: sqlite3.Connection) -> Iterator[list[str]]:
    of_page = ["fetch.page", "page.site", *(column.format("fetch") for column in _COLUMNS)]
    yield from columns(database, "fetch", of_page, "join page on page.id = fetch.page")
    of_robots = [f"{ROBOTS}", "robots.site", *(column.format("robots") for column in _COLUMNS)]
    yield from columns(database, "robots", of_robots)


def microseconds(seconds: NDArray[np.float64]) -> Longs:
    return np.rint(seconds * 1e6).astype(np.int64)


# ---- The history of robots.txt: which file was in force for a site at a moment, from a crawl's database. For audit and reports.
#
# This part knows neither how an answer is interpreted (fetch/robots/answer.py does) nor whether the crawl obeyed it. An
# answer is in force from its arrival until the site's next one.

NONE_SEEN = -1  # in place of the number of an answer


class RobotsKept(NamedTuple):
    """The answers, ordered by site and by arrival."""

    site: Longs
    end_us: Longs
    rules: Sequence[Robots]
    free: NDArray[np.bool_]
    """whether the answer forbids nothing"""
    own_delay_us: Longs
    """Crawl-delay; 0: none"""

    def in_force(self, site: Longs, moment_us: Longs) -> Longs:
        """Return the number of the last answer of site[i] that arrived by moment_us[i], or NONE_SEEN."""
        moments = np.unique(self.end_us)
        key = self.site * (len(moments) + 1) + np.searchsorted(moments, self.end_us, "right")
        wanted = site * (len(moments) + 1) + np.searchsorted(moments, moment_us, "right")
        found = np.searchsorted(key, wanted, "right") - 1
        return np.where(_at(self.site, found, -1) == site, found, NONE_SEEN)

    def delay_us(self, number: Longs) -> Longs:
        return _at(self.own_delay_us, number, 0)

    def is_free(self, number: Longs) -> NDArray[np.bool_]:
        return _at(self.free, number, False)


def robots_kept(database: sqlite3.Connection, agent: str, ignored: Container[int] = ()) -> RobotsKept:
    """Read all answers from the database of a crawl. `agent`: the product token whose rules count. `ignored`: sites whose files
    do not hold."""
    read: dict[tuple[int, str, bytes], Robots] = {}  # many sites give the same answer
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
        elif not 300 <= key[0] < 400:  # a redirect does not show whether the file is reachable
            since = math.inf
        site.append(at_site)
        ended.append(end)
        rules.append(ALLOW_ALL if at_site in ignored else rule)
    return RobotsKept(
        site=np.array(site, np.int64),
        end_us=microseconds(np.array(ended, np.float64)),
        rules=rules,
        free=np.array([robots is ALLOW_ALL for robots in rules], np.bool_),
        own_delay_us=microseconds(np.array([robots.crawl_delay_s or 0.0 for robots in rules], np.float64)),
    )


def _at(values: NDArray[Any], number: Longs, missing: object) -> NDArray[Any]:
    """Return the values with these numbers, and `missing` where the number is NONE_SEEN."""
    return np.append(values, np.array([missing], values.dtype))[number]  # index -1 is the last one, `missing`
