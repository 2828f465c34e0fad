"""Every request that a crawl made, from its database alone: of pages and of robots.txt, as columns, in order of sending.

It knows neither rules nor the frontier: what was asked of whom, and from when to when. Pages that nobody was asked for
(robots.txt forbade them, the name had no address) are not here.

Times are whole microseconds since 1970. The database has seconds as floats, which at today's date are good to a quarter of
a microsecond: whole ones compare as they should, and sums of them are exact.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.crawl.folder import Longs, columns, numbers

ROBOTS = -1  # instead of a page
_COLUMNS = (
    "{0}.visit",
    "cast(round({0}.started * 1e6) as integer)",
    "cast(round(({0}.started + {0}.total_s) * 1e6) as integer)",
    "{0}.address",
)


class Requests(NamedTuple):
    page: Longs  # or ROBOTS
    site: Longs
    visit: Longs
    begin_us: Longs
    end_us: Longs
    address: Longs  # numbered as they come

    def rows(self, chosen: NDArray[Any]) -> "Requests":
        return Requests(*(column[chosen] for column in self))


def requests_of(database: sqlite3.Connection) -> Requests:
    # A missing key gets the next number without a step of the interpreter. 0: nobody was asked.
    addresses: defaultdict[str, int] = defaultdict(count(1).__next__, {"": 0})
    parts = [Requests(*[np.zeros(0, np.int64)] * len(Requests._fields))]
    for *texts, asked in _texts(database):
        of_address = np.array([addresses[one] for one in asked.split(",")], np.int64)
        parts.append(Requests(*[*map(numbers, texts), of_address]))
    every = Requests(*map(np.concatenate, zip(*parts, strict=True)))
    made = every.rows(np.flatnonzero(every.address > 0))
    return made.rows(np.lexsort((made.end_us, made.begin_us)))


def _texts(database: sqlite3.Connection) -> Iterator[list[str]]:
    of_page = ["fetch.page", "page.site", *(column.format("fetch") for column in _COLUMNS)]
    yield from columns(database, "fetch", of_page, "join page on page.id = fetch.page")
    of_robots = [f"{ROBOTS}", "robots.site", *(column.format("robots") for column in _COLUMNS)]
    yield from columns(database, "robots", of_robots)


def microseconds(seconds: NDArray[np.float64]) -> Longs:
    return np.rint(seconds * 1e6).astype(np.int64)
