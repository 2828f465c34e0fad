"""The states of connections: at every moment they add up to r, and each free connection has the reason that `explain` gives."""

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.crawler.stage import NO_ROBOTS, A, B, Stage, Wire, links
from tests.crawler.test_site_resolver import ScriptedResolver, at
from trapline.crawler.speed.connection_sampler import ConnectionSampler, SpeedMeter, waiting_sites
from trapline.crawler.speed.connection_states import (
    STATES,
    ConnectionStates,
    CrawlSpeed,
    StoreBacklog,
    WaitingSites,
    apportioned,
    lately,
    together,
)
from trapline.frontier import Rules
from trapline.frontier.explain import MAY_BE_VISITED

C = "http://c.test"  # on the address of A
COUNTS = st.dictionaries(st.sampled_from(STATES), st.integers(0, 1_000))


def states(stage: Stage, is_handler_behind: bool = False) -> dict[str, int]:
    """Return the states that are not empty, by a sampler that looks at the sites now."""
    sampler = ConnectionSampler(stage.crawler, stage.web, stage.options.connections, lambda: is_handler_behind)
    found, _ = sampler.sample(stage.web.now())
    assert sum(found) == stage.options.connections and min(found) >= 0
    return {name: number for name, number in found._asdict().items() if number}


# ---- the arithmetic


@given(st.integers(0, 500), COUNTS)
def test_what_is_divided_is_never_more_than_asked_for_and_adds_up(total: int, by_reason: dict[str, int]) -> None:
    found = apportioned(total, by_reason)
    assert sum(found.values()) == min(total, sum(by_reason.values()))
    assert all(0 <= found[name] <= by_reason[name] for name in by_reason) and found.keys() == by_reason.keys()


@given(st.integers(1, 300), COUNTS.filter(lambda counts: sum(counts.values()) > 300))
def test_each_part_is_within_one_of_its_share(total: int, by_reason: dict[str, int]) -> None:
    found, every = apportioned(total, by_reason), sum(by_reason.values())
    assert all(abs(found[name] - total * number / every) < 1 for name, number in by_reason.items())


@given(st.integers(1, 64), st.lists(st.lists(st.integers(0, 9), min_size=12, max_size=12), min_size=1, max_size=30))
def test_the_mean_of_samples_adds_up_to_the_connections(connections: int, weights: list[list[int]]) -> None:
    samples = [
        ConnectionStates(*apportioned(connections, dict(zip(STATES, weight, strict=True))).values())
        for weight in weights
    ]
    full = [one._replace(nothing_to_do=one.nothing_to_do + connections - sum(one)) for one in samples]
    assert sum(lately(full)) == connections and lately(full[:1]) == full[0]


def test_the_speeds_of_partitions_add_up() -> None:
    first = CrawlSpeed(
        ConnectionStates(fetching=3, dns=1),
        ConnectionStates(fetching=4),
        WaitingSites(70, 7, 5, 1, {"dns": 2}, 4.0),
        StoreBacklog(1, 100, 1_000),
        0.5,
    )
    second = first._replace(waiting=WaitingSites(30, 3, 3, 0, {"dns": 1, "back_off": 1}, 2.0), loop_busy=0.9)
    both = together([first, second])
    assert both is not None and both.now == ConnectionStates(fetching=6, dns=2)
    assert both.waiting == WaitingSites(100, 10, 8, 1, {"dns": 3, "back_off": 1}, 2.0)
    assert (both.store, both.loop_busy) == (StoreBacklog(2, 200, 2_000), 0.9) and together([]) is None


# ---- each state


