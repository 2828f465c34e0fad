"""Freshness by inspection: at every moment of a fine grid, is there a copy that no update has overtaken?"""

from collections.abc import Mapping, Sequence

Fetch = tuple[int, float, float]  # page, time of the request, time of the answer


def fresh(updates: Sequence[float], fetches: Sequence[Fetch], page: int, at_s: float) -> bool:
    """Whether some copy of the page that exists at this moment equals the page at this moment."""
    copies = [requested_s for one, requested_s, answered_s in fetches if one == page and answered_s <= at_s]
    return any(not any(requested_s < update <= at_s for update in updates) for requested_s in copies)


def freshness(
    updates: Mapping[int, Sequence[float]],
    born_s: Sequence[float],
    fetches: Sequence[Fetch],
    weights: Sequence[float],
    grid: Sequence[float],
) -> tuple[float, float]:
    """Two shares of the weight over the moments of the grid: of all pages that are fresh, and of copies that are fresh."""
    found = there = copied = 0.0
    for page, weight in enumerate(weights):
        for at_s in grid:
            there += weight * (born_s[page] <= at_s)
            copied += weight * any(one == page and answered_s <= at_s for one, _, answered_s in fetches)
            found += weight * fresh(updates[page], fetches, page, at_s)
    return found / there if there else 0.0, found / copied if copied else 0.0
