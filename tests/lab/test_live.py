"""Live crawls of the lab: what the servers logged is what the figures show."""

import numpy as np
import pytest

from trapline.graph import WebModel, build
from trapline.lab import live
from trapline.lab.castillo import real_crawls
from trapline.lab.castillo.real_crawls import DAYS, LENGTH, live_run
from trapline.lab.live import LiveConditions, crawl_live
from trapline.lab.study import Result
from trapline.lab.webs import WebCache, generated
from trapline.testweb import Behaviour, build_web

WEB = generated(200, 20, 1)


@pytest.fixture(scope="module")
def found() -> Result:
    with pytest.MonkeyPatch.context() as changes:
        changes.setattr(real_crawls, "DELAY_S", 0.0)
        changes.setattr(real_crawls, "LATENCY_S", 0.002)
        return live_run(WebCache(), WEB, LENGTH, 1).compute()


def test_a_live_crawl_fetches_every_page_once(found: Result) -> None:
    assert found["requests"] == 200 and found["sites"] == 20
    assert found["seconds"] == sorted(found["seconds"]) and found["seconds"][-1] > 0
    for curve in (found["curve"], found["simulated"]):
        assert curve[0] == 0.0 and curve[100] == pytest.approx(1.0) and curve == sorted(curve)


def test_shares_by_day_add_up(found: Result) -> None:
    assert (found["pages"][-1], found["pagerank"][-1]) == pytest.approx((1.0, 1.0))
    of_day = np.diff([0.0, *found["pages"]])
    assert len(of_day) == DAYS and float(
        np.dot(of_day, [average or 0.0 for average in found["average"]])
    ) == pytest.approx(1.0)


def test_a_limit_of_pages_ends_the_crawl_and_connections_are_kept() -> None:
    web = build_web(build(WebModel(300, 3, 1)), Behaviour(requests_per_connection=10))
    log = crawl_live(web, LiveConditions("breadth-first", 3, per_connection=0, max_pages=60))
    assert 60 <= len(log.page) <= 60 + 3 * 10
    counts = np.bincount(log.connection)
    assert counts.max() == 10
    assert log.used.user_s > 0.0 and sum(log.used.shares) == pytest.approx(1.0)


@pytest.mark.parametrize("stopped_by", ["interrupted", "terminated"])
def test_ctrl_c_and_sigterm_end_the_study_not_only_the_crawl(monkeypatch: pytest.MonkeyPatch, stopped_by: str) -> None:
    monkeypatch.setattr(live, "open_crawl", lambda *_: {"stopped_by": stopped_by})
    with pytest.raises(KeyboardInterrupt):
        crawl_live(build_web(build(WebModel(10, 2, 1))), LiveConditions("breadth-first", 1))
