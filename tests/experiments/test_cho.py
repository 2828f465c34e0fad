"""The experiments of `cho`: that each runs whole on a small web, and that verdicts follow from numbers."""

from functools import cache

import pytest

from trapline.experiments.charts import Experiment
from trapline.experiments.cho import reproduce
from trapline.experiments.cho_coverage import ALL, HALF, _of_sizes
from trapline.experiments.cho_modes import _judged
from trapline.experiments.cho_overlap import overlap_at
from trapline.experiments.cho_regions import WAYS, difference, hierarchical, ratios, summary
from trapline.experiments.cho_study import Scale
from trapline.experiments.cho_web import CrawledWeb, Setting
from trapline.graph import WebModel, build
from trapline.graph.strings import decoded

SMALL = Scale(partitions=(1, 2, 4, 8, 64), crossing=(2, 4), seeds=(64, 512), exchanges=(0, 8, 64))


@cache
def web() -> CrawledWeb:
    return CrawledWeb("small", build(WebModel(1200, 150)))


@cache
def found() -> dict[int, Experiment]:
    told: list[tuple[int, int]] = []
    every = reproduce(web(), 2, SMALL, (1, 2, 3, 4, 5, 6), lambda done, total, note: told.append((done, total)))
    assert told[-1] == (6, 6) and told == sorted(told)
    return {one.number: one for one in every.experiments}


@pytest.mark.parametrize("number", range(1, 7))
def test_each_has_charts_and_verdicts_with_a_value_a_draw(number: int) -> None:
    experiment = found()[number]
    assert experiment.verdicts
    for chart in experiment.charts:
        assert chart.curves
        for curve in chart.curves.values():
            assert all(len(values) == 2 for values in curve.values())


def test_no_exchange_and_firewall_are_the_same_crawl() -> None:
    """Quality with 0 exchanges is that of firewall, and one process needs none."""
    large = found()[4].charts[2].curves
    firewall = web().crawl(Setting("firewall", 8, strategy="backlink-count", most=240), 1)
    assert large["8 partitions"][0.0][1] == firewall.quality


def test_overlap_begins_where_own_pages_end() -> None:
    firewall = web().crawl(Setting("firewall", 2), 0).record.coverage_of_graph
    crossing = web().crawl(Setting("cross-over", 2, most=3 * 1200), 0)
    assert overlap_at(crossing, 0.3 * firewall) == 0.0
    assert overlap_at(crossing, 1.1) is None


def test_verdicts_of_coverage_follow_the_numbers() -> None:
    falls = {float(n): [1.0 - 0.01 * n, 0.99 - 0.01 * n] for n in (1, 2, 4, 64)}
    rises = {n: [1.0 - value for value in values] for n, values in falls.items()}
    good, bad = (
        [one.judged.verdict for one in _of_sizes({ALL: curve, HALF: curve})] for curve in (falls, rises)
    )  # fmt: skip
    assert good[1] == "holds" and bad[1] == "does not hold"
    assert good[3] == "holds" and bad[3] == "does not hold"


def test_good_is_as_the_best_and_bad_is_worse() -> None:
    found = {
        "firewall": {"coverage": [0.5, 0.5], "overlap": [0.0, 0.0]},
        "cross-over": {"coverage": [1.0, 1.0], "overlap": [2.0, 2.0]},
        "exchange": {"coverage": [1.0, 1.0], "overlap": [0.0, 0.0]},
    }
    assert _judged(found, "firewall", "coverage").verdict == "holds"  # bad, and it is
    assert _judged(found, "exchange", "coverage").verdict == "holds"  # good, and it is
    assert _judged(found, "cross-over", "overlap").verdict == "holds"
    found["firewall"]["coverage"] = [1.0, 1.0]
    assert _judged(found, "firewall", "coverage").verdict == "does not hold"


def test_every_site_has_a_region_and_both_have_half_of_the_pages() -> None:
    graph = web().graph
    region = dict(hierarchical(graph))
    hosts = [name.split("://")[1] for name in decoded(graph.site_names or ())]  # type: ignore[arg-type]
    assert all(any(host.endswith(suffix) for suffix in region) for host in hosts)
    assert set(region.values()) == {0, 1}


def test_pages_get_smaller_on_their_way() -> None:
    share = ratios()
    assert list(share) == list(WAYS) and share["as they are"] == 1.0
    assert share["difference"] < share["compressed"] < 1.0
    assert difference(b"the same words again", b"the same words again") < len(b"the same words again")
    assert summary(b"once once once") == summary(b"once")
