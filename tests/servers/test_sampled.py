"""Servers sampled from fitted distributions are reproducible, follow the stated distributions, and still agree with the records."""

import hashlib
import math
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.graph import Graph, exact
from trapline.graph.page_sizes import page_sizes
from trapline.servers.model import MODELS, ServerModel, model_named, sped_up
from trapline.servers.sampled import Servers, modelled_servers, page_seconds

MEASURED = MODELS["measured"]
NAMES = Servers.__slots__
SAMPLED = ("connection_s", "latency_s", "speed", "requests", "keep_alive_s", "size")
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)


def web(sites: int, pages_each: int = 1, sizes: NDArray[np.int64] | None = None) -> Graph:
    """Sites of equal size without links, which is all that a model uses."""
    pages = sites * pages_each
    return Graph(
        offsets=np.zeros(pages + 1, np.int64),
        targets=np.zeros(0, np.int32),
        site=np.repeat(np.arange(sites, dtype=np.int32), pages_each),
        home=np.arange(0, pages, pages_each, dtype=np.int32),
        dynamic=np.zeros(pages, np.uint8),
        ips=np.arange(sites, dtype=np.int32),
        sizes=sizes,
    )


def check_shares(values: NDArray[np.float64], quantiles: dict[float, float]) -> None:
    """Of n independent draws a share p lies below the p-quantile, within five standard deviations."""
    for share, value in quantiles.items():
        tolerance = 5 * math.sqrt(share * (1 - share) / len(values))
        assert abs((values < value).mean() - share) < tolerance, (share, value)


def lognormal(median: float, spread: float) -> dict[float, float]:
    return {share: median * math.exp(spread * NormalDist().inv_cdf(share)) for share in SHARES}


