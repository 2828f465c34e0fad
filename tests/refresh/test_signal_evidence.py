"""Signals and published points of a live crawl: how far each channel is trusted, and the level of a page."""

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.refresh.live_refresher import STARTED, open_frontier
from trapline.compiled.jit import DISABLED
from trapline.refresh import Refresher, policy_named
from trapline.refresh.core.evidence import MOST_COUNTED
from trapline.refresh.core.layout import UNVERIFIED
from trapline.refresh.live.channels import MOST_POINTS

INDEXNOW, SITEMAP, SCHEDULE, CACHE = 0, 2, 4, 5
DAY_S = 86_400.0


def refresher_with(pages: int, sites: int = 1, policy: str = "residual-life") -> Refresher:
    refresher = Refresher(policy_named(policy), STARTED)
    for page in range(pages):
        refresher.join(page, page % sites, STARTED)
    return refresher


def outcome(refresher: Refresher, page: int, channel: int, now: float, true: bool, p: float = 1.0) -> None:
    refresher.signalled(page, channel, now, now, p)
    refresher.crawled(page, now + 10.0, true)


# ---- levels


def test_a_site_is_normal_until_its_channel_sends_a_signal() -> None:
    refresher = refresher_with(4, sites=2)
    refresher.signalled(0, INDEXNOW, STARTED + 100.0, STARTED + 100.0)
    levels = [refresher.explain(page, STARTED + 100.0)["level"] for page in range(4)]
    assert levels == ["smart", "normal", "smart", "normal"]
    refresher.join(5, 1, STARTED + 101.0)
    refresher.join(6, 0, STARTED + 101.0)
    assert [refresher.explain(page, STARTED + 101.0)["level"] for page in (5, 6)] == ["normal", "smart"]


def test_a_page_is_super_while_points_lie_ahead() -> None:
    refresher, now = refresher_with(1), STARTED + 10.0
    refresher.publish(0, SCHEDULE, [(STARTED + 100.0, 0.9), (STARTED + 300.0, 0.9)], now)
    assert refresher.explain(0, now)["level"] == "super"
    assert refresher.explain(0, now)["next_point"] == {"at": STARTED + 100.0, "p": pytest.approx(0.9)}
    assert refresher.next_moment() <= STARTED + 100.0
    refresher.accessed(0, STARTED + 150.0)
    assert refresher.explain(0, STARTED + 150.0)["next_point"]["at"] == STARTED + 300.0
    refresher.accessed(0, STARTED + 301.0)
    assert refresher.explain(0, STARTED + 301.0)["level"] == "normal"


def test_a_cache_expiry_is_not_a_promise() -> None:
    """Otherwise every page with a cache header would count as one whose updates are all known."""
    refresher = refresher_with(1)
    refresher.publish(0, CACHE, [(STARTED + 100.0, 0.05)], STARTED + 1.0)
    assert refresher.explain(0, STARTED + 1.0)["level"] == "normal"
    assert refresher.explain(0, STARTED + 1.0)["next_point"]["at"] == STARTED + 100.0


# ---- which signals count


def test_repeated_signals_within_a_minute_count_once() -> None:
    refresher = refresher_with(1)
    for after_s in (100.0, 130.0, 159.0, 161.0, 170.0):
        refresher.signalled(0, INDEXNOW, STARTED + after_s, STARTED + after_s)
    assert refresher.explain(0, STARTED + 170.0)["signals"] == 2
    refresher.crawled(0, STARTED + 171.0, True)
    refresher.signalled(0, INDEXNOW, STARTED + 180.0, STARTED + 180.0)
    assert refresher.explain(0, STARTED + 180.0)["signals"] == 1  # the copy is older than the signal


@settings(max_examples=examples(20), deadline=None)
@given(
    st.sampled_from(["residual-life", "ncis", "lambda-crawl", "xu"]),
    st.lists(st.tuples(st.integers(0, 39), st.floats(0.0, 500.0), st.floats(0.0, 59.0)), min_size=1, max_size=40),
)
def test_repeated_pings_change_a_counter_and_nothing_else(policy: str, copies: list[tuple[int, float, float]]) -> None:
    """Whatever page they name, one with a signal since its copy or one with a younger copy. `copies`: page, time of
    arrival, and how much later than the first signal they date the change."""
    now, refreshers = STARTED + 50_000.0, [refresher_with(40, 4, policy) for _ in range(2)]
    for refresher in refreshers:
        for page in range(40):
            outcome(refresher, page, INDEXNOW, STARTED + 1_000.0 * (page + 1), true=page % 3 > 0)
        for page in range(0, 40, 2):
            refresher.signalled(page, INDEXNOW, now, now)
    copied, alone = refreshers
    for page, after_s, later_s in sorted(copies, key=lambda one: one[1]):
        copied.signalled(page, INDEXNOW, now + after_s, now + later_s if page % 2 == 0 else STARTED + later_s)
    for refresher in refreshers:
        refresher.accessed(0, now + 1_000.0, 0.0)  # time passes
    counted = [refresher.memory.whole.trust["received"].copy() for refresher in refreshers]
    assert counted[0].sum() == counted[1].sum() + len(copies)
    for refresher in refreshers:
        refresher.memory.whole.trust["received"] = 0
    for name, array in copied.memory.whole._asdict().items():
        np.testing.assert_array_equal(array, getattr(alone.memory.whole, name), name)


