"""Values that no server or network can have are refused in one line."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.simulator.test_driver import graph_of
from trapline.errors import ConfigError
from trapline.frontier import Rules
from trapline.simulator import PROTOCOLS, Network, Servers, constant_servers, simulate
from trapline.strategies import pair

GRAPH = graph_of([[1], [], []], [0, 0, 1], [0, 1])
SITE_VALUES, PAGE_VALUES = ("connection_s", "speed", "requests", "keep_alive_s"), ("latency_s", "size")


def with_values(name: str, values: Any) -> Servers:
    return replace(constant_servers(1.0), **{name: np.asarray(values)})


@pytest.mark.parametrize("name", (*SITE_VALUES, *PAGE_VALUES))
def test_a_parameter_has_one_value_or_one_for_each_item(name: str) -> None:
    right = 2 if name in SITE_VALUES else 3
    for count in (1, right):
        with_values(name, np.ones(count, np.int32)).check(GRAPH)
    for shape in (0, 5 - right, 4, (1, 1), (right, 1), ()):
        with pytest.raises(ConfigError, match=f"values of {name}; there must be 1 or {right}"):
            with_values(name, np.ones(shape)).check(GRAPH)


@pytest.mark.parametrize("value", [math.nan, -1.0, -math.inf])
@pytest.mark.parametrize("name", (*SITE_VALUES, *PAGE_VALUES))
def test_no_value_is_negative_or_not_a_number(name: str, value: float) -> None:
    count = 2 if name in SITE_VALUES else 3
    values = np.ones(count)
    values[-1] = value
    with pytest.raises(ConfigError, match=f"a value of {name} is .*; it must be in"):
        with_values(name, values).check(GRAPH)


@pytest.mark.parametrize("name", ["connection_s", "latency_s", "size", "requests"])
def test_infinite_times_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"a value of {name} is inf"):
        with_values(name, [math.inf]).check(GRAPH)


def test_a_server_speed_of_0_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"a value of speed is 0\.0"):
        with_values("speed", [0.0]).check(GRAPH)


def test_simulate_checks_the_servers() -> None:
    with pytest.raises(ConfigError, match="values of size"):
        simulate(GRAPH, pair("fifo", "fifo"), Rules(), servers=with_values("size", np.ones(2)))


def test_numbers_of_another_type_are_converted() -> None:
    """Whole seconds, or requests as int64. The compiled loop is made for one type only."""
    servers = replace(constant_servers(1.0), latency_s=np.array([2]), requests=np.array([1], np.int64))
    log = simulate(GRAPH, pair("fifo", "fifo"), Rules(delay_s=0.0), servers=servers).log
    assert log.end.tolist() == [2.0, 4.0, 6.0]


BAD_NETWORKS: list[tuple[dict[str, Any], str]] = [
    ({"bandwidth": 0.0}, "bandwidth"),
    ({"bandwidth": -1.0}, "bandwidth"),
    ({"bandwidth": math.nan}, "bandwidth"),
    ({"protocol": "http/2"}, "no protocol 'http/2'"),
    ({"pause_s": -1.0}, "pause_s"),
    ({"pause_s": math.nan}, "pause_s"),
    ({"timeout_s": math.inf}, "timeout_s"),
    ({"failed": -0.1}, "failed"),
    ({"failed": math.nan}, "failed"),
    ({"refused": 1.5}, "refused"),
    ({"failed": 0.6, "refused": 0.6}, "failed"),
]


@pytest.mark.parametrize(("values", "said"), BAD_NETWORKS, ids=str)
def test_an_invalid_network_is_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        Network(**values)
    assert "\n" not in str(refused.value)


def test_an_unknown_protocol_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ConfigError) as refused:
        Network(protocol="gopher")
    assert all(name in str(refused.value) for name in PROTOCOLS)
