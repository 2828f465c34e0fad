"""All requests of a crawl, read from its database: for pages and for robots.txt, as columns, in order of sending.

This module knows neither rules nor the frontier; it only has which page was requested at which address, from when to
when. Pages for which no request was sent (robots.txt forbade them, the name had no address) are not included.

Times are whole microseconds since 1970. The database has seconds as floats, which at today's date are exact to a
quarter of a microsecond. Whole microseconds compare correctly, and sums of them are exact.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.crawl.inspect.database import Longs, columns, numbers

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
