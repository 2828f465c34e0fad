"""Broken links of a crawl: pages that were requested and not obtained, with the pages that link to them.

`trapline report` uses it. The module reads the database alone: which page links to which is in `fetch.links`. All links are read twice, in
blocks, because only then is it known which of the broken pages are shown.
"""

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.crawler.files.reading import HAS_LINKS
from trapline.crawler.inspect.database_reader import Longs
from trapline.fetch import failure
from trapline.frontier import FAILED, REFUSED

Marks = NDArray[np.bool_]

MOST_PAGES = 200
MOST_REFERRERS = 10  # of a page
_ROWS_AT_ONCE = 4096
# The last result of each page counts: a page that failed once and was fetched then is not broken.
_BROKEN = f"""select page, seq from fetch where seq in (select max(seq) from fetch where result > 0 group by page)
and (result = {FAILED} or (result = {REFUSED} and error not in ('{failure.ROBOTS}', '{failure.MIME}')))"""
_LINKS = f"""select page, links from fetch where seq in (select max(seq) from fetch where {HAS_LINKS} group by page)
and length(links) > 0"""


class BrokenPage(NamedTuple):
    url: str
    status: int  # of HTTP; 0: no answer
    error: str  # kind of error
    referrers: int  # number of pages that link to it
    first_referrers: list[str]  # URLs of the first of them


class BrokenLinks(NamedTuple):
    broken: int  # number of broken pages
    linked: int  # number of those that a fetched page links to
    pages: list[BrokenPage]  # those with the most referrers


NONE_BROKEN = BrokenLinks(0, 0, [])


def broken_links(database: sqlite3.Connection) -> BrokenLinks:
    rows = np.fromiter(database.execute(_BROKEN), np.dtype((np.int64, 2)))
    if not len(rows):
        return NONE_BROKEN
    broken, seqs = rows.T
    (last,) = database.execute("select max(id) from page").fetchone()
    is_broken, referrers = np.zeros(last + 1, np.bool_), np.zeros(last + 1, np.int64)
    is_broken[broken] = True
    for _, targets in _links_to(database, is_broken):
        referrers += np.bincount(targets, minlength=last + 1)
    order = np.lexsort((broken, -referrers[broken]))[:MOST_PAGES]
    chosen = broken[order].tolist()
    first = _first_referrers(database, chosen, is_broken)
    urls = _urls(database, {*chosen, *(page for pages in first.values() for page in pages)})
    pages = [
        BrokenPage(urls[page], *_answer(database, seq), int(referrers[page]), [urls[source] for source in first[page]])
        for page, seq in zip(chosen, seqs[order].tolist(), strict=True)
    ]
    return BrokenLinks(len(broken), int(np.count_nonzero(referrers[broken])), pages)


def _answer(database: sqlite3.Connection, seq: int) -> tuple[int, str]:
    answer: tuple[int, str] = database.execute("select status, error from fetch where seq = ?", (seq,)).fetchone()
    return answer


def _first_referrers(database: sqlite3.Connection, chosen: list[int], is_wanted: Marks) -> dict[int, list[int]]:
    is_wanted[:] = False
    is_wanted[chosen] = True
    found: dict[int, list[int]] = {page: [] for page in chosen}
    for sources, targets in _links_to(database, is_wanted):
        for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
            if len(found[target]) < MOST_REFERRERS:
                found[target].append(source)
    return found


def _links_to(database: sqlite3.Connection, is_wanted: Marks) -> Iterator[tuple[Longs, Longs]]:
    """Yield source and target of all links to wanted pages, in blocks, without links of pages to themselves."""
    rows = database.execute(_LINKS)
    while block := rows.fetchmany(_ROWS_AT_ONCE):
        targets = np.frombuffer(b"".join(links for _, links in block), "<i4").astype(np.int64)
        sources = np.repeat([page for page, _ in block], [len(links) // 4 for _, links in block])
        taken = is_wanted[targets] & (sources != targets)
        yield sources[taken], targets[taken]


def _urls(database: sqlite3.Connection, pages: set[int]) -> dict[int, str]:
    find = "select url from page where id = ?"
    return {page: database.execute(find, (page,)).fetchone()[0] for page in pages}
