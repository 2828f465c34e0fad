"""The quality of a fetched page, which may become known only after the page was reported: the pages it links to are ranked again.

A page rank that declares the input `fetched_quality` reads the quality of the pages that link to a page. The caller scores their
text, which takes longer than a fetch. This module sets the column and calls the page rank as at a link. It does not know
what the quality means. Laws: docs/frontier.md, Q1 to Q3.
"""

from trapline.compiled.jit import b1, f8, helper, i8, kernel
from trapline.frontier.core import blocks
from trapline.frontier.core.discovery import change_key
from trapline.frontier.core.kernels import advance, are_registered
from trapline.frontier.core.learning import learn_page
from trapline.frontier.layout import (
    ELSEWHERE,
    FETCHED,
    LEASED,
    NEED_ROOM,
    REVISITED,
    WAITING,
    Array,
    FrontierState,
    Pages,
    StateType,
    recall,
)
from trapline.frontier.ranking import rank_page

has_room = blocks.has_room


@helper(b1(StateType, i8, Pages, i8))
def rank_links_again(s: FrontierState, source: int, pages: Array, n: int) -> bool:
    """Rank the pages that the source links to. Return False if the pool must grow first; the next call then continues."""
    run = s.run[0]
    for i in range(max(run.resume - 1, 0), n):
        page = pages[i]
        if page == ELSEWHERE:
            continue
        state = s.state[page]
        if state in (WAITING, LEASED):
            if not has_room(s):
                run.resume = i + 1
                return False
            change_key(s, page, rank_page(s, page, source, n, False))
        elif run.learns and (state in (FETCHED, REVISITED)):
            rank_page(s, page, source, n, False)
    run.resume = 0
    return True


@kernel(i8(i8, i8, i8, f8, Pages, i8, f8))
def set_page_quality(handle: int, page: int, column: int, quality: float, links: Array, n: int, now: float) -> int:
    """Set the quality of a page, and rank pages again. Return 0 or NEED_ROOM. A link to an unregistered page is a fault and
    changes nothing."""
    s: FrontierState = recall(handle)
    run = s.run[0]
    if run.resume == 0:
        if not are_registered(s, links, n, ELSEWHERE):
            return 0
        advance(s, now)
        s.columns[page, column] = quality
        if run.learns:
            learn_page(s, page)
    return 0 if run.constant or rank_links_again(s, page, links, n) else NEED_ROOM
