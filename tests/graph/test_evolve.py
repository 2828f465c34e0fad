"""Laws of evolving webs: which pages live, which are new, which change, and that everything else stays the same."""

import hashlib
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from trapline.cli import run
from trapline.errors import ConfigError
from trapline.graph import EvolutionRates, Graph, Snapshot, WebModel, build, depths, evolve, load_graph, pagerank
from trapline.graph.graph import fault
from trapline.graph.sites import site_of

models = st.builds(
    lambda pages, share, seed, farms, calendars: WebModel(
        pages, max(1, int(pages * share)), seed, link_farms=farms, calendars=calendars
    ),
    st.integers(1, 200),
    st.floats(0, 1),
    st.integers(0, 99),
    st.just(0.0) | st.floats(0, 0.5),
    st.just(0.0) | st.floats(0, 0.5),
)
rates = st.builds(EvolutionRates, st.floats(0, 0.2), st.floats(0, 0.2), st.floats(0, 0.5), st.floats(0, 1))
ARRAYS = ("offsets", "targets", "site", "home", "dynamic", "ips", "sizes")


def urls_of(graph: Graph) -> list[str]:
    assert graph.urls is not None
    return [graph.urls[page] for page in range(graph.pages)]


def near(share: float, expected: float, count: int) -> bool:
    """Whether a share of `count` independent pages lies within four standard deviations."""
    return abs(share - expected) < 4 * math.sqrt(max(expected * (1 - expected), 1e-9) / count)


@given(models, rates, st.integers(0, 9))
@settings(max_examples=examples(40))
def test_every_snapshot_is_valid_and_reachable(model: WebModel, pace: EvolutionRates, seed: int) -> None:
    for snapshot in evolve(model, [0, 10, 40], pace, seed):
        web = snapshot.graph
        assert fault(web) is None
        assert depths(web).min() == 0
        assert len(snapshot.name) == len(snapshot.born_day) == len(snapshot.changes_per_day) == web.pages
        for page in range(web.pages):
            targets = web.targets_of(page).tolist()
            assert len(targets) == len(set(targets))


@given(models, rates)
@settings(max_examples=examples(40))
def test_a_page_keeps_its_url_and_its_rate_and_no_url_is_used_twice(model: WebModel, pace: EvolutionRates) -> None:
    known: dict[int, tuple[str, float, float]] = {}
    for snapshot in evolve(model, [0, 7, 30, 90], pace):
        urls = urls_of(snapshot.graph)
        assert [site_of(url) for url in urls] == [f"http://s{site:06d}.example" for site in snapshot.graph.site]
        assert ["?id=" in url for url in urls] == snapshot.graph.dynamic.astype(bool).tolist()
        traits = zip(urls, snapshot.changes_per_day.tolist(), snapshot.born_day.tolist(), strict=True)
        for name, trait in zip(snapshot.name.tolist(), traits, strict=True):
            assert known.setdefault(name, trait) == trait
    assert len({url for url, _, _ in known.values()}) == len(known)


@given(models, rates)
@settings(max_examples=examples(20))
def test_day_0_is_the_plain_web(model: WebModel, pace: EvolutionRates) -> None:
    (first,) = evolve(model, [0], pace, seed=5)
    plain = build(model)
    assert all(np.array_equal(getattr(first.graph, name), getattr(plain, name)) for name in ARRAYS)
    assert urls_of(first.graph) == urls_of(plain)


def test_dead_pages_do_not_return_and_home_pages_do_not_die() -> None:
    snapshots = list(evolve(WebModel(3_000, 100), [0, 20, 40, 60]))
    gone: set[int] = set()
    for before, after in pairwise(snapshots):
        gone |= set(before.name.tolist()) - set(after.name.tolist())
        assert not gone & set(after.name.tolist())
        assert (before.name[before.graph.home] == after.name[after.graph.home]).all()


def pair(days: float = 122, pages: int = 40_000) -> tuple[Snapshot, Snapshot]:
    before, after = evolve(WebModel(pages, 800), [0, days])
    return before, after


def test_shares_of_dead_and_new_pages_follow_from_the_rates() -> None:
    before, after = pair()
    pace = EvolutionRates()
    d, b, t = pace.deaths_per_day, pace.births_per_day, 122
    mortal = before.graph.pages - before.graph.sites
    left = np.isin(before.name, after.name).sum() - before.graph.sites
    assert near(left / mortal, 1 / (1 + d * t), mortal)
    born = b * t * before.graph.pages
    new = (after.born_day > 0).sum()
    assert near(new / born, math.log(1 + d * t) / (d * t), int(born))


def test_a_small_site_grows_in_small_steps_too() -> None:
    *_, last = evolve(WebModel(10, 1), range(301), EvolutionRates(births_per_day=0.005, deaths_per_day=0))
    assert 25 < last.graph.pages < 80  # 10 e^1.5 = 45


def test_sites_of_a_limited_web_stay_limited_at_equal_rates() -> None:
    # Births and deaths are in proportion to the size of a site, so that none outgrows the others.
    for snapshot in evolve(WebModel(20_000, 400, max_site_pages=200), [0, 61, 122]):
        assert np.bincount(snapshot.graph.site).max() < 1.25 * 200


def test_nothing_happens_at_rate_0() -> None:
    before, after = evolve(WebModel(500, 10), [0, 1000], EvolutionRates(0, 0, 0, 0))
    assert all(np.array_equal(getattr(before.graph, name), getattr(after.graph, name)) for name in ARRAYS[2:])
    for page in range(500):
        assert set(before.graph.targets_of(page)) == set(after.graph.targets_of(page))


