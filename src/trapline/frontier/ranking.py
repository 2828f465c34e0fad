"""Where the frontier meets the strategy: its two functions, called by address, and the check of what they answer.

A page rank: `page_rank(s, page, source, links, is_new) -> float`. It may keep numbers per page in `s.columns[page,
c]`. A site rank: `site_rank(s, site, queue) -> float`. It sees the site's and the queue's records (layout.py) and
changes nothing.
"""

import dis
from collections.abc import Callable

from trapline.errors import ConfigError
from trapline.frontier.layout import (
    PAGE_RANK_FAULT,
    RANK_LIMIT,
    SITE_RANK_FAULT,
    QueueRecord,
    SiteRecord,
    State,
    StateType,
    View,
    ViewType,
)
from trapline.jit import Rank, b1, caller3, caller5, f8, helper, i8, void

PAGE_RANK = f8(ViewType, i8, i8, i8, b1)
SITE_RANK = f8(ViewType, SiteRecord, QueueRecord)
call_page_rank = caller5(PAGE_RANK)
call_site_rank = caller3(SITE_RANK)


def _ours(function: Callable[..., float]) -> bool:
    # A user's file may import what it likes, and a cache would not notice an edit there; it compiles in under a second.
    return function.__module__.startswith("trapline.")


def _check_stores(function: Callable[..., float], forbidden: tuple[str, ...], may: str) -> None:
    """A rank that writes into the frontier's records could take the process down with it."""
    for step in dis.get_instructions(function):
        if step.opname in forbidden:
            raise ConfigError(f"rank function {function.__name__!r} changes a record or array; {may}")


def page_rank(function: Callable[..., float]) -> Rank:
    """Decorate a page rank."""
    _check_stores(function, ("STORE_ATTR",), "a page rank may change its own s.columns[page, i] and nothing else")
    return Rank(function, PAGE_RANK, cached=_ours(function))


def site_rank(function: Callable[..., float]) -> Rank:
    """Decorate a site rank."""
    _check_stores(function, ("STORE_ATTR", "STORE_SUBSCR"), "a site rank may change nothing")
    return Rank(function, SITE_RANK, cached=_ours(function))


@helper(f8(StateType, f8, i8, i8))
def checked(s: State, rank: float, fault: int, item: int) -> float:
    """The rank, if it is one. The first fault is noted for Python to raise; NaN must never reach a heap."""
    if -RANK_LIMIT < rank < RANK_LIMIT:
        return rank
    run = s.run[0]
    if run.fault == 0:
        run.fault = fault
        run.fault_item = item
    return 0.0


@helper(f8(f8, i8))
def penalised(rank: float, tries: int) -> float:
    """A page that failed t times counts as half as good for each; powers of two, so that nothing is rounded."""
    if rank > 0.0:
        return rank * 0.5**tries
    return rank * 2.0**tries


@helper(f8(StateType, i8, i8, i8, b1))
def rank_page(s: State, page: int, source: int, links: int, is_new: bool) -> float:
    rank = call_page_rank(s.run[0].page_rank, View(s.run, s.page, s.columns), page, source, links, is_new)
    rank = checked(s, rank, PAGE_RANK_FAULT, page)
    tries = s.page[page].tries
    return penalised(rank, tries) if tries else rank


# ---- estimates (cao 4.2)


@helper(f8(StateType))
def mean_connection_s(s: State) -> float:
    run = s.run[0]
    return run.connection_total / run.connection_sites if run.connection_sites else run.first_connection_s


@helper(f8(StateType))
def mean_response_s(s: State) -> float:
    run = s.run[0]
    return run.response_total / run.response_sites if run.response_sites else run.first_response_s


@helper(void(StateType, i8))
def show_means(s: State, x: int) -> None:
    """A site never measured is taken for an average one; the paper does not say what to do."""
    site = s.site[x]
    if site.connections == 0:
        site.connection_s = mean_connection_s(s)
    if site.responses == 0:
        site.response_s = mean_response_s(s)


@helper(f8(StateType, f8, f8))
def updated(s: State, old: float, measured: float) -> float:
    """The estimate after one more measurement. A median moves by a fixed factor: it rests where half of them are on each side
    (after Ma, Muthukrishnan and Sandler 2013, whose step is fixed)."""
    run = s.run[0]
    if not run.median:
        return old * run.alpha + measured * (1.0 - run.alpha)
    if old == 0.0 or run.alpha == 0.0:
        return measured
    if measured > old:
        return old / run.alpha
    return old * run.alpha if measured < old else old


@helper(void(StateType, i8, f8))
def measure_connection(s: State, x: int, measured: float) -> None:
    run = s.run[0]
    site = s.site[x]
    if site.connections == 0:
        site.connection_s = updated(s, mean_connection_s(s), measured)
        run.connection_total += site.connection_s
        run.connection_sites += 1
    else:
        old = site.connection_s
        site.connection_s = updated(s, old, measured)
        run.connection_total += site.connection_s - old
    site.connections += 1


@helper(void(StateType, i8, f8))
def measure_response(s: State, x: int, measured: float) -> None:
    run = s.run[0]
    site = s.site[x]
    if site.responses == 0:
        site.response_s = updated(s, mean_response_s(s), measured)
        run.response_total += site.response_s
        run.response_sites += 1
    else:
        old = site.response_s
        site.response_s = updated(s, old, measured)
        run.response_total += site.response_s - old
    site.responses += 1


# ---- the site's rank


@helper(f8(StateType, i8, i8))
def rank_site(s: State, x: int, level: int) -> float:
    show_means(s, x)
    q = s.queue[x, level]
    if not s.run[0].ages:
        q.oldest_serial = q.best_serial  # true where it matters: pages of equal rank are taken by age
    rank = call_site_rank(s.run[0].site_rank, View(s.run, s.page, s.columns), s.site[x], q)
    return checked(s, rank, SITE_RANK_FAULT, x)