def test_a_visit_passes_through_its_states(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, [f"{A}/1", f"{A}/2"])
    assert states(stage) == {"connecting": 1, "nothing_to_do": 3}
    wire = stage.wires[0].opens()
    assert states(stage) == {"robots": 1, "nothing_to_do": 3}
    wire.answers(*NO_ROBOTS)
    assert states(stage) == {"site_delay": 1, "nothing_to_do": 3}  # the pause after robots.txt
    stage.passes(1.0)
    assert states(stage) == {"fetching": 1, "nothing_to_do": 3}
    wire.is_throttled = True
    assert states(stage) == {"bandwidth": 1, "nothing_to_do": 3}


def test_a_visit_that_waits_for_the_store_or_the_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, [f"{A}/1", f"{A}/2", f"{A}/3", f"{B}/"], pause_s=0.0)
    first = stage.wires[0].opens()
    stage.crawler.full = lambda: True
    first.answers(*NO_ROBOTS)
    stage.passes(0.0)
    assert states(stage) == {"store": 1, "connecting": 1, "nothing_to_do": 2}
    assert states(stage, is_handler_behind=True) == {"handler": 1, "connecting": 1, "nothing_to_do": 2}


def test_free_connections_wait_for_a_store_that_is_behind_if_a_site_could_be_visited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch, [f"{A}/1"], pause_s=0.0)
    wire = stage.opens()
    stage.crawler.full = lambda: True
    wire.answers(body=links(f"{B}/1", f"{B}/2"))
    stage.passes(0.0)
    assert states(stage) == {"store": 1, "nothing_to_do": 3}


def test_the_delays_of_a_site_and_of_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, [f"{A}/1", f"{A}/2"], rules=Rules(delay_s=15.0, per_connection=1))
    stage.opens().answers()
    stage.passes(1.0)
    assert stage.crawler.active == 0 and states(stage) == {"site_delay": 1, "nothing_to_do": 3}
    stage.frontier.discover(stage.link_resolver.seed_pages([f"{C}/"], stage.web.now()), stage.web.now())
    assert states(stage) == {"address_delay": 1, "nothing_to_do": 3}
    stage.passes(15.0)
    assert states(stage) == {"connecting": 1, "nothing_to_do": 3}


def test_a_site_in_back_off(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, [f"{A}/1", f"{B}/1"], rules=Rules(delay_s=0.0, backoff_s=60.0))
    stage.opens()
    stage.wires[0].ends("connect")
    stage.passes(0.0)
    assert states(stage) == {"fetching": 1, "back_off": 1, "nothing_to_do": 2}
    _, waiting = ConnectionSampler(stage.crawler, stage.web, 4, lambda: False).sample(stage.web.now())
    assert waiting.next_s is not None and 50.0 < waiting.next_s <= 60.0


def test_sites_without_an_address_wait_for_dns(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, [f"{A}/1", f"{B}/1", f"{C}/1"], resolver=ScriptedResolver(seconds=9.0), hosts={})
    assert states(stage) == {"dns": 3, "nothing_to_do": 1}
    stage.passes(10.0)  # until the lookups have ended


def test_a_crawl_that_is_paused_or_stopping_or_at_its_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, [f"{A}/1", f"{A}/2"])
    stage.crawler.is_paused = True
    assert states(stage) == {"connecting": 1, "paused": 3}
    stage.crawler.is_paused, stage.crawler.most_pages = False, 0
    assert states(stage) == {"connecting": 1, "nothing_to_do": 3}
    stage.crawler.stopped_by = "interrupted"
    assert states(stage) == {"connecting": 1, "paused": 3}


def test_the_sites_are_not_looked_at_for_every_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, [f"{A}/1"])
    sampler, looks = ConnectionSampler(stage.crawler, stage.web, 4, lambda: False), 0

    def look(*given: Any) -> WaitingSites:
        nonlocal looks
        looks += 1
        return WaitingSites()

    monkeypatch.setattr("trapline.crawler.speed.connection_sampler.waiting_sites", look)
    for moment in range(20):
        sampler.sample(100.0 + moment / 4)
    assert looks == 5