def test_of_two_channels_with_the_same_signal_the_more_trusted_counts() -> None:
    refresher = refresher_with(1)
    for step in range(1, 8):
        outcome(refresher, 0, SITEMAP, STARTED + 1_000.0 * step, true=False)
    refresher.signalled(0, SITEMAP, STARTED + 9_000.0, STARTED + 9_000.0)
    doubted = refresher.explain(0, STARTED + 9_001.0)["trust"]
    refresher.signalled(0, INDEXNOW, STARTED + 9_002.0, STARTED + 9_002.0)
    believed = refresher.explain(0, STARTED + 9_003.0)
    assert doubted["channel"] == SITEMAP and doubted["precision"] < 0.6
    assert believed["trust"]["channel"] == INDEXNOW and believed["signals"] == 1
    assert believed["trust"]["precision"] > doubted["precision"]


def test_a_signal_older_than_the_last_crawl_is_ignored() -> None:
    refresher = refresher_with(1)
    refresher.crawled(0, STARTED + 1_000.0, False)
    refresher.signalled(0, SITEMAP, STARTED + 2_000.0, STARTED + 500.0)
    assert refresher.explain(0, STARTED + 2_000.0)["signals"] == 0
    refresher.signalled(0, SITEMAP, STARTED + 2_000.0, STARTED + 990.0)  # clocks differ
    assert refresher.explain(0, STARTED + 2_000.0)["signals"] == 1


def test_an_unverified_sender_changes_no_level_and_always_has_little_trust() -> None:
    refresher = refresher_with(2)
    refresher.signalled(0, INDEXNOW, STARTED + 10.0, STARTED + 10.0, p=0.05)
    assert refresher.explain(0, STARTED + 10.0)["level"] == "normal"
    refresher.signalled(1, SITEMAP, STARTED + 11.0, STARTED + 11.0)
    for step in range(1, 60):
        outcome(refresher, 0, INDEXNOW, STARTED + 1_000.0 * step, true=True, p=0.05)
    refresher.signalled(0, INDEXNOW, STARTED + 70_000.0, STARTED + 70_000.0, p=0.05)
    trust = refresher.explain(0, STARTED + 70_000.0)["trust"]
    assert trust["unverified"] and trust["precision"] == UNVERIFIED and trust["judged_by"] > 50.0


# ---- providers that lie


def test_a_lying_channel_is_ignored_and_counts_again_after_it_improves() -> None:
    refresher, frontier, now = refresher_with(40), open_frontier(1), STARTED
    for step in range(40):
        now = STARTED + 1_000.0 * (step + 1)
        outcome(refresher, step, INDEXNOW, now, true=False)
    assert {refresher.explain(page, now)["level"] for page in range(40)} == {"normal"}
    followed, signals = 0, 300 if DISABLED else 2_000
    for step in range(signals):
        now += 1_000.0
        page = step % 40
        refresher.signalled(page, INDEXNOW, now, now)
        if refresher.explain(page, now)["signals"]:
            followed += 1
            assert refresher.explain(page, now)["trust"]["audited"]
            refresher.crawled(page, now + 1.0, False)
            assert refresher.explain(page, now + 1.0)["level"] == "normal"
    assert 0.01 < followed / signals < 0.05
    sent = 0
    while refresher.explain(0, now)["level"] == "normal":
        now, sent = now + 1_000.0, sent + 1
        page = sent % 40
        refresher.signalled(page, INDEXNOW, now, now)
        if refresher.explain(page, now)["signals"]:
            refresher.crawled(page, now + 1.0, True)
        assert sent < 2_000
    trust = refresher.explain(0, now)["trust"]
    assert not trust["struck_out"]
    assert frontier.pages == 0


