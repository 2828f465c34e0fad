"""What other options would change: never for the worse, and as much as the arithmetic of visits says."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.crawler.stage import A, Stage
from tests.crawler.test_pace import START, loads, options
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.records import CrawlProgress
from trapline.crawler.engine.status_reporter import PaceMeter
from trapline.crawler.speed.pace import SiteLoads
from trapline.crawler.speed.what_if import WhatIf, what_ifs, what_ifs_together

SITES = st.lists(
    st.tuples(
        st.integers(1, 5_000).map(float),
        st.integers(1, 100).map(float),
        st.floats(0, 60),
        st.floats(0, 5),
        st.floats(0.001, 3),
        st.integers(0, 8).map(float),
    ),
    min_size=1,
    max_size=12,
)


def found(sites: SiteLoads, given_: CrawlOptions, progress: CrawlProgress = START) -> dict[tuple[str, float], WhatIf]:
    return {(one.option, one.value): one for one in what_ifs(sites, given_, progress)}


@given(SITES, st.floats(0, 60), st.floats(0, 5), st.integers(1, 64), st.sampled_from([1e3, 1e6, float("inf")]))
def test_no_alternative_makes_a_crawl_slower_or_is_without_a_number(
    sites: Any, delay_s: float, pause_s: float, connections: int, bandwidth: float
) -> None:
    given_ = options(delay_s=delay_s, pause_s=pause_s, connections=connections, bandwidth=bandwidth)
    progress = START._replace(pages=10, bytes=50_000, seconds=1.0)
    for one in found(loads(*sites), given_, progress).values():
        assert 1.0 <= one.factor < np.inf


def test_twice_as_many_pages_per_visit_of_one_site_with_a_long_delay_is_almost_twice_as_fast() -> None:
    answers = found(loads((4_000, 10, 60.0, 0.0, 0.1, 0)), options(delay_s=60.0, pause_s=0.0))
    assert 1.9 < answers["per-connection", 20].factor < 2.0
    assert 60.0 < answers["delay", 0.0].factor < 62.0 and 1.9 < answers["delay", 30.0].factor < 2.0
    assert answers["connections", 200].factor == 1.0


def test_a_server_that_takes_ten_requests_per_connection_gives_no_more() -> None:
    site = loads((4_000, 10, 60.0, 0.0, 0.1, 0))._replace(most_per_visit=np.array([10.0]))
    assert found(site, options(delay_s=60.0))["per-connection", 20].factor == 1.0


def test_a_delay_that_robots_txt_asks_for_stays() -> None:
    site = loads((4_000, 10, 60.0, 0.0, 0.1, 0))._replace(has_common_delay=np.array([False]))
    assert found(site, options(delay_s=15.0))["delay", 0.0].factor == 1.0


def test_the_delay_of_an_address_counts_for_all_of_its_sites() -> None:
    sites = loads(*((100, 10, 0.5, 0.0, 0.1, 0) for _ in range(10)))
    answers = found(sites, options(delay_s=0.5, ip_delay_s=9.0, pause_s=0.0))
    assert answers["ip-delay", 0.0].factor == pytest.approx(10.0) and answers["delay", 0.0].factor == 1.0


def test_connections_and_bandwidth() -> None:
    sites = loads(*((100, 10, 0.0, 0.0, 0.1, at) for at in range(60)))
    given_ = options(delay_s=0.0, pause_s=0.0, connections=2)
    assert found(sites, given_)["connections", 4].factor == pytest.approx(2.0)
    narrow = options(delay_s=0.0, pause_s=0.0, connections=2, bandwidth=1_000.0)
    answers = found(sites, narrow, START._replace(pages=10, bytes=10_000))
    assert answers["connections", 4].factor == 1.0 and answers["bandwidth", 2_000.0].factor == pytest.approx(2.0)


def test_nothing_is_said_before_a_site_has_answered_or_when_the_goal_is_reached() -> None:
    assert not found(loads((100, 10, 15.0, 1.0, 0.0, 0)), options())
    assert not found(loads((100, 10, 15.0, 1.0, 0.2, 0)), options(max_pages=5), START._replace(pages=5))


def test_times_that_are_not_measured_are_the_mean_of_the_others() -> None:
    measured = loads((100, 10, 15.0, 0.0, 0.2, 0), (100, 10, 15.0, 0.0, 0.2, 1))
    partly = measured._replace(answer_s=np.array([0.2, 0.0]))
    given_ = options(pause_s=0.0)
    assert found(partly, given_) == found(measured, given_)


def test_the_what_ifs_of_partitions_are_weighted_by_their_speed() -> None:
    slow, fast = [WhatIf("bandwidth", 1e3, 1.0)], [WhatIf("bandwidth", 1e3, 2.0)]
    assert what_ifs_together([(1.0, slow), (3.0, fast)]) == [WhatIf("bandwidth", 2e3, 1.75)]


def test_the_meter_has_what_ifs_as_soon_as_a_site_has_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, [f"{A}/{number}" for number in range(40)])
    meter, clock = PaceMeter(stage.frontier, stage.sites, stage.options), 0.0
    monkeypatch.setattr("trapline.crawler.engine.status_reporter.time.monotonic", lambda: clock)
    meter.pace(stage.crawler.progress(0.0))
    assert not meter.what_ifs
    wire = stage.opens()
    for _ in range(10):
        wire.answers()
        stage.passes(1.0)
    clock = 1.0
    meter.pace(stage.crawler.progress(11.0))
    assert {one.option for one in meter.what_ifs} == {"per-connection", "delay", "ip-delay", "pause", "connections"}


def test_slow_what_ifs_are_divided_among_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, [f"{A}/{number}" for number in range(40)])
    meter, made = PaceMeter(stage.frontier, stage.sites, stage.options), [WhatIf("x", n, 1.0) for n in range(3)]
    clock = 0.0

    def slowly(*given: Any) -> Any:
        nonlocal clock
        for one in made:
            clock += 0.1
            yield one

    monkeypatch.setattr("trapline.crawler.engine.status_reporter.time.monotonic", lambda: clock)
    monkeypatch.setattr("trapline.crawler.engine.status_reporter.what_ifs", slowly)
    seen = []
    for _ in range(4):
        meter.pace(stage.crawler.progress(0.0))
        seen.append(list(meter.what_ifs))
    assert seen == [[], [], [], made]