def test_the_speed_has_the_mean_of_the_last_samples_and_the_backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, [f"{A}/1"])
    meter = SpeedMeter(ConnectionSampler(stage.crawler, stage.web, 4, lambda: False), lambda: StoreBacklog(2, 9, 5))
    for _ in range(3):
        meter.speed(stage.web.now())
    stage.wires[0].opens()
    found = meter.speed(stage.web.now())
    assert found.now.robots == 1 and found.lately.connecting == 1 and found.store == StoreBacklog(2, 9, 5)
    assert 0.0 <= found.loop_busy < 1.5


# ---- a crawl of random events


def naive_reasons(stage: Stage, now: float) -> tuple[Counter[str], int, int]:
    """Return the reasons of addresses that are not visited, the ready addresses and all addresses, from `explain` alone."""
    frontier, by_group, found = stage.frontier, {}, Counter[str]()
    for site in range(frontier.sites):
        if frontier.has_waiting(site):
            by_group.setdefault((int(frontier.site_groups[site]), site * (frontier.site_groups[site] < 0)), []).append(
                site
            )
    for (group, _), sites in by_group.items():
        first = min(sites, key=lambda site: float(frontier.site_records[site].ready_at))
        rule = frontier.explain_site(first, now).rule
        others = [other for other in range(frontier.sites) if frontier.site_groups[other] == group]
        if any(frontier.is_visited(other) for other in others):
            found["in use"] += 1
        elif rule == MAY_BE_VISITED:
            found["ready"] += 1
        elif rule == "its address is not known yet":
            found["dns"] += 1
        elif "delay of its address" in rule:
            found["address_delay"] += 1
        else:
            found["site_delay" if rule.endswith("its delay") else "back_off"] += 1
    del found["in use"]
    ready = found.pop("ready", 0)
    return found, ready, len(by_group)


def act(stage: Stage, wire: Wire, chance: random.Random) -> None:
    """Let a server do something."""
    if wire.is_over:
        return
    if not wire.sent:
        wire.opens() if chance.random() < 0.8 else wire.ends("connect")
    elif len(wire.sent) > wire.responses_received:
        what = chance.random()
        if what < 0.75:
            host = chance.choice("abcdefgh")
            body = links(*(f"http://{host}.test/{chance.randrange(40)}" for _ in range(4)))
            is_robots = wire.targets[-1] == "/robots.txt"
            wire.answers(*(NO_ROBOTS if is_robots else (200, {}, body)), keep=chance.random() < 0.8)
        elif what < 0.85:
            wire.answers(503, {"Retry-After": "7"})
        else:
            wire.ends()


@pytest.mark.parametrize("seed", range(3))
def test_the_states_of_every_moment_add_up_and_have_the_reasons_of_explain(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    resolver = ScriptedResolver(seconds=2.0, a=[at("127.0.0.1")], c=[at("127.0.0.1")], d=[at("127.0.0.2")])
    rules = Rules(delay_s=4.0, ip_delay_s=chance.choice([None, 1.0, 9.0]), per_connection=3, backoff_s=20.0)
    seeds = [f"http://{host}.test/" for host in "abcd"]
    stage = Stage(monkeypatch, seeds, resolver=resolver, hosts={}, rules=rules, connections=5, abandon=50)
    seen: Counter[str] = Counter()
    for _ in range(250):
        for wire in stage.wires[-8:]:
            if chance.random() < 0.5:
                act(stage, wire, chance)
        stage.crawler.full = (lambda: True) if chance.random() < 0.1 else (lambda: False)
        stage.crawler.go_on()
        stage.passes(chance.choice([0.0, 0.3, 2.0]))
        seen.update(states(stage).keys())
        found, now = waiting_sites(stage.frontier, stage.web.now()), stage.web.now()
        assert (Counter(found.by_reason), found.ready_addresses, found.addresses) == naive_reasons(stage, now)
    assert {"connecting", "fetching", "robots", "site_delay"} <= seen.keys()