def test_only_the_lying_channel_loses_trust() -> None:
    refresher = refresher_with(20, sites=2)
    believed = []
    for step in range(1, 25):
        outcome(refresher, 0, INDEXNOW, STARTED + 1_000.0 * step, true=False)
        outcome(refresher, 1, INDEXNOW, STARTED + 1_000.0 * step, true=True)
        believed.append(refresher.explain(0, STARTED + 1_000.0 * step)["trust"]["precision"])
    assert believed == sorted(believed, reverse=True) and believed[-1] < 0.25
    assert refresher.explain(1, STARTED + 30_000.0)["trust"]["precision"] > 0.8


def test_a_second_channel_does_not_change_what_was_learned_of_the_first() -> None:
    refresher = refresher_with(3, sites=3)
    for step in range(1, 10):
        outcome(refresher, 0, INDEXNOW, STARTED + 1_000.0 * step, true=step % 2 == 0)
    refresher.signalled(1, SITEMAP, STARTED + 20_000.0, STARTED + 20_000.0)
    first = refresher.explain(0, STARTED + 20_000.0)["trust"]["precision"]
    for step in range(1, 10):
        outcome(refresher, 1, SITEMAP, STARTED + 20_000.0 + 1_000.0 * step, true=True)
    later = refresher.explain(0, STARTED + 40_000.0)["trust"]["precision"]
    assert later == pytest.approx(first, abs=0.06)
    refresher.signalled(2, SITEMAP, STARTED + 41_000.0, STARTED + 41_000.0)
    new = refresher.explain(2, STARTED + 41_000.0)["trust"]["precision"]
    refresher.crawled(2, STARTED + 41_001.0, True)
    refresher.signalled(2, INDEXNOW, STARTED + 42_000.0, STARTED + 42_000.0)
    assert new > refresher.explain(2, STARTED + 42_000.0)["trust"]["precision"]  # from its channel on other sites


# ---- published points


def test_points_without_signals_are_judged_by_crawls() -> None:
    """A schedule that is kept gains trust and one that is not kept loses it, without any signal."""
    kept = {}
    for true in (True, False):
        refresher = refresher_with(1)
        points = [(STARTED + 3_600.0 * hour, 1.0) for hour in range(1, 60)]
        refresher.publish(0, SCHEDULE, points, STARTED + 1.0)
        for at, _ in points[:40]:
            refresher.crawled(0, at + 10.0, true)
        row = refresher.memory.whole.trust[1]
        assert row.promised == pytest.approx(40.0, rel=0.1)
        kept[true] = float(row.kept)
    assert kept[True] > 35.0 and kept[False] == 0.0


def test_a_channel_replaces_only_its_own_published_points() -> None:
    refresher, rng = refresher_with(30, sites=3), np.random.default_rng(5)
    said: dict[int, dict[int, list[float]]] = defaultdict(dict)
    now = STARTED
    for _ in range(60 if DISABLED else 600):
        now += float(rng.exponential(400.0))
        page, channel = int(rng.integers(0, 30)), int(rng.choice([SCHEDULE, CACHE]))
        points = np.unique(rng.integers(1, 400, int(rng.integers(0, 12)))) * 100.0 + now
        refresher.publish(page, channel, [(float(at), 0.5) for at in points], now)
        said[page][channel] = points.tolist()
        for other in range(30):
            record = refresher.memory.state.page[other]
            span = refresher.memory.state.point[record.point : record.point_end]["at_s"]
            expected = sorted(at - STARTED for points in said[other].values() for at in points if at > now)
            assert span.tolist() == pytest.approx(expected)
    assert len(refresher.memory.whole.point) < 4_000


def test_the_number_of_published_points_is_bounded() -> None:
    refresher = refresher_with(1)
    much = [(STARTED + 100.0 * k, 0.5) for k in range(5_000)]
    refresher.publish(
        0, SCHEDULE, [*much, (STARTED + 31 * DAY_S, 1.0), (math.nan, 1.0), (STARTED + 5.0, 7.0)], STARTED + 1.0
    )
    record = refresher.memory.state.page[0]
    assert record.point_end - record.point == MOST_POINTS
    refresher.publish(0, SCHEDULE, [(STARTED + 31 * DAY_S, 1.0)], STARTED + 1.0)
    assert refresher.explain(0, STARTED + 1.0)["next_point"] is None


# ---- which channel is judged by which evidence


def rows_of(refresher: Refresher) -> dict[int, np.void]:
    """The rows of trust of site 0, by channel."""
    trust = refresher.memory.state.trust
    return {int(row["channel"]): row for row in trust if row["site"] == 0}


def test_a_cache_expiry_is_never_judged() -> None:
    """Every crawl finds a change, which would make the cache point look kept many times."""
    refresher, now = refresher_with(5), STARTED
    for _ in range(30):
        for page in range(5):
            refresher.publish(page, CACHE, [(now + 100.0, 0.05)], now)
        now += 200.0
        for page in range(5):
            refresher.crawled(page, now, True)
    row = rows_of(refresher)[CACHE]
    assert (row["promised"], row["kept"], row["unverified"]) == (0.0, 0.0, 1)


