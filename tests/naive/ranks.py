"""The page ranks and site ranks that the oracle knows, written from their formulas.

A page rank keeps what it learns in the page's `columns`, so that a page that moves takes it along. A site rank is a
function of the site's record and of the site's queue. `reads` names the values whose change requires a new evaluation.

"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

Twin = TypeVar("Twin")


class Queue(NamedTuple):
    """The values of the waiting pages of a site that a site rank sees."""

    waiting: int
    best_key: float
    best_serial: int
    oldest_serial: int
    planned: int
    quality_sum: float

    def read(self, names: tuple[str, ...]) -> tuple[object, ...]:
        """The values that `names` declare. `best` is a pair."""
        values = self._asdict() | {"best": (self.best_key, self.best_serial), "oldest": self.oldest_serial}
        return tuple(values[name] for name in names)


class PageRank(NamedTuple):
    constant: bool
    rank: Callable[[Any, int, int, int, bool], float]
    inputs: tuple[str, ...] = ()  # columns that the caller gives
    scores: str | None = None  # the column that takes the caller's scores
    batched: bool = False  # whether every batch is chosen by fresh scores
    hands_on: str = ""  # the column of which a link carries a share
    learns: bool = False  # whether it is called for fetched pages too


class SiteRank(NamedTuple):
    reads: tuple[str, ...]
    rank: Callable[[Any, int, Queue], float]


# Page ranks.

LINK_WEIGHT, OWN_WEIGHT, FOUND_WEIGHT = 1.0, 0.5, 0.5  # of quality-by-directory


def columns_of(frontier: Any, page: int) -> dict[str, float]:
    columns: dict[str, float] = frontier.pages[page].columns
    return columns


def rank_of(frontier: Any, page: int) -> float:
    return float(frontier.pages[page].rank)


def equal(frontier: Any, page: int, source: int, links: int, is_new: bool) -> float:
    return 0.0


def shallow_first(frontier: Any, page: int, source: int, links: int, is_new: bool) -> float:
    return -float(frontier.pages[page].depth)


def links_seen(frontier: Any, page: int, source: int, links: int, is_new: bool) -> float:
    """Every link of a fetched page counts, also a second link of the same page."""
    columns = columns_of(frontier, page)
    before = 0.0 if is_new else columns["links"]
    columns["links"] = before + (1.0 if source >= 0 else 0.0)
    return columns["links"]


def cash(frontier: Any, page: int, source: int, links: int, is_new: bool) -> float:
    """Cash: 1 for a new page. A fetched page gives each of its links an equal share of its own cash."""
    columns = columns_of(frontier, page)
    if is_new:
        columns["cash"] = 1.0
    if source >= 0:
        columns["cash"] += columns_of(frontier, source)["cash"] / links
    return columns["cash"]


def learned_cash(frontier: Any, page: int, source: int, links: int, is_new: bool) -> float:
    """Cash, and what the fetched pages of two groups have more than all fetched pages: those of the page's directory, and
    those found from the directory that found the page. A group of which few pages were fetched gets a bonus."""
    own = columns_of(frontier, page)
    if is_new:
        own["cash"] = 1.0
        if source >= 0 and columns_of(frontier, source).get("was_fetched"):
            own["finding_page"] = columns_of(frontier, source)["directory_page"]
    if source == page and links == 0:
        own["was_fetched"] = 1.0
        arrived = own["cash"]
    else:
        share = columns_of(frontier, source)["cash"] / links if source >= 0 else 0.0
        own["cash"] += share
        arrived = share if own.get("was_fetched") else 0.0
    everything = [(0, "all"), (int(own["directory_page"]), "own")]
    everything += [(int(own["finding_page"]), "found")] if "finding_page" in own else []
    for keeper, group in everything:
        state = columns_of(frontier, keeper)
        state[f"{group}_cash"] = state.get(f"{group}_cash", 0.0) + arrived
        state[f"{group}_fetched"] = state.get(f"{group}_fetched", 0.0) + (source == page and links == 0)
    sums = [
        (columns_of(frontier, at).get(f"{of}_cash", 0.0), columns_of(frontier, at).get(f"{of}_fetched", 0.0))
        for at, of in everything
    ]
    (cash_of_all, number_of_all), *groups = sums
    mean = (cash_of_all + 1.0) / (number_of_all + 1.0)
    groups += [(1e12 * mean, 1e12)] if len(groups) == 1 else []
    (own_cash, own_number), (found_cash, found_number) = groups
    bonus = 0.3 / (1.0 + own_number) + 0.1 / (1.0 + found_number)
    learned = 0.1 * ((own_cash - own_number * mean) / (own_number + 3.0)) + 0.3 * (
        (found_cash - found_number * mean) / (found_number + 3.0)
    )
    return own["cash"] - 1.0 + learned + max(0.0, mean - 1.0) * bonus


def learned_cash_and_history(frontier: Any, page: int, source: int, links: int, is_new: bool) -> float:
    """The learned cash, and 0.3 times the mean cash for each multiple above 1 of the mean PageRank of the older crawl."""
    own = columns_of(frontier, page)
    directory = columns_of(frontier, int(own["directory_page"]))
    if is_new and own["history_relative"] >= 0:
        directory["old_pages"] = directory.get("old_pages", 0.0) + 1
        directory["old_history"] = directory.get("old_history", 0.0) + own["history_relative"]
    rank = learned_cash(frontier, page, source, links, is_new)
    history = own["history_relative"]
    if history < 0:
        history = (directory.get("old_history", 0.0) + 3.0) / (directory.get("old_pages", 0.0) + 3.0)
    everyone = columns_of(frontier, 0)
    mean = (everyone.get("all_cash", 0.0) + 1.0) / (everyone.get("all_fetched", 0.0) + 1.0)
    return rank + 0.3 * mean * (history - 1.0)


def is_here(frontier: Any, source: int) -> bool:
    """Whether the link is on a page of this frontier, and not on one of another partition."""
    return source >= 0 and frontier.pages[source].site >= 0


def first_parent(frontier: Any, page: int, source: int, links: int, is_new: bool) -> float:
    """The quality of the page that linked first, or what was expected of that page."""
    own = columns_of(frontier, page)
    if is_new and is_here(frontier, source):
        own["finding_page"] = source + 1.0
        own["expected"] = columns_of(frontier, source)["expected"]
    elif is_new:
        own["expected"] = 1.0
    if own.get("finding_page") == source + 1 and source >= 0:
        quality = columns_of(frontier, source)["fetched_quality"]
        own["expected"] = quality if quality >= 0 else own["expected"]
    return own["expected"]


def mean_of_parents(frontier: Any, page: int, source: int, links: int, is_new: bool) -> float:
    """The mean over the links of pages with a known quality."""
    own = columns_of(frontier, page)
    if is_new:
        own["expected"] = columns_of(frontier, source)["expected"] if is_here(frontier, source) else 1.0
    if is_here(frontier, source) and (quality := columns_of(frontier, source)["fetched_quality"]) >= 0:
        own["parent_sum"] = own.get("parent_sum", 0.0) + quality
        own["parents"] = own.get("parents", 0.0) + 1
        own["expected"] = own["parent_sum"] / own["parents"]
    return own["expected"]


def learned_quality(frontier: Any, page: int, source: int, links: int, is_new: bool) -> float:
    """The common mean, and what three groups of pages have more: those with a link to the page, those of its directory, and
    those found from the directory that found the page."""
    own = columns_of(frontier, page)
    if is_new and is_here(frontier, source):
        own["finding_page"] = columns_of(frontier, source)["directory_page"] + 1
    keepers = [(0, "all"), (int(own["directory_page"]), "own"), (int(own.get("finding_page", 0)) - 1, "found")]
    if source == page and links == 0:
        for keeper, group in keepers:
            if own["fetched_quality"] >= 0 and keeper >= 0:
                state = columns_of(frontier, keeper)
                state[f"{group}_sum"] = state.get(f"{group}_sum", 0.0) + own["fetched_quality"]
                state[f"{group}_pages"] = state.get(f"{group}_pages", 0.0) + 1
    elif is_here(frontier, source) and (quality := columns_of(frontier, source)["fetched_quality"]) >= 0:
        own["link_sum"] = own.get("link_sum", 0.0) + quality
        own["link_pages"] = own.get("link_pages", 0.0) + 1
    states = {group: columns_of(frontier, keeper) if keeper >= 0 else {} for keeper, group in keepers} | {"link": own}
    sums = {
        group: (state.get(f"{group}_sum", 0.0), state.get(f"{group}_pages", 0.0)) for group, state in states.items()
    }
    mean = (sums["all"][0] + 1.0) / (sums["all"][1] + 1.0)
    more = {group: (total - number * mean) / (number + 3.0) for group, (total, number) in sums.items()}
    return mean + LINK_WEIGHT * more["link"] + OWN_WEIGHT * more["own"] + FOUND_WEIGHT * more["found"]


def last_score(frontier: Any, page: int, source: int, links: int, is_new: bool) -> float:
    """A page discovered after the last scores has none, whatever the caller gave for it."""
    if is_new:
        columns_of(frontier, page)["score"] = 0.0
    return columns_of(frontier, page)["score"]


def score_or_estimate(frontier: Any, page: int, source: int, links: int, is_new: bool) -> float:
    """The score if there is one (> 0). Otherwise the sum of the shares of the pages that link to it, each as of the
    fetch that found the link."""
    columns = columns_of(frontier, page)
    if is_new:
        columns["score"] = 0.0
        columns["estimate"] = 1.0 if source < 0 and not frontier.times_scored else 0.0
    if source >= 0:
        columns["estimate"] += estimated_rank(columns_of(frontier, source)) / links
    return estimated_rank(columns)


def estimated_rank(columns: dict[str, float]) -> float:
    return columns["score"] if columns["score"] > 0 else columns["estimate"]


def old_or_known(frontier: Any, page: int, source: int, links: int, is_new: bool) -> float:
    """The value in the old crawl. A page that the old crawl did not have (-1) takes its value in the present web."""
    columns = columns_of(frontier, page)
    return columns["history"] if columns["history"] >= 0 else columns["pagerank"]


def old_or_zero(frontier: Any, page: int, source: int, links: int, is_new: bool) -> float:
    return max(columns_of(frontier, page)["history"], 0.0)


def old_or_share(frontier: Any, page: int, source: int, links: int, is_new: bool) -> float:
    """A page that the old crawl did not have takes a share of the page that led to it."""
    history = columns_of(frontier, page)["history"]
    if history >= 0:
        return history
    return rank_of(frontier, source) / links if source >= 0 else 0.0


def given(column: str) -> Callable[[Any, int, int, int, bool], float]:
    def rank(frontier: Any, page: int, source: int, links: int, is_new: bool) -> float:
        return columns_of(frontier, page)[column]

    return rank


def mixed(value: int) -> int:
    """Wellons' hash: (15, 0x2c1b3c6d, 12, 0x297a2d39, 15), on 32 bits."""
    for shift, factor in ((15, 0x2C1B3C6D), (12, 0x297A2D39)):
        value = (value ^ value >> shift) * factor % 2**32
    return value ^ value >> 15


