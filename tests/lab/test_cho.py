"""The experiments of `cho`. Each runs completely on a small web, and its verdicts follow from its numbers."""

from dataclasses import replace
from functools import cache

import pytest

from tests.effort import slow
from trapline.cli.reproduce.paper_page import drawn_chart
from trapline.graph import WebModel, build
from trapline.graph.strings import decoded
from trapline.lab.cho import overlap as cho_overlap
from trapline.lab.cho.communication import _of_filters, _of_replication
from trapline.lab.cho.coverage import ALL, HALF, _of_seeds, _of_sizes
from trapline.lab.cho.coverage import _notes as coverage_notes
from trapline.lab.cho.crawled_web import CrawledWeb, Setting
from trapline.lab.cho.measures import ChoNumbers, ChoStudy, Measured, Scale, numbers_of, part
from trapline.lab.cho.modes import JUDGED, MEASURES, MODES, _judged, _values
from trapline.lab.cho.overlap import _notes as overlap_notes
from trapline.lab.cho.overlap import _of_what_follows
from trapline.lab.cho.plan import cho
from trapline.lab.cho.quality import _of_sending
from trapline.lab.cho.regions import WAYS, difference, hierarchical, ratios, summary
from trapline.lab.paper import HOLDS, PaperItem
from trapline.lab.study import Study, StudyRun

SMALL = Scale(partitions=(1, 2, 4, 8, 64), crossing=(2, 4), seeds=(64, 512), exchanges=(0, 8, 64))


@cache
def web() -> CrawledWeb:
    return CrawledWeb("small", build(WebModel(1200, 150)))


@cache
def numbers(setting: Setting, draw: int) -> ChoNumbers:
    return numbers_of(web().crawl(setting, draw))


def study(scale: Scale = SMALL) -> ChoStudy:
    return ChoStudy(web(), 2, scale, numbers)


@cache
def runs() -> tuple[StudyRun, ...]:
    return tuple(cho([web()], 2, SMALL, (1, 2, 3, 4, 5, 6)).runs())


@cache
def found() -> dict[int, PaperItem]:
    plan = cho([web()], 2, SMALL, (1, 2, 3, 4, 5, 6))
    items = plan.paper(Study(None, "").results(runs(), lambda *_: None)).items
    return dict(enumerate(items, 1))


@slow
@pytest.mark.parametrize("number", range(1, 7))
def test_each_experiment_has_tables_and_verdicts(number: int) -> None:
    experiment = found()[number]
    assert experiment.name == f"experiment {number}" and experiment.claims
    for table in experiment.tables:
        assert table.rows and {len(row) for row in table.rows} == {len(table.head)}
    for chart in experiment.charts:
        for name, (x, y) in chart.curves.items():
            assert len(x) == len(y) == len(chart.spreads[name]) > 0 and max(x) < len(chart.x_names)


def test_every_crawl_runs_once_and_is_known_by_its_key() -> None:
    keys = [run.key for run in runs()]
    assert len(keys) > len(set(keys)) > 100  # experiments share crawls
    settings = [Setting("exchange", 2, kind="suffix", suffixes=((name, 0),)) for name in ("a", "b")]
    assert settings[0].name != settings[1].name and "seeds" not in settings[0].name


def test_items_and_charts_of_several_webs_have_names_of_their_own() -> None:
    parts = [part(cho_overlap.experiment, web(), 1, Scale(crossing=(2,)), label) for label in ("web 1", "web 2")]
    (first,), (second,) = (one.items({run.key: run.compute() for run in parts[0].runs}) for one in parts)
    assert (first.name, second.name) == ("experiment 2, web 1", "experiment 2, web 2")
    assert (first.charts[0].name, second.charts[0].name) == ("2-web-1", "2-web-2")


