"""Changes between two runs of a crawl: other rules, another strategy, waiting pages that leave the scope or return to it.

Each change is one call, and the log has it like every other call. So a log that goes across a change gives the same state again
when it is replayed. The caller ends all visits before it changes the rules or the strategy. Laws: docs/frontier.md, X1 to X4.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from trapline.compiled.jit import helper, i8, kernel, void
from trapline.errors import ConfigError, InvariantError
from trapline.frontier.core import kernels
from trapline.frontier.core.core import Core
from trapline.frontier.core.learning import learn_page
from trapline.frontier.journal import Call
from trapline.frontier.layout import (
    BY_DELAY,
    FIFO,
    GONE,
    UNKNOWN,
    WAITING,
    Array,
    FrontierState,
    Pages,
    StateType,
    Times,
    recall,
)
from trapline.frontier.ranking import rank_page
from trapline.frontier.rules import ESTIMATORS, Rules

if TYPE_CHECKING:
    from trapline.strategies import Strategy

# ---- rules


def rules_as_numbers(rules: Rules) -> Array:
    """Return the rules as one row, in the order of their fields, for the log of calls."""
    values = (getattr(rules, field.name) for field in fields(rules))
    return np.array([_number(value) for value in values])


def _number(value: float | str | None) -> float:
    if value is None:
        return np.nan
    return float(ESTIMATORS.index(value)) if isinstance(value, str) else float(value)


def rules_from_numbers(row: Array) -> Rules:
    """Return the rules that `rules_as_numbers` made the row from."""
    given: dict[str, float | int | bool | str | None] = {}
    for field, value in zip(fields(Rules), row.tolist(), strict=True):
        kind = type(field.default)
        given[field.name] = None if value != value else ESTIMATORS[int(value)] if kind is str else value
        if kind in (int, bool):
            given[field.name] = kind(value)
    return Rules(**given)  # type: ignore[arg-type]


def change_rules(frontier: Core, rules: Rules, now: float) -> None:
    """Replace the rules, and delay every site by its delay from `now` on."""
    _check_no_visits(frontier, "change_rules")
    if (rules.batch > 0) != (frontier.rules.batch > 0):
        raise ConfigError(
            "a resumed crawl cannot switch batches on or off; give the batch options that it began with, or begin a new crawl"
        )
    row = rules_as_numbers(rules)
    frontier.note(Call.CHANGE_RULES, row, len(row), now)
    run, s = frontier.state.run[0], frontier.state
    frontier.set_rules(rules)
    run.rescore_at = (run.fetched // rules.rescore + 1) * rules.rescore if rules.rescore else 0
    # A delay that began under the old rules is replaced by that of the new ones; a back-off and Retry-After stay.
    sites, groups = s.site[: frontier.sites], s.group[: int(run.groups)]
    sites["ready_at"][sites["delay_rule"] == BY_DELAY] = -np.inf
    groups["ready_at"] = -np.inf
    frontier.run_kernel(kernels.hold_sites, now)


def _check_no_visits(frontier: Core, call: str) -> None:
    if frontier.state.run[0].active:
        raise InvariantError(f"{call}: {frontier.state.run[0].active} visits are under way; finish them first")


# ---- the strategy


class StrategyChange(NamedTuple):
    """Another strategy, and what its page rank would know if it had ranked the crawl from the beginning."""

    strategy: "Strategy"
    inputs: Mapping[str, Array]  # of the page rank: a value for every registered page
    links: Iterable[tuple[int, Array]]  # each fetched page with the pages that it links to, in the order of the fetches


def change_strategy(frontier: Core, change: StrategyChange, number: int, fetches: int, now: float) -> None:
    """Replace the strategy, and rank all waiting pages by the new one. `number` and `fetches` are for the log: the number by
    which the caller finds this strategy again, and the number of fetches whose links it was given."""
    _check_no_visits(frontier, "change_strategy")
    if frontier.rules.batch == 0 and change.strategy.page.batched:
        raise ConfigError(
            f"strategy {change.strategy.name!r} chooses pages in batches, which this crawl does not have; begin a new crawl"
        )
    frontier.note(Call.CHANGE_STRATEGY, None, 0, number, fetches, now)
    waiting = _emptied(frontier, frontier.state.state[: frontier.pages] == WAITING, now)
    columns = np.zeros((len(frontier.state.page), max(1, len(change.strategy.page.columns))))
    frontier.adopt(frontier.state._replace(columns=columns), change.strategy)
    frontier.strategy_number = number
    run = frontier.state.run[0]
    if frontier.rules.rescore:
        run.rescore_at = run.fetched  # new scores are due at once
    for name, values in change.inputs.items():
        columns[: len(values), change.strategy.page.columns.index(name)] = values
    keys = _ranked(frontier, waiting, change.links)
    _queue_again(frontier, waiting, keys, now)


def _ranked(frontier: Core, waiting: Array, links: Iterable[tuple[int, Array]]) -> Array:
    """Return the rank of each waiting page, after all links that lead to it."""
    keys = np.zeros(frontier.pages)
    if frontier.state.run[0].queue == FIFO:
        return keys[waiting]
    met = np.zeros(frontier.pages, np.int32)
    for source, targets in links:
        own = np.array(targets, np.int32)  # a copy: links that were read from the database cannot be written to
        frontier.run_kernel(rank_links, source, own, len(own), met, keys)
    frontier.run_kernel(rank_rest, waiting, met, keys)
    return keys[waiting]


NOT_MET, RANKED, HAD = 0, 1, 2  # what `met` says of a page: no link led to it so far; it has a rank; it was fetched


@helper(void(StateType, i8, i8, i8, Pages, Times))
def rank_one(s: FrontierState, page: int, source: int, links: int, met: Array, keys: Array) -> None:
    """Rank a page that a link leads to, unless it was fetched before."""
    if met[page] == NOT_MET or (met[page] == RANKED and not s.run[0].constant):
        keys[page] = rank_page(s, page, source, links, met[page] == NOT_MET)
        met[page] = RANKED
    elif met[page] == HAD and s.run[0].learns:
        rank_page(s, page, source, links, False)


@kernel(i8(i8, i8, Pages, i8, Pages, Times))
def rank_links(handle: int, source: int, pages: Array, n: int, met: Array, keys: Array) -> int:
    """Rank the pages that a fetched page links to, as `report` did when it was fetched. Return 0."""
    s: FrontierState = recall(handle)
    rank_one(s, source, -1, 0, met, keys)
    met[source] = HAD
    if s.run[0].learns:
        learn_page(s, source)
    for i in range(n):
        if pages[i] >= 0:
            rank_one(s, pages[i], source, n, met, keys)
    return 0


@kernel(i8(i8, Pages, Pages, Times))
def rank_rest(handle: int, pages: Array, met: Array, keys: Array) -> int:
    """Rank pages that no link led to: seeds, and pages of sitemaps. Return 0."""
    s: FrontierState = recall(handle)
    for page in pages:
        if met[page] == NOT_MET:
            rank_one(s, page, -1, 0, met, keys)
    return 0


# ---- pages out of scope


def withdraw(frontier: Core, pages: Sequence[int] | Array, now: float) -> None:
    """Make WAITING and UNKNOWN pages GONE, so that no link brings them back. Waiting ones leave their queues."""
    given = np.unique(np.ascontiguousarray(pages, np.int32))
    _check_no_visits(frontier, "withdraw")
    _check_states(frontier, given, (UNKNOWN, WAITING), "withdraw")
    frontier.note(Call.WITHDRAW, given, len(given), now)
    s = frontier.state
    sites = np.unique(s.page["site"][given[s.state[given] == WAITING]])
    keys = np.zeros(frontier.pages)
    for site in sites.tolist():
        for level in range(s.queue.shape[1]):
            waiting, ranks = frontier.waiting_pages(site, level)
            keys[waiting] = ranks
    is_there = np.zeros(frontier.pages, np.bool_)
    is_there[np.isin(s.page["site"][: frontier.pages], sites)] = True
    stay = _emptied(frontier, is_there & (s.state[: frontier.pages] == WAITING), now)
    stay = stay[~np.isin(stay, given)]
    _queue_again(frontier, stay, keys[stay], now)
    s.state[given] = GONE
    s.run[0].gone += len(given)


def readmit(frontier: Core, pages: Sequence[int] | Array, now: float) -> None:
    """Make GONE pages UNKNOWN again, so that a link can bring them back."""
    given = np.unique(np.ascontiguousarray(pages, np.int32))
    _check_states(frontier, given, (GONE,), "readmit")
    frontier.note(Call.READMIT, given, len(given), now)
    frontier.state.state[given] = UNKNOWN
    frontier.state.run[0].gone -= len(given)


def _check_states(frontier: Core, pages: Array, states: tuple[int, ...], call: str) -> None:
    if len(pages) and not (pages[0] >= 0 and pages[-1] < frontier.pages):
        raise InvariantError(f"{call}: a page is not registered; there are pages 0..{frontier.pages - 1}")
    if not np.isin(frontier.state.state[pages], states).all():
        raise InvariantError(f"{call}: a page is in none of the states {states}; give only pages that are")


# ---- queues


def _emptied(frontier: Core, chosen: Array, now: float) -> Array:
    """Empty the queues of the sites of these pages, which are all their waiting pages. Return the pages, the oldest first."""
    s, run = frontier.state, frontier.state.run[0]
    pages = np.flatnonzero(chosen).astype(np.int32)
    pages = pages[np.argsort(s.page["serial"][pages], kind="stable")]
    of_site = s.page["site"][pages]
    by_site, sites = pages[np.argsort(of_site, kind="stable")], np.unique(of_site)
    firsts, lasts = (np.searchsorted(np.sort(of_site), sites, side).tolist() for side in ("left", "right"))
    for site, first, last in zip(sites.tolist(), firsts, lasts, strict=True):
        record, own = s.site[site], np.ascontiguousarray(by_site[first:last])
        budget = int(record.budget)
        frontier.run_kernel(kernels.empty_site, site, own, len(own), now)
        record.budget = budget
        record.known -= len(own)  # `admit_pages` counts them again
        frontier.run_kernel(kernels.change_site, site, int(record.group), now)
    run.gone -= len(pages)
    s.state[pages] = UNKNOWN
    return pages


def _queue_again(frontier: Core, pages: Array, keys: Array, now: float) -> None:
    """Queue pages with these keys, in this order."""
    frontier.run_kernel(kernels.admit_pages, pages, np.ascontiguousarray(keys), len(pages), now)