def test_a_point_is_judged_only_for_the_channel_that_published_it() -> None:
    """Pings are right and the schedule is wrong, so only the schedule loses trust."""
    refresher, now = refresher_with(4), STARTED
    for _ in range(20):
        for page in range(4):
            refresher.publish(page, CACHE, [(now + 50.0, 0.05)], now)
            refresher.publish(page, SCHEDULE, [(now + 400.0, 0.9)], now)
            refresher.signalled(page, INDEXNOW, now + 200.0, now + 200.0)
        now += 1_000.0
        for page in range(4):
            refresher.crawled(page, now, True)
    rows = rows_of(refresher)
    assert rows[SCHEDULE]["promised"] > 10.0
    assert rows[SCHEDULE]["kept"] == 0.0
    assert rows[INDEXNOW]["promised"] == rows[CACHE]["promised"] == 0.0


def test_a_promise_is_kept_once_for_any_number_of_signals() -> None:
    refresher, now = refresher_with(1), STARTED
    for _ in range(50):
        refresher.publish(0, SCHEDULE, [(now + 500.0, 1.0)], now)
        for later in (470.0, 501.0, 540.0):
            refresher.crawled(0, now + later - 1.0, True)
            refresher.signalled(0, INDEXNOW, now + later, now + later)
        now += 1_000.0
        refresher.crawled(0, now, True)
    row = rows_of(refresher)[SCHEDULE]
    assert row["promised"] > 20.0
    assert row["kept"] <= row["promised"] * 1.001


def test_points_that_promise_less_than_they_keep_do_not_change_what_a_page_has_learned() -> None:
    refresher, now = refresher_with(6), STARTED
    for _ in range(40):
        for page in range(6):
            refresher.publish(page, SCHEDULE, [(now + 600.0, 0.5)], now)
        now += 600.0
        for page in range(6):
            refresher.signalled(page, INDEXNOW, now, now)
        now += 400.0
        for page in range(6):
            refresher.crawled(page, now, True)
    refresher.publish(0, SCHEDULE, [(now + 600.0, 0.95)], now)
    now += 700.0
    refresher.accessed(1, now)
    slot = refresher.memory.slot(0)
    silent, signalled = refresher.memory.state.columns[slot][:2].tolist()
    assert 0.0 < silent <= 1.0
    assert signalled > 10.0
    refresher.crawled(0, now + 10.0, False)
    assert refresher.memory.state.columns[slot][1] > 10.0


@pytest.mark.skipif(DISABLED, reason="many events")
def test_the_share_of_unsignalled_updates_is_learned_even_if_many_signals_are_false() -> None:
    """0.3 of the signals are true, and 0.5 of the updates are signalled."""
    dice, pages, end = np.random.default_rng(1), 30, 2000.0 * DAY_S
    signalled, unsignalled, false = 0.05 / DAY_S, 0.05 / DAY_S, 0.05 / DAY_S * 0.7 / 0.3
    events = [(at, page, "crawl") for page in range(pages) for at in np.arange(1000.0 + page, end, DAY_S)]
    for rate, kind in ((signalled, "signalled"), (unsignalled, "unsignalled"), (false, "false")):
        for page in range(pages):
            events += [(at, page, kind) for at in dice.uniform(1000.0, end, dice.poisson(rate * end))]
    refresher = Refresher(policy_named("ncis"), STARTED)
    for page in range(pages):
        refresher.join(page, 0, STARTED)
    stale = set[int]()
    for at, page, kind in sorted(events):
        if kind in ("signalled", "unsignalled"):
            stale.add(page)
        if kind in ("signalled", "false"):
            refresher.signalled(page, INDEXNOW, STARTED + at, STARTED + at)
        if kind == "crawl":
            refresher.crawled(page, STARTED + at, page in stale)
            stale.discard(page)
    trust = refresher.explain(0, STARTED + end)["trust"]
    assert trust["precision"] == pytest.approx(0.3, abs=0.06)
    assert trust["recall"] == pytest.approx(0.5, abs=0.08)


def test_the_access_count_of_a_page_is_capped() -> None:
    refresher = refresher_with(2)
    record = refresher.memory.state.page[refresher.memory.slot(0)]
    record["accesses"] = record["hits"] = MOST_COUNTED - 3
    refresher.accessed(0, STARTED + 10.0, 10)
    assert record["accesses"] == record["hits"] == MOST_COUNTED
    assert refresher.explain(0, STARTED + 11.0)["accesses_per_day"] > 0.0
