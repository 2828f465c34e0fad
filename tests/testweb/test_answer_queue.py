"""The test web sends the bytes of an answer when the model of servers says."""

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.simulator import slow_start_stall_s
from tests.testweb.webs import connect, numbered, one_answer, request
from trapline.testweb import Behaviour, build_web, render, serve
from trapline.testweb.server.answer_queue import arrivals

RATES = st.floats(1e4, 1e8) | st.just(math.inf)


@given(st.integers(1, 3_000_000), RATES, st.floats(0.0, 2.0), st.integers(1, 100_000), st.floats(0.0, 1.0))
def test_the_last_byte_arrives_when_the_simulator_says(
    size: int, rate: float, trip_s: float, window: int, closing_s: float
) -> None:
    pieces = list(arrivals(size, rate, trip_s, window, closing_s))
    assert sum(piece for _, piece in pieces) == size
    assert [at for at, _ in pieces] == sorted(at for at, _ in pieces)
    expected = size / rate + slow_start_stall_s(size, rate, trip_s, window, 0) + closing_s
    assert pieces[-1][0] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.integers(1, 100_000), st.floats(0.0, 2.0), st.integers(1, 10_000))
def test_no_round_sends_more_than_its_window(size: int, trip_s: float, window: int) -> None:
    received = 0
    for _, piece in arrivals(size, math.inf, trip_s, window):
        if trip_s > 0:
            assert piece <= window + received
        received += piece


TRIP_S, SERVER_S, CLOSING_S, WINDOW = 0.05, 0.1, 0.15, 500
PIPELINED, LIMITED = range(2)


def test_sockets_never_deliver_earlier_than_the_model() -> None:
    """Two sites on real sockets. Only lower limits of time are checked, because a busy machine may be late."""
    behaviour = Behaviour(
        latency_s=TRIP_S + SERVER_S, connection_s=TRIP_S, initial_window=WINDOW, closing_s=CLOSING_S, serial=True
    )
    limited = Behaviour(closing_s=CLOSING_S, requests_per_connection=2)
    with serve(build_web(numbered(2, 4), [behaviour, limited])) as server:
        web = server.web
        with connect(web, PIPELINED) as own:
            began, rest, sent = time.monotonic(), b"", 0
            least_s = 2 * TRIP_S  # the opening and the first round trip; later requests are under way already
            own.sendall(b"".join(request(web, page) for page in range(4)))
            for page in range(4):
                _, body, rest = one_answer(own, rest)
                assert body == render(web, page)
                least_s += SERVER_S + slow_start_stall_s(len(body), math.inf, TRIP_S, WINDOW, sent)
                sent += len(body)
                assert time.monotonic() - began >= least_s
        with connect(web, LIMITED) as own:
            began = time.monotonic()
            own.sendall(request(web, 4) + request(web, 5))
            _, _, rest = one_answer(own)
            assert one_answer(own, rest)[1] == render(web, 5)
            assert time.monotonic() - began >= CLOSING_S
