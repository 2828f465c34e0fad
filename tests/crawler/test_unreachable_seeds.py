"""Seeds that refuse connections: a crawl that can reach none of them ends; otherwise their sites back off."""

import pytest

from tests.crawler.stage import A, B, Stage
from trapline.fetch import failure
from trapline.frontier import Rules

RULES = Rules(delay_s=1.0, ip_delay_s=0.0, backoff_s=60.0)


def test_a_crawl_ends_if_its_only_seed_refuses_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, [f"{A}/"], rules=RULES)
    stage.refuses()
    assert stage.over and stage.crawler.stopped_by == "unreachable" and not stage.crawler.tally.abandoned_sites
    end = "no seed can be reached, so the crawl ends; check the address"
    assert stage.crawler.results.unanswered_seeds.notes == [f"{A}/: connection refused; {end}"]


def test_a_crawl_ends_when_the_last_of_its_seeds_refuses_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, [f"{A}/", f"{B}/"], rules=RULES)
    first, second = stage.wires
    first.why_not_connected = second.why_not_connected = failure.CONNECTION_REFUSED
    first.ends(failure.CONNECT)
    stage.passes(0.1)
    assert not stage.crawler.stopped_by  # the other seed may answer
    second.ends(failure.CONNECT)
    stage.passes(0.1)
    assert stage.over and stage.crawler.stopped_by == "unreachable"


def test_a_seed_that_refuses_connections_backs_off_if_another_one_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, [f"{A}/", f"{B}/"], rules=RULES)
    first, second = stage.wires
    first.opens().answers(404)
    stage.passes(1.0)
    first.answers(404)
    stage.passes(1.0)
    second.why_not_connected = failure.CONNECTION_REFUSED
    second.ends(failure.CONNECT)
    stage.passes(0.1)
    assert not stage.crawler.stopped_by
    (note,) = stage.crawler.results.unanswered_seeds.notes
    assert (
        "next attempt in 60 s; after 5 failed attempts, in 15 min, the crawl abandons this site; check the address"
        in note
    )


def test_a_seed_that_does_not_answer_in_time_backs_off(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, [f"{A}/"], rules=RULES)
    stage.wires[-1].ends(failure.TIMEOUT)
    stage.passes(0.1)
    assert not stage.crawler.stopped_by


def test_a_crawl_that_is_stopping_announces_no_further_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, [f"{A}/"], rules=RULES)
    stage.crawler.stop("max-time")
    stage.wires[-1].ends(failure.TIMEOUT)
    stage.passes(10.0)
    assert stage.over and not stage.crawler.results.unanswered_seeds.notes


def test_a_seed_with_two_addresses_is_tried_at_both(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, [f"{A}/"], rules=RULES)
    stage.site().addresses = ("10.0.0.1", "10.0.0.2")
    stage.refuses()
    assert not stage.crawler.stopped_by
    stage.passes(61.0)
    assert len(stage.wires) == 2
    stage.refuses()
    assert stage.crawler.stopped_by == "unreachable"