def test_unchanged_pages_keep_their_links_to_living_pages() -> None:
    before, after = evolve(WebModel(2_000, 40), [0, 60])
    place = {name: page for page, name in enumerate(after.name.tolist())}
    counts = np.bincount(before.changes(0, 60).page, minlength=before.graph.pages)
    for page, name in enumerate(before.name.tolist()):
        if name in place and counts[page] == 0:
            kept = {place[target] for target in before.graph.targets_of(page).tolist() if target in place}
            assert kept <= set(after.graph.targets_of(place[name]).tolist())


def test_the_same_evolution_on_every_machine_compiled_or_not() -> None:
    # Recorded once. The value changes only when the model is changed on purpose; then the changelog must say so.
    digest = hashlib.sha256()
    for snapshot in evolve(WebModel(600, 20), [0, 30, 60]):
        for name in ARRAYS:
            digest.update(getattr(snapshot.graph, name).tobytes())
        digest.update(snapshot.changes(0, 365).day.tobytes())
    assert digest.hexdigest()[:16] == "d39ea1cc91d7c144"


def test_another_seed_is_another_history_of_the_same_web() -> None:
    (a, b), (c, d) = (evolve(WebModel(500, 10), [0, 50], seed=seed) for seed in (1, 2))
    assert np.array_equal(a.graph.targets, c.graph.targets)
    assert b.name.tolist() != d.name.tolist()


@given(st.floats(0, 100), st.floats(0, 100), st.floats(0, 100))
@settings(max_examples=examples(25))
def test_changes_of_two_intervals_are_those_of_both_together(one: float, two: float, three: float) -> None:
    a, b, c = sorted([one, two, three])
    (web,) = evolve(WebModel(60, 3), [0], EvolutionRates(changes_per_day=0.2))
    parts = [web.changes(a, b), web.changes(b, c)]
    whole = web.changes(a, c)
    assert sorted(zip(whole.page, whole.day, strict=True)) == sorted(
        event for part in parts for event in zip(part.page, part.day, strict=True)
    )
    assert all(a <= day < c for day in whole.day)


def test_pages_change_at_their_rates() -> None:
    (web,) = evolve(WebModel(20_000, 100), [0])
    assert web.changes_per_day.mean() == pytest.approx(0.01, rel=0.1)
    assert web.changes_per_day.var() / web.changes_per_day.mean() ** 2 == pytest.approx(5, rel=0.3)
    found = np.bincount(web.changes(0, 1000).page, minlength=web.graph.pages)
    # For a Poisson process the variance equals the mean.
    mean = web.changes_per_day * 1000
    assert found.sum() == pytest.approx(mean.sum(), rel=0.02)
    assert ((found - mean) ** 2).sum() == pytest.approx(mean.sum(), rel=0.1)


def test_no_page_changes_before_its_birth() -> None:
    _, after = pair(60, 5_000)
    events = after.changes(0, 200)
    assert (events.day >= after.born_day[events.page]).all()


def test_old_pages_hold_more_pagerank_than_their_share() -> None:
    _, after = pair()
    old = after.born_day == 0
    assert pagerank(after.graph)[old].sum() > old.mean() + 0.1


@pytest.mark.parametrize("name", ["births_per_day", "deaths_per_day", "changes_per_day", "links_redrawn"])
@pytest.mark.parametrize("value", [-0.1, 11.0, float("nan")])
def test_a_rate_out_of_range_is_named(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"--{name.replace('_', '-')} .* is out of range; give a number from 0 to"):
        EvolutionRates(**{name: value})


@pytest.mark.parametrize("days", [[-1], [5, 4], [float("nan")], [1e6]])
def test_days_must_ascend(days: list[float]) -> None:
    with pytest.raises(ConfigError, match="days"):
        list(evolve(WebModel(10, 1), days))


def command(out: Path, *options: str) -> list[str]:
    return ["graph", "generate", "--pages", "400", "--sites", "8", "-o", str(out), *options]


def test_the_command_writes_a_folder_for_each_snapshot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "webs"
    assert run(command(out, "--snapshots", "3", "--days", "40", "--deaths-per-day", "0.02")) == 0
    assert f"wrote {out / '2'}: day 80" in capsys.readouterr().out
    expected = evolve(WebModel(400, 8), [0, 40, 80], EvolutionRates(deaths_per_day=0.02))
    for number, snapshot in enumerate(expected):
        web = load_graph(out / str(number))
        assert np.array_equal(web.targets, snapshot.graph.targets)
        assert urls_of(web) == urls_of(snapshot.graph)
        assert (web.origin["format"], web.origin["day"]) == ("generated", 40.0 * number)
        assert web.origin["evolution"]["deaths_per_day"] == 0.02  # type: ignore[index]


def test_snapshots_of_two_webs_are_not_mixed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command(tmp_path / "webs", "--snapshots", "3")) == 0
    assert run(command(tmp_path / "webs", "--snapshots", "3")) == 2
    assert run(command(tmp_path / "webs", "--snapshots", "2", "--replace")) == 2
    assert run(command(tmp_path / "webs", "--snapshots", "3", "--replace")) == 0
    assert run(command(tmp_path / "one")) == 0
    assert run(command(tmp_path / "one", "--snapshots", "2", "--replace")) == 2
    assert run(command(tmp_path / "other", "--snapshots", "2", "--days", "0")) == 2
    assert all(line.count("\n") <= 1 for line in capsys.readouterr().err.splitlines())
    assert not (tmp_path / "other").exists()
