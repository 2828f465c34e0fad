"""Experiment 2 of `cho`: the overlap, that is how often pages are fetched more than once, by the coverage so far.

In cross-over mode a partition follows links to pages of other partitions once it has no pages of its own left. In
independent mode the partitions do not know of each other. A crawl ends after `MOST_FETCHES` times as many fetches as there
are pages: by then coverage hardly grows any more, while overlap still does.
"""

import numpy as np

from trapline.lab.cho_web import ChoStudy, CrawlResult, Setting, coverage
from trapline.lab.judgement import (
    UNDECIDED,
    ClaimVerdict,
    Curve,
    Experiment,
    ExperimentChart,
    JudgedClaim,
    Values,
    all_hold,
    larger,
    near,
)

MOST_FETCHES = 3
REACHED = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 0.99)
# Overlap that counts as none; "until": at this share of the coverage that firewall mode reaches
ZERO, BEFORE = 0.01, 0.98
CROSS_OVER, INDEPENDENT = "cross-over", "independent"


def setting(study: ChoStudy, mode: str, n: int) -> Setting:
    """Return the setting of a crawl of this experiment."""
    return Setting(mode, n, most=MOST_FETCHES * study.pages)


def overlap_at(found: CrawlResult, reached: float) -> float | None:
    """Return the overlap when this share of all pages was fetched; None: the crawl never fetched as many."""
    at = int(np.searchsorted(found.course[0], reached))
    return float(found.course[1, at]) if at < found.course.shape[1] else None


def experiment(study: ChoStudy) -> Experiment:
    """Run the experiment."""
    curves = {
        f"{mode}, {n} partitions": _curve(study, mode, n) for mode in (CROSS_OVER, INDEPENDENT) for n in study.crossing
    }
    chart = ExperimentChart("2", "Pages fetched again", "coverage so far", "overlap", curves)
    verdicts = [
        ClaimVerdict(
            f"cross-over: overlap stays 0 (at most {ZERO:g}) until coverage is {BEFORE:g} of firewall's",
            all_hold([(f"{n} partitions", _none_before(study, n)) for n in study.crossing]),
        ),
        *_of_what_follows(study),
        ClaimVerdict("independent partitions overlap more, at half the pages", _independent_is_worse(study, 0.5)),
        ClaimVerdict("and at firewall's coverage", _worse_at_firewall(study)),
    ]
    return Experiment(2, "Overlap in cross-over mode", [chart], verdicts, _notes(study))


def _notes(study: ChoStudy) -> list[str]:
    left = [n for n in study.scale.crossing if n not in study.crossing]
    short = [n for n in study.crossing if not _came_so_far(study, n)]
    said = {
        "not run with {} partitions: each would have to know every page": left,
        f"what follows firewall's coverage is not judged with {{}} partitions: cross-over did not come to {BEFORE:g} of it": short,
    }
    return [text.format(", ".join(map(str, numbers))) for text, numbers in said.items() if numbers]


def _curve(study: ChoStudy, mode: str, n: int) -> Curve:
    """Return the overlap by coverage, where the crawls of all draws reached that coverage."""
    found = {reached: _overlaps(study, mode, n, reached) for reached in REACHED}
    return {reached: values for reached, values in found.items() if values is not None}


def _overlaps(study: ChoStudy, mode: str, n: int, reached: float) -> Values | None:
    overlaps = study.values(setting(study, mode, n), lambda crawl: _or_nan(overlap_at(crawl, reached)))
    return None if any(np.isnan(overlaps)) else overlaps


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _at_firewall(study: ChoStudy, mode: str, n: int, part: float) -> Values:
    """Return the overlap when the coverage is this part of the coverage of firewall mode with the same seeds.

    If a crawl never reaches that coverage, its overlap at the end counts.
    """
    reached = study.values(Setting("firewall", n), coverage)
    overlaps = []
    for draw, end in enumerate(reached):
        crawl = study.web.crawl(setting(study, mode, n), draw)
        overlap = overlap_at(crawl, part * end)
        overlaps.append(float(crawl.course[1, -1]) if overlap is None else overlap)
    return overlaps


def _none_before(study: ChoStudy, n: int) -> JudgedClaim:
    found = _at_firewall(study, CROSS_OVER, n, BEFORE)
    return near(found, [0.0] * len(found), ZERO)


def _came_so_far(study: ChoStudy, n: int) -> bool:
    """Return whether cross-over mode reached in every draw the coverage that `_at_firewall` needs, so that the end of the crawl is not used
    in its place."""
    reached = study.values(Setting("firewall", n), coverage)
    crawls = [study.web.crawl(setting(study, CROSS_OVER, n), draw) for draw in range(study.draws)]
    return all(overlap_at(crawl, BEFORE * end) is not None for crawl, end in zip(crawls, reached, strict=True))


def _of_what_follows(study: ChoStudy) -> list[ClaimVerdict]:
    parts = [(f"{n}", _rises_after(study, n)) for n in study.crossing if _came_so_far(study, n)]
    return [ClaimVerdict("beyond firewall's coverage it rises", all_hold(parts))] if parts else []


def _rises_after(study: ChoStudy, n: int) -> JudgedClaim:
    ends = study.values(setting(study, CROSS_OVER, n), lambda crawl: float(crawl.course[1, -1]))
    return larger(ends, _at_firewall(study, CROSS_OVER, n, BEFORE))


def _independent_is_worse(study: ChoStudy, reached: float) -> JudgedClaim:
    parts = []
    for n in study.crossing:
        independent, crossing = (_overlaps(study, mode, n, reached) for mode in (INDEPENDENT, CROSS_OVER))
        if independent is not None and crossing is not None:
            parts.append((f"{n} partitions", larger(independent, crossing)))
    return all_hold(parts) if parts else JudgedClaim(UNDECIDED, "no draw came so far")


def _worse_at_firewall(study: ChoStudy) -> JudgedClaim:
    return all_hold(
        [
            (f"{n} partitions", larger(*(_at_firewall(study, mode, n, BEFORE) for mode in (INDEPENDENT, CROSS_OVER))))
            for n in study.crossing
        ]
    )