@slow
def test_no_exchange_and_firewall_are_the_same_crawl() -> None:
    """Quality with 0 exchanges equals that of firewall. One process needs no exchange."""
    _, large = found()[4].charts[2].curves["8 partitions"]
    settings = Setting("firewall", 8, strategy="backlink-count", most=240)
    assert large[0] == pytest.approx(sum(numbers(settings, draw).quality for draw in (0, 1)) / 2)


def test_overlap_begins_where_the_own_pages_of_a_partition_end() -> None:
    # Sites are alike, so that no partition waits early for links of its own.
    alike = CrawledWeb("alike", build(WebModel(1200, 150, site_contrast=0.0)))
    firewall = numbers_of(alike.crawl(Setting("firewall", 2), 0)).coverage
    crossing = numbers_of(alike.crawl(Setting("cross-over", 2, most=3 * 1200), 0))
    assert crossing.overlap_at(0.3 * firewall) == 0.0
    assert crossing.overlap_at(1.1) is None and max(crossing.overlaps) <= crossing.overlap + 1e-9


def test_verdicts_of_coverage_follow_the_numbers() -> None:
    falls = {float(n): [1.0 - 0.01 * n, 0.99 - 0.01 * n] for n in (1, 2, 4, 64)}
    rises = {n: [1.0 - value for value in values] for n, values in falls.items()}
    good, bad = (
        [one.verdict for one in _of_sizes({ALL: curve, HALF: curve})] for curve in (falls, rises)
    )  # fmt: skip
    assert good[1] == "holds" and bad[1] == "does not hold"
    assert good[3] == "holds" and bad[3] == "does not hold"


def test_good_means_near_one_process_and_bad_means_worse() -> None:
    found = {
        "one process": {"coverage": [1.0, 1.0], "overlap": [0.0, 0.0]},
        "firewall": {"coverage": [0.5, 0.5]},
        "cross-over": {"coverage": [1.0, 1.0], "overlap": [2.0, 2.0]},
    }
    cells = [("firewall", "coverage"), ("cross-over", "coverage"), ("cross-over", "overlap")]
    assert [_judged(found, *cell).verdict for cell in cells] == ["holds"] * 3  # bad, good, bad
    found["cross-over"]["coverage"] = [1.1, 1.1]
    assert _judged(found, "cross-over", "coverage").verdict == "holds"  # better than one process is good
    found["firewall"]["coverage"] = found["one process"]["coverage"]
    found["cross-over"] = {"coverage": [0.9, 0.9], "overlap": [0.005, 0.005]}
    assert [_judged(found, *cell).verdict for cell in cells] == ["does not hold"] * 3


def test_cells_that_follow_from_the_definition_of_a_mode_are_equal_by_it_and_not_judged() -> None:
    values = {mode: {name: _values(study(), mode, name) for name in MEASURES} for mode in (*MODES, "one process")}
    assert values["exchange"]["coverage"] == values["one process"]["coverage"]
    assert not any(values[mode][name] != [0.0, 0.0] for mode in ("firewall", "exchange") for name in ("overlap",))
    assert values["firewall"]["communication"] == values["cross-over"]["communication"] == [0.0, 0.0]
    judged = {(mode, name) for mode, name in JUDGED}
    assert len(judged) == 6 and not judged & {(mode, "communication") for mode in MODES}


def test_every_site_has_a_region_and_both_have_half_of_the_pages() -> None:
    graph = web().graph
    region = dict(hierarchical(graph))
    hosts = [name.split("://")[1] for name in decoded(graph.site_names or ())]  # type: ignore[arg-type]
    assert all(any(host.endswith(suffix) for suffix in region) for host in hosts)
    assert set(region.values()) == {0, 1}


def test_page_bodies_shrink_by_compression_and_by_differences() -> None:
    share, other = ratios(0), ratios(1)
    assert share != other
    assert list(share) == list(WAYS) and share["as they are"] == 1.0
    assert share["difference"] < share["compressed"] < 1.0
    assert difference(b"the same words again", b"the same words again") < len(b"the same words again")
    assert summary(b"once once once") == summary(b"once")


# ---- cases that are not judged