@given(st.floats(-300, 300), st.floats(2.0**-33, 1 - 2.0**-33))
def test_exp_log_and_normal_quantile_are_accurate(x: float, share: float) -> None:
    assert exact.exp(np.array([x]))[0] == pytest.approx(math.exp(x), rel=1e-12)
    assert exact.log(np.array([share]))[0] == pytest.approx(math.log(share), rel=1e-11, abs=1e-12)
    assert exact.normal_quantile(np.array([share]))[0] == pytest.approx(NormalDist().inv_cdf(share), rel=2e-9, abs=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_the_same_seed_gives_the_same_servers(name: str) -> None:
    first, again = (modelled_servers(web(50, 3), MODELS[name], seed=7) for _ in range(2))
    assert all(np.array_equal(getattr(first, value), getattr(again, value)) for value in NAMES)


def test_another_seed_gives_other_servers() -> None:
    first, other = (modelled_servers(web(50, 3), seed=seed) for seed in (1, 2))
    assert all((getattr(first, value) != getattr(other, value)).any() for value in SAMPLED if value != "keep_alive_s")


def test_the_bits_are_the_same_on_every_machine() -> None:
    servers = modelled_servers(web(200, 5), seed=3)
    digest = hashlib.sha256(b"".join(getattr(servers, value).tobytes() for value in SAMPLED))
    assert digest.hexdigest()[:16] == "a0dfaa424db8f972"


def test_a_changed_parameter_does_not_change_other_samples() -> None:
    first = modelled_servers(web(50, 3))
    changed = modelled_servers(web(50, 3), replace(MEASURED, speed_median=1e6, stall_share=0.5))
    assert all(np.array_equal(getattr(first, v), getattr(changed, v)) for v in ("connection_s", "requests", "size"))


def test_connections_follow_the_weibull_distribution() -> None:
    drawn = modelled_servers(web(20_000)).connection_s
    shape, scale = MEASURED.connection_shape, MEASURED.connection_scale_s
    check_shares(drawn, {share: scale * (-math.log(1 - share)) ** (1 / shape) for share in SHARES})


def test_thinking_time_varies_by_site_and_by_page() -> None:
    """With one page per site and no stalls: the thinking time of the site times the factor of the page."""
    model = replace(MEASURED, connection_scale_s=0, stall_share=0, longest_wait_s=1e9)
    both = math.hypot(model.think_spread, model.page_spread)
    check_shares(modelled_servers(web(20_000), model).latency_s, lognormal(model.think_median_s, both))
    alike = modelled_servers(web(1, 20_000), model).latency_s
    check_shares(alike / np.median(alike), {s: v for s, v in lognormal(1.0, model.page_spread).items() if s != 0.5})


def test_stalls_are_as_frequent_and_long_as_stated() -> None:
    model = replace(MEASURED, connection_scale_s=0, think_median_s=0)
    latency = modelled_servers(web(100, 200), replace(model, longest_wait_s=1e9)).latency_s
    check_shares((latency > 0).astype(float), {1 - model.stall_share: 0.5})
    check_shares(latency[latency > 0], lognormal(model.stall_median_s, model.stall_spread))


def test_speeds_stay_within_the_recorded_range_and_correlate_with_thinking_time() -> None:
    speed = modelled_servers(web(20_000)).speed
    inside = {s: v for s, v in lognormal(MEASURED.speed_median, MEASURED.speed_spread).items() if 0.05 < s < 0.95}
    check_shares(speed, inside)
    assert MEASURED.speed_least <= speed.min() < speed.max() <= MEASURED.speed_most
    model = replace(MEASURED, connection_scale_s=0, page_spread=0, stall_share=0, longest_wait_s=1e9)
    free = modelled_servers(web(20_000), replace(model, speed_least=1e-9, speed_most=math.inf))
    found = np.corrcoef(np.log(free.latency_s), np.log(free.speed))[0, 1]
    assert found == pytest.approx(MEASURED.think_speed_correlation, abs=5 / math.sqrt(20_000))


def test_requests_per_connection_have_their_shares() -> None:
    drawn = modelled_servers(web(20_000)).requests
    for count, share in MEASURED.requests:
        assert (drawn == count).mean() == pytest.approx(share, abs=5 * math.sqrt(share * (1 - share) / 20_000))


def test_sizes_are_those_of_the_graph_or_else_those_of_a_generated_web() -> None:
    known = np.arange(6, dtype=np.int64)
    assert modelled_servers(web(2, 3, known)).size.tolist() == known.tolist()
    bare = web(2_000, 10)
    assert modelled_servers(bare, seed=5).size.tolist() == page_sizes(5, bare.site).tolist()


@given(st.integers(0, 2**31), st.sampled_from(sorted(MODELS)))
def test_no_page_answers_before_a_round_trip_or_after_the_longest_wait(seed: int, name: str) -> None:
    graph, model = web(20, 5), MODELS[name]
    servers = modelled_servers(graph, model, seed)
    assert (servers.latency_s >= np.minimum(servers.connection_s[graph.site], model.longest_wait_s)).all()
    assert (servers.latency_s <= model.longest_wait_s).all()


def test_the_costs_of_tcp_do_not_change_the_other_samples() -> None:
    plain, tcp = (modelled_servers(web(50, 3), MODELS[name], seed=4) for name in ("measured", "measured-tcp"))
    assert all(np.array_equal(getattr(plain, value), getattr(tcp, value)) for value in (*SAMPLED, "robots_s"))
    assert tcp.closing_s.tolist() == tcp.connection_s.tolist() and plain.closing_s.tolist() == [0.0]
    assert tcp.initial_window.tolist() == [4380.0] and plain.initial_window.tolist() == [0.0]


def test_servers_that_run_faster_are_the_same_servers() -> None:
    graph, fast = web(50, 3), sped_up(MODELS["measured-tcp"], 8.0)
    slow, quick = modelled_servers(graph, MODELS["measured-tcp"], seed=4), modelled_servers(graph, fast, seed=4)
    for name in ("connection_s", "latency_s", "closing_s", "robots_s", "keep_alive_s"):
        assert (8.0 * getattr(quick, name)).tolist() == pytest.approx(getattr(slow, name).tolist(), rel=1e-12)
    assert quick.speed.tolist() == pytest.approx((8.0 * slow.speed).tolist(), rel=1e-12)
    assert quick.requests.tolist() == slow.requests.tolist()


def test_the_seconds_of_a_page_add_up() -> None:
    graph = web(2, 2, np.array([100, 200, 300, 400]))
    one = np.ones(1)
    servers = Servers(
        np.array([1.0, 2.0]), 3 * one, np.array([100.0, 10.0]), one.astype(np.int32), one, graph.sizes * 1.0
    )
    taken = page_seconds(servers, graph)
    assert taken.total.tolist() == [1 + 3 + 1, 1 + 3 + 2, 2 + 3 + 30, 2 + 3 + 40]
    assert taken.waiting_share == pytest.approx(18 / 91)
    assert taken.mostly_waiting == 0.5


def test_the_thesis_model_goes_through_both_published_points() -> None:
    graph = web(20_000)
    check_shares(page_seconds(modelled_servers(graph, MODELS["thesis"]), graph).total, {0.90: 1.5, 0.95: 3.0})


def test_every_page_of_the_constant_model_takes_a_second() -> None:
    graph = web(5, 4)
    assert (page_seconds(modelled_servers(graph, MODELS["constant"]), graph).total == 1).all()


@pytest.mark.parametrize(
    "bad",
    [
        {"connection_shape": 0},
        {"think_median_s": -1},
        {"think_spread": math.nan},
        {"page_spread": 11},
        {"stall_share": 1.5},
        {"longest_wait_s": math.inf},
        {"speed_median": 0},
        {"speed_least": 2e9},
        {"think_speed_correlation": -2},
        {"requests": ()},
        {"requests": ((1, 0.5),)},
        {"requests": ((1.5, 1.0),)},
        {"requests": ((1, -0.5), (2, 1.5))},
        {"failed": 0.6, "refused": 0.6},
    ],
    ids=str,
)
def test_invalid_parameters_are_refused_in_one_line(bad: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=f"server model: .*{next(iter(bad)).split('_')[0]}") as refusal:
        ServerModel(**bad)  # type: ignore[arg-type]
    assert "\n" not in str(refusal.value)


def test_an_unknown_model_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match="did you mean 'measured'"):
        model_named("mesured")


