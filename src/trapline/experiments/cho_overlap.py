"""Experiment 2 of `cho`: how often pages are fetched again, by how much of the web is fetched, where partitions follow links to pages
of others once they have run out of their own (cross-over), and where nobody knows of anybody (independent).

A crawl ends after so many fetches as `MOST_FETCHES` times the pages: by then coverage has all but ended to grow, and overlap goes on.
"""

import numpy as np

from trapline.experiments.charts import Chart, Curve, Experiment, Verdict
from trapline.experiments.cho_study import Study, coverage
from trapline.experiments.cho_web import Found, Setting
from trapline.experiments.judgement import UNDECIDED, Judged, Values, all_hold, larger, near

MOST_FETCHES = 3
REACHED = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 0.99)
ZERO, BEFORE = 0.01, 0.98  # overlap that counts as none; "until": at so much of what firewall reaches
CROSS_OVER, INDEPENDENT = "cross-over", "independent"


def setting(study: Study, mode: str, n: int) -> Setting:
    return Setting(mode, n, most=MOST_FETCHES * study.pages)


def overlap_at(found: Found, reached: float) -> float | None:
    """When so large a share of all pages had come in; None: it never had."""
    at = int(np.searchsorted(found.course[0], reached))
    return float(found.course[1, at]) if at < found.course.shape[1] else None


def experiment(study: Study) -> Experiment:
    curves = {
        f"{mode}, {n} partitions": _curve(study, mode, n) for mode in (CROSS_OVER, INDEPENDENT) for n in study.crossing
    }
    chart = Chart("2", "Pages fetched again", "coverage so far", "overlap", curves)
    verdicts = [
        Verdict(
            f"cross-over: overlap stays 0 (at most {ZERO:g}) until coverage is {BEFORE:g} of firewall's",
            all_hold([(f"{n} partitions", _none_before(study, n)) for n in study.crossing]),
        ),
        *_of_what_follows(study),
        Verdict("independent partitions overlap more, at half the pages", _independent_is_worse(study, 0.5)),
        Verdict("and at firewall's coverage", _worse_at_firewall(study)),
    ]
    return Experiment(2, "Overlap in cross-over mode", [chart], verdicts, _notes(study))


def _notes(study: Study) -> list[str]:
    left = [n for n in study.scale.crossing if n not in study.crossing]
    short = [n for n in study.crossing if not _came_so_far(study, n)]
    said = {
        "not run with {} partitions: each would have to know every page": left,
        f"what follows firewall's coverage is not judged with {{}} partitions: cross-over did not come to {BEFORE:g} of it": short,
    }
    return [text.format(", ".join(map(str, numbers))) for text, numbers in said.items() if numbers]


def _curve(study: Study, mode: str, n: int) -> Curve:
    """Where every draw came so far."""
    found = {reached: _overlaps(study, mode, n, reached) for reached in REACHED}
    return {reached: values for reached, values in found.items() if values is not None}


def _overlaps(study: Study, mode: str, n: int, reached: float) -> Values | None:
    found = study.values(setting(study, mode, n), lambda one: _or_nan(overlap_at(one, reached)))
    return None if any(np.isnan(found)) else found


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _at_firewall(study: Study, mode: str, n: int, part: float) -> Values:
    """Overlap where coverage is this part of what firewall reached from the same seeds; where it was never, at the end."""
    reached = study.values(Setting("firewall", n), coverage)
    found = []
    for draw, end in enumerate(reached):
        one = study.web.crawl(setting(study, mode, n), draw)
        at = overlap_at(one, part * end)
        found.append(float(one.course[1, -1]) if at is None else at)
    return found


def _none_before(study: Study, n: int) -> Judged:
    found = _at_firewall(study, CROSS_OVER, n, BEFORE)
    return near(found, [0.0] * len(found), ZERO)


def _came_so_far(study: Study, n: int) -> bool:
    """Whether cross-over reached in every draw what `_at_firewall` looks at; else that is its end."""
    reached = study.values(Setting("firewall", n), coverage)
    crawls = [study.web.crawl(setting(study, CROSS_OVER, n), draw) for draw in range(study.draws)]
    return all(overlap_at(one, BEFORE * end) is not None for one, end in zip(crawls, reached, strict=True))


def _of_what_follows(study: Study) -> list[Verdict]:
    parts = [(f"{n}", _rises_after(study, n)) for n in study.crossing if _came_so_far(study, n)]
    return [Verdict("beyond firewall's coverage it rises", all_hold(parts))] if parts else []


def _rises_after(study: Study, n: int) -> Judged:
    ends = study.values(setting(study, CROSS_OVER, n), lambda one: float(one.course[1, -1]))
    return larger(ends, _at_firewall(study, CROSS_OVER, n, BEFORE))


def _independent_is_worse(study: Study, reached: float) -> Judged:
    parts = []
    for n in study.crossing:
        one, other = (_overlaps(study, mode, n, reached) for mode in (INDEPENDENT, CROSS_OVER))
        if one is not None and other is not None:
            parts.append((f"{n} partitions", larger(one, other)))
    return all_hold(parts) if parts else Judged(UNDECIDED, "no draw came so far")


def _worse_at_firewall(study: Study) -> Judged:
    return all_hold(
        [
            (f"{n} partitions", larger(*(_at_firewall(study, mode, n, BEFORE) for mode in (INDEPENDENT, CROSS_OVER))))
            for n in study.crossing
        ]
    )