def uniform(seed: int, number: int) -> float:
    return mixed(mixed(number % 2**32) ^ mixed((seed + 1) % 2**32)) / 2**32


def stroke(frontier: Any, page: int, source: int, links: int, is_new: bool) -> float:
    """A clock that strikes after an exponential time, counted from the stroke of the page that led to this page."""
    begin = -rank_of(frontier, source) if source >= 0 else 0.0
    return -(begin - math.log(1.0 - uniform(frontier.seed, frontier.pages[page].serial)))


PAGE_RANKS = {
    "fifo": PageRank(constant=True, rank=equal),
    "depth": PageRank(constant=True, rank=shallow_first),
    "backlink-count": PageRank(constant=False, rank=links_seen),
    "opic": PageRank(constant=False, rank=cash, hands_on="cash"),
    "opic-by-directory": PageRank(False, learned_cash, inputs=("directory_page",), hands_on="cash", learns=True),
    "historical-opic-by-directory": PageRank(
        False, learned_cash_and_history, inputs=("directory_page", "history_relative"), hands_on="cash", learns=True
    ),
    "batch-pagerank": PageRank(constant=True, rank=last_score, scores="score", batched=True),
    "partial-pagerank": PageRank(constant=False, rank=score_or_estimate, scores="score"),
    "historical-pagerank-omniscient": PageRank(True, old_or_known, inputs=("history", "pagerank")),
    "historical-pagerank-random": PageRank(True, given("history_random"), inputs=("history_random",)),
    "historical-pagerank-zero": PageRank(True, old_or_zero, inputs=("history",)),
    "historical-pagerank-parent": PageRank(True, old_or_share, inputs=("history",), hands_on="value"),
    "omniscient": PageRank(constant=True, rank=given("pagerank"), inputs=("pagerank",)),
    "quality": PageRank(constant=True, rank=given("quality"), inputs=("quality",)),
    "parent-quality": PageRank(constant=False, rank=first_parent, inputs=("fetched_quality",)),
    "mean-parent-quality": PageRank(constant=False, rank=mean_of_parents, inputs=("fetched_quality",)),
    "quality-by-directory": PageRank(False, learned_quality, inputs=("directory_page", "fetched_quality"), learns=True),
    "random": PageRank(constant=True, rank=stroke),
}