def claims(experiment: PaperItem) -> str:
    return "; ".join(one.text for one in experiment.claims)


def test_one_number_of_seeds_is_not_compared() -> None:
    """Otherwise the same numbers would be compared with themselves."""
    one, two = {64.0: [0.7, 0.8]}, {64.0: [0.7, 0.8], 512.0: [0.9, 0.9]}
    assert _of_seeds({"2 partitions": one, "64 partitions": one}) == []
    assert len(_of_seeds({"2 partitions": two, "64 partitions": two})) == 3
    assert coverage_notes(study()) == []
    assert "not judged" in coverage_notes(study(Scale(seeds=(64, 4096))))[0]


def test_shares_of_less_than_a_page_are_neither_replicated_nor_judged() -> None:
    """1/4000 of 1,200 pages is less than a page. Ten times this share would be compared with it."""
    experiment = found()[3]
    _, replicated, filters = experiment.charts
    assert list(replicated.x_names) == ["none", "1/1000", "1/400", "1/100", "1/10"]
    assert "1/4000" not in claims(experiment) and "Ten times" not in claims(experiment)
    assert "Replicating 1/400 of the pages" in claims(experiment)
    assert list(filters.x_names) == ["none", "1/64", "1/16", "all"]
    assert any("1/4000" in note for note in experiment.notes) and any("1/1024" in note for note in experiment.notes)


def test_savings_are_not_judged_where_no_url_is_sent() -> None:
    nothing = {float(at): [0.0, 0.0] for at in range(6)}
    assert _of_replication({"8 partitions": nothing}) == [] and _of_filters({"lru": nothing}) == []
    half = {0.0: [1.0, 1.0], **{float(at): [0.5, 0.5] for at in range(1, 6)}}
    assert len(_of_replication({"8 partitions": half})) == 3 and len(_of_filters({"lru": half})) == 1


def test_partitions_with_too_few_pages_are_not_judged() -> None:
    """After 1/80 of 1,200 pages, and for other orders with 64 partitions after 1/5."""
    experiment = found()[4]
    assert "1/80" not in claims(experiment) and "1/20" in claims(experiment)
    assert "Opic gains" not in claims(experiment)
    assert sum("not judged" in note.lower() for note in experiment.notes) == 2


def test_two_numbers_of_exchanges_that_give_the_same_crawl_are_not_compared() -> None:
    """240 pages on 64 partitions: with 4 and with 16 exchanges there is one exchange after each page."""
    rises, leaps = ({0.0: [0.0, 0.0], 1.0: [1.0, 1.0], 2.0: [many, many]} for many in (2.0, 9.0))
    (judged,) = _of_sending(study(Scale(exchanges=(0, 4, 16))), {"64 partitions": leaps, "2 partitions": rises})
    assert judged.verdict == HOLDS and judged.ours.startswith("2 partitions, 4 to 16")


def test_overlap_beyond_firewalls_coverage_is_judged_only_where_it_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the end of the crawl would be compared with itself."""
    assert [one.text for one in _of_what_follows(study())] == ["Beyond firewall's coverage overlap rises"]
    monkeypatch.setattr(cho_overlap, "BEFORE", 9.0)
    assert _of_what_follows(study()) == []
    assert "not judged with 2, 4 partitions" in overlap_notes(study())[0]


def test_sites_that_share_one_host_name_form_no_regions() -> None:
    """All sites would be in one region, and no link would cross regions."""
    names = tuple(f"http://localhost:{8000 + site}" for site in range(web().graph.sites))
    assert hierarchical(replace(web().graph, site_names=names)) == ()


def test_a_curve_without_values_is_in_the_table_and_not_in_the_chart() -> None:
    measured = Measured("2", "Overlap", "coverage", "overlap", {"some": {0.1: [1.0, 2.0], 0.2: [2.0, 3.0]}, "none": {}})
    assert measured.table().head == ["coverage", "some", "none"]
    assert [line.name for line in drawn_chart(measured.chart()).lines] == ["some"]
