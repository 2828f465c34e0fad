"""Experiment 2 of `cho`: the overlap, that is how often pages are fetched more than once, by the coverage so far.

In cross-over mode a partition follows links to pages of other partitions once it has no pages of its own left. In
independent mode the partitions do not know of each other. A crawl ends after `MOST_FETCHES` times as many fetches as there
are pages: by then coverage hardly grows any more, while overlap still does.
"""

import numpy as np

from trapline.lab.cho.crawled_web import Setting
from trapline.lab.cho.measures import ChoNumbers, ChoStudy, Curve, Measured, coverage, item, overlap
from trapline.lab.paper import PaperClaim, PaperItem, Values, close, every, more

MOST_FETCHES = 3
REACHED = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 0.99)
# Overlap that counts as none; "until": at this share of the coverage that firewall mode reaches
ZERO, BEFORE = 0.01, 0.98
CROSS_OVER, INDEPENDENT = "cross-over", "independent"


def setting(study: ChoStudy, mode: str, n: int) -> Setting:
    """Return the setting of a crawl of this experiment."""
    return Setting(mode, n, most=MOST_FETCHES * study.pages)


def experiment(study: ChoStudy) -> PaperItem:
    """Run the experiment."""
    curves = {
        f"{mode}, {n} partitions": _curve(study, mode, n) for mode in (CROSS_OVER, INDEPENDENT) for n in study.crossing
    }
    chart = Measured("2", "Pages fetched again", "coverage so far", "overlap", curves)
    none = {f"{n} partitions": _none_before(study, n) for n in study.crossing}
    text = f"Cross-over: overlap stays 0 (at most {ZERO:g}) until coverage is {BEFORE:g} of firewall's"
    claims = [every(text, "0", none), *_of_what_follows(study), *_independent_is_worse(study, 0.5)]
    worse = {f"{n} partitions": _worse_at_firewall(study, n) for n in study.crossing}
    claims.append(every("Independent partitions overlap more than cross-over at firewall's coverage", "more", worse))
    return item(2, "Overlap in cross-over mode", study, [chart], claims, _notes(study))


def _notes(study: ChoStudy) -> list[str]:
    left = [n for n in study.scale.crossing if n not in study.crossing]
    short = [n for n in study.crossing if not _came_so_far(study, n)]
    said = {
        "Not run with {} partitions: each would have to know every page.": left,
        f"Overlap beyond firewall's coverage is not judged with {{}} partitions: cross-over did not reach {BEFORE:g} of it.": short,
    }
    return [text.format(", ".join(map(str, numbers))) for text, numbers in said.items() if numbers]


def _curve(study: ChoStudy, mode: str, n: int) -> Curve:
    """Return the overlap by coverage, where the crawls of all draws reached that coverage."""
    found = {reached: _overlaps(study, mode, n, reached) for reached in REACHED}
    return {reached: values for reached, values in found.items() if values is not None}


def _overlaps(study: ChoStudy, mode: str, n: int, reached: float) -> Values | None:
    overlaps = study.values(setting(study, mode, n), lambda crawl: _or_nan(crawl.overlap_at(reached)))
    return None if any(np.isnan(overlaps)) else overlaps


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _crawls(study: ChoStudy, mode: str, n: int) -> list[ChoNumbers]:
    return [study.numbers(setting(study, mode, n), draw) for draw in range(study.draws)]


def _at_firewall(study: ChoStudy, mode: str, n: int, part: float) -> Values:
    """Return the overlap when the coverage is this part of the coverage of firewall mode with the same seeds.

    If a crawl never reaches that coverage, its overlap at the end counts.
    """
    ends = study.values(Setting("firewall", n), coverage)
    pairs = [(crawl, crawl.overlap_at(part * end)) for crawl, end in zip(_crawls(study, mode, n), ends, strict=True)]
    return [crawl.overlap if found is None else found for crawl, found in pairs]


def _none_before(study: ChoStudy, n: int) -> PaperClaim:
    found = _at_firewall(study, CROSS_OVER, n, BEFORE)
    return close(found, [0.0] * len(found), ZERO)


def _came_so_far(study: ChoStudy, n: int) -> bool:
    """Return whether cross-over mode reached in every draw the coverage that `_at_firewall` needs, so that the end of the crawl is not used
    in its place."""
    ends = study.values(Setting("firewall", n), coverage)
    pairs = zip(_crawls(study, CROSS_OVER, n), ends, strict=True)
    return all(crawl.overlap_at(BEFORE * end) is not None for crawl, end in pairs)


def _of_what_follows(study: ChoStudy) -> list[PaperClaim]:
    parts = {f"{n} partitions": _rises_after(study, n) for n in study.crossing if _came_so_far(study, n)}
    return [every("Beyond firewall's coverage overlap rises", "rises", parts)] if parts else []


def _rises_after(study: ChoStudy, n: int) -> PaperClaim:
    return more(study.values(setting(study, CROSS_OVER, n), overlap), _at_firewall(study, CROSS_OVER, n, BEFORE))


def _independent_is_worse(study: ChoStudy, reached: float) -> list[PaperClaim]:
    parts = {}
    for n in study.crossing:
        independent, crossing = (_overlaps(study, mode, n, reached) for mode in (INDEPENDENT, CROSS_OVER))
        if independent is not None and crossing is not None:
            parts[f"{n} partitions"] = more(independent, crossing)
    text = "Independent partitions overlap more than cross-over at half of the pages"
    return [every(text, "more", parts)] if parts else []


def _worse_at_firewall(study: ChoStudy, n: int) -> PaperClaim:
    return more(*(_at_firewall(study, mode, n, BEFORE) for mode in (INDEPENDENT, CROSS_OVER)))
