"""The interface between the frontier and a strategy: it calls the strategy's two functions by address and checks the ranks.

A page rank is `page_rank(s, page, source, links, is_new) -> float`. It may keep numbers for each page in `s.columns[page,
c]`. A site rank is `site_rank(s, site, queue) -> float`. It reads the records of the site and of the queue (layout.py) and
changes nothing.
"""

import dis
from collections.abc import Callable

from trapline.compiled.jit import Rank, b1, caller3, caller5, f8, helper, i8, void
from trapline.errors import ConfigError
from trapline.frontier.layout import (
    PAGE_RANK_FAULT,
    RANK_LIMIT,
    SITE_RANK_FAULT,
    FrontierState,
    QueueRecord,
    RankView,
    SiteRecord,
    StateType,
    ViewType,
)
from trapline.units import counted

PAGE_RANK = f8(ViewType, i8, i8, i8, b1)
SITE_RANK = f8(ViewType, SiteRecord, QueueRecord)
call_page_rank = caller5(PAGE_RANK)
call_site_rank = caller3(SITE_RANK)


_GUIDE = "see docs/how-to/add-a-strategy.md"
_PAGE_FIELDS = ("page", "columns", "depth", "tries", "serial", "site")
_PAGE_GUIDE = (
    "s.page[page] has depth, tries, serial and site; what a page rank can know of a URL are inputs, such as url_length and"
    f" url_segments; {_GUIDE}, What a rank can know of a URL"
)
_QUEUE_FIELDS = ("waiting", "best_key", "best_serial", "oldest_serial", "planned", "quality_sum")
_SITE_FIELDS = ("connection_s", "response_s", "requests", "failures", "known", "taken", "delay_s", "turn")
_SITE_GUIDE = f"a site rank reads the fields of `site` and `queue`; {_GUIDE}, Site ranks"


def _ours(function: Callable[..., float]) -> bool:
    # Only our own ranks are cached. A user's file may import other files, and the cache would not notice a change in those.
    # A rank compiles in less than a second.
    return function.__module__.startswith("trapline.")


def _check_stores(function: Callable[..., float], forbidden: tuple[str, ...], allowed: str) -> None:
    """Raise ConfigError if a rank contains a forbidden store instruction: writing into the frontier's records could crash the process."""
    for step in dis.get_instructions(function):
        if step.opname in forbidden:
            raise ConfigError(f"rank function {function.__name__!r} changes a record or array; {allowed}")


def _check_parameters(function: Callable[..., float], kind: str, parameters: str) -> None:
    number, name = function.__code__.co_argcount, function.__name__
    if number != len(parameters.split()):
        raise ConfigError(
            f"rank function {name!r} has {counted(number, 'parameter')}; a {kind} rank is: def {name}({parameters})"
        )


def page_rank(function: Callable[..., float]) -> Rank:
    """Compile a page rank. Use it as a decorator."""
    _check_parameters(function, "page", "s, page, source, links, is_new")
    _check_stores(function, ("STORE_ATTR",), "a page rank may change its own s.columns[page, i] and nothing else")
    return Rank(function, PAGE_RANK, _ours(function), _PAGE_FIELDS, _PAGE_GUIDE)


def site_rank(function: Callable[..., float]) -> Rank:
    """Compile a site rank. Use it as a decorator."""
    _check_parameters(function, "site", "s, site, queue")
    _check_stores(function, ("STORE_ATTR", "STORE_SUBSCR"), "a site rank may change nothing")
    return Rank(function, SITE_RANK, _ours(function), _QUEUE_FIELDS + _SITE_FIELDS, _SITE_GUIDE)


@helper(f8(StateType, f8, i8, i8))
def checked(s: FrontierState, rank: float, fault: int, item: int) -> float:
    """Return the rank if it is valid, else 0: NaN must never reach a heap. The first fault is recorded; Python raises it."""
    if -RANK_LIMIT < rank < RANK_LIMIT:
        return rank
    run = s.run[0]
    if run.fault == 0:
        run.fault = fault
        run.fault_item = item
    return 0.0


@helper(f8(f8, i8))
def penalised(rank: float, tries: int) -> float:
    """Return the rank with its penalty: each failed try halves a positive rank and doubles a negative one. Powers of two round nothing."""
    if rank > 0.0:
        return rank * 0.5**tries
    return rank * 2.0**tries


@helper(f8(StateType, i8, i8, i8, b1))
def rank_page(s: FrontierState, page: int, source: int, links: int, is_new: bool) -> float:
    """Return the page's rank by the strategy, with the penalty of its failed tries."""
    rank = call_page_rank(s.run[0].page_rank, RankView(s.run, s.page, s.columns), page, source, links, is_new)
    rank = checked(s, rank, PAGE_RANK_FAULT, page)
    tries = s.page[page].tries
    return penalised(rank, tries) if tries else rank


# ---- estimates (cao 4.2)


@helper(f8(StateType))
def mean_connection_s(s: FrontierState) -> float:
    """Return the mean connection time over the measured sites, or the rules' first value if no site was measured."""
    run = s.run[0]
    return run.connection_total / run.connection_sites if run.connection_sites else run.first_connection_s


@helper(f8(StateType))
def mean_response_s(s: FrontierState) -> float:
    """Return the mean response time over the measured sites, or the rules' first value if no site was measured."""
    run = s.run[0]
    return run.response_total / run.response_sites if run.response_sites else run.first_response_s


@helper(void(StateType, i8))
def show_means(s: FrontierState, x: int) -> None:
    """Set the times of a site that was never measured to the means. The paper does not say what to do with such a site."""
    site = s.site[x]
    if site.connections == 0:
        site.connection_s = mean_connection_s(s)
    if site.responses == 0:
        site.response_s = mean_response_s(s)


@helper(f8(StateType, f8, f8))
def updated(s: FrontierState, old: float, measured: float) -> float:
    """Return the estimate after one more measurement.

    A median estimate moves by a fixed factor. It settles where half of the measurements are on each side (after Ma,
    Muthukrishnan and Sandler 2013, whose step is a fixed amount).
    """
    run = s.run[0]
    if not run.median:
        return old * run.alpha + measured * (1.0 - run.alpha)
    if old == 0.0 or run.alpha == 0.0:
        return measured
    if measured > old:
        return old / run.alpha
    return old * run.alpha if measured < old else old


@helper(void(StateType, i8, f8))
def measure_connection(s: FrontierState, x: int, measured: float) -> None:
    """Update the site's estimated connection time, and the total over all sites."""
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
def measure_response(s: FrontierState, x: int, measured: float) -> None:
    """Update the site's estimated response time, and the total over all sites."""
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
def rank_site(s: FrontierState, x: int, level: int) -> float:
    """Return the site's rank by the strategy, for its front queue or its backlog."""
    show_means(s, x)
    q = s.queue[x, level]
    if not s.run[0].ages:
        # Correct where it matters: pages of equal rank are taken by age. Where ranks differ, run.ages is set if the site rank reads it.
        q.oldest_serial = q.best_serial
    rank = call_site_rank(s.run[0].site_rank, RankView(s.run, s.page, s.columns), s.site[x], q)
    return checked(s, rank, SITE_RANK_FAULT, x)