# Site ranks.


def visit_s(frontier: Any, site: int, queue: Queue) -> float:
    """T = 2 * connection + planned * response / p, at least 1 ns (cao 4.2)."""
    p = 1.2 if frontier.rules.pipelining else 1.0
    return float(max(2.0 * frontier.connection_s(site) + queue.planned * frontier.response_s(site) / p, 1e-9))


def visit_and_rest_s(frontier: Any, site: int, queue: Queue) -> float:
    return visit_s(frontier, site, queue) + float(frontier.delay_s(site))


def crawl_ability(frontier: Any, site: int, queue: Queue) -> float:
    return queue.quality_sum / visit_s(frontier, site, queue)


def diminishing(frontier: Any, site: int, queue: Queue) -> float:
    return crawl_ability(frontier, site, queue) * (100.0 / (100.0 + frontier.taken(site)))


SITE_RANKS = {
    "fifo": SiteRank(("oldest",), lambda f, site, queue: -float(queue.oldest_serial)),
    "fifo-turn": SiteRank((), lambda f, site, queue: -float(f.sites[site].turn)),
    "top-page": SiteRank(("best",), lambda f, site, queue: queue.best_key),
    "larger-sites-first": SiteRank(("waiting",), lambda f, site, queue: float(queue.waiting)),
    "performance": SiteRank(("planned",), lambda f, site, queue: queue.planned / visit_s(f, site, queue)),
    "performance-and-delay": SiteRank(
        ("planned",), lambda f, site, queue: queue.planned / visit_and_rest_s(f, site, queue)
    ),
    "crawl-ability": SiteRank(("planned", "quality_sum"), crawl_ability),
    "crawl-ability-and-delay": SiteRank(
        ("planned", "quality_sum"), lambda f, site, queue: queue.quality_sum / visit_and_rest_s(f, site, queue)
    ),
    "crawl-ability-diminishing": SiteRank(("planned", "quality_sum"), diminishing),
    # Page serials are >= 0, so no page uses these numbers.
    "random": SiteRank(("best",), lambda f, site, queue: uniform(f.seed, -1 - queue.best_serial)),
}


def twin_of_page_rank(name: str) -> PageRank:
    return _twin(PAGE_RANKS, "page rank", name)


def twin_of_site_rank(name: str) -> SiteRank:
    return _twin(SITE_RANKS, "site rank", name)


def _twin(twins: Mapping[str, Twin], kind: str, name: str) -> Twin:
    assert name in twins, (
        f"tests/naive/ranks.py has no twin of {kind} {name!r}: add one to {kind.upper().replace(' ', '_')}S"
    )
    return twins[name]
