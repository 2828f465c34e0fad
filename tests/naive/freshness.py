"""Freshness by looking: at every moment of a fine grid, is there a copy that no update has overtaken?"""

from collections.abc import Mapping, Sequence

Fetch = tuple[int, float, float]  # page, asked, had


def fresh(updates: Sequence[float], fetches: Sequence[Fetch], page: int, at_s: float) -> bool:
    """Whether some copy of the page that is there at this moment is as the page is then."""
    copies = [asked for one, asked, had in fetches if one == page and had <= at_s]
    return any(not any(asked < update <= at_s for update in updates) for asked in copies)


def freshness(
    updates: Mapping[int, Sequence[float]],
    born_s: Sequence[float],
    fetches: Sequence[Fetch],
    weights: Sequence[float],
    grid: Sequence[float],
) -> tuple[float, float]:
    """Of all pages, and of copies: shares of the weight found at the moments of the grid."""
    found = there = copied = 0.0
    for page, weight in enumerate(weights):
        for at_s in grid:
            there += weight * (born_s[page] <= at_s)
            copied += weight * any(one == page and had <= at_s for one, _, had in fetches)
            found += weight * fresh(updates[page], fetches, page, at_s)
    return found / there if there else 0.0, found / copied if copied else 0.0