def test_the_fit_recovers_the_distributions_of_drawn_records() -> None:
    """Records that are drawn from known distributions: each estimate is within four standard errors of the true value."""
    from bench import fit_servers

    draw, size = np.random.default_rng(7), 20_000
    median, spread = fit_servers.lognormal(np.exp(draw.normal(math.log(0.3), 1.2, size)))
    assert median == pytest.approx(0.3, rel=4 * 1.2 / size**0.5) and spread == pytest.approx(
        1.2, rel=4 / (2 * size) ** 0.5
    )
    shape, scale = fit_servers.weibull(2.5 * draw.weibull(0.7, size))
    assert shape == pytest.approx(0.7, rel=4 * 0.78 / size**0.5) and scale == pytest.approx(
        2.5, rel=4 * 1.05 / 0.7 / size**0.5
    )
    sites = [fit_servers.Thinking("drawn", str(n), np.exp(draw.normal(-3.0, 0.4, 200))) for n in range(200)]
    assert fit_servers.spread_of_pages(sites) == pytest.approx(0.4, rel=0.03)
    fetches = [
        fit_servers.Fetch(("drawn", "a"), status, 0.1, 100.0, True) for status in (200, 200, 503, 404, -2, -9998)
    ]
    assert fit_servers.failures(fetches) == (5, 2, 1)


def test_the_records_still_give_the_defaults(recorded_data: Path) -> None:
    from bench import fit_servers

    assert fit_servers.fit(fit_servers.read(recorded_data)) == MEASURED
    thesis = MODELS["thesis"]
    ours = (thesis.think_median_s, thesis.think_spread, thesis.page_spread)
    assert ours == pytest.approx(fit_servers.through_published(MEASURED), rel=5e-3)
