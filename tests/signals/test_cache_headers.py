"""Caching headers: the precedence of the standard, and nan for everything that is not a fact."""

from email.utils import formatdate
from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.signals.dates import FURTHEST_S, expiry, last_modified_age

NOW = 1_714_730_400.0


def at(seconds: float) -> bytes:
    return formatdate(seconds, usegmt=True).encode()


@pytest.mark.parametrize(
    ("headers", "left_s"),
    [
        ({b"cache-control": b"max-age=600"}, 600),
        ({b"cache-control": b"public, max-age=600, s-maxage=30"}, 30),
        ({b"cache-control": b'MAX-AGE = "600"'}, 600),
        ({b"cache-control": b"max-age=600", b"age": b"100"}, 500),
        ({b"cache-control": b"max-age=600", b"expires": at(NOW + 5)}, 600),
        ({b"expires": at(NOW + 300)}, 300),
        ({b"expires": at(NOW + 300), b"date": at(NOW + 100)}, 200),  # the server's clock is ahead of ours
        ({b"expires": at(NOW + 300), b"age": b"50", b"date": at(NOW - 50)}, 300),
        ({b"cache-control": b"max-age=600", b"age": b"100, 200"}, 500),
        ({}, None),
        ({b"expires": b"0"}, None),
        ({b"expires": b"-1"}, None),
        ({b"cache-control": b"max-age=0"}, None),
        ({b"cache-control": b"no-cache, max-age=600"}, None),
        ({b"cache-control": b"max-age=600, no-store"}, None),
        ({b"cache-control": b"max-age=600", b"age": b"600"}, None),
        ({b"cache-control": b"max-age=31536000, immutable"}, None),
        ({b"cache-control": b"x-max-age=600"}, None),
        ({b"cache-control": b"max-age=99999999999999"}, None),
        ({b"expires": at(NOW - 300)}, None),
    ],
)
def test_how_long_a_response_may_be_cached(headers: dict[bytes, bytes], left_s: float | None) -> None:
    found = expiry(headers, NOW)
    assert isnan(found) if left_s is None else found == NOW + left_s


@pytest.mark.parametrize(
    ("headers", "age_s"),
    [
        ({b"last-modified": at(NOW - 100)}, 100),
        ({b"last-modified": at(NOW - 100), b"date": at(NOW - 40)}, 60),
        ({b"last-modified": at(NOW - 100), b"date": at(NOW - 40), b"age": b"40"}, 100),
        ({b"last-modified": at(NOW - 100), b"age": b"40"}, 100),
        ({b"last-modified": at(NOW - 100), b"date": at(NOW - 100)}, None),
        ({b"last-modified": at(NOW + 100)}, None),
        ({b"last-modified": at(0)}, None),
        ({b"last-modified": b"yesterday"}, None),
        ({}, None),
    ],
)
def test_how_long_ago_a_page_was_changed(headers: dict[bytes, bytes], age_s: float | None) -> None:
    found = last_modified_age(headers, NOW)
    assert isnan(found) if age_s is None else found == age_s


values = st.one_of(
    st.binary(max_size=40),
    st.text('max-age=s,no-cache0123456789 "', max_size=30).map(str.encode),
    st.floats(-1e10, 1e11).map(at),
)


@given(
    st.dictionaries(st.sampled_from([b"cache-control", b"expires", b"date", b"age", b"last-modified"]), values),
    st.floats(0, 4e9),
)
def test_any_headers_give_values_within_bounds_or_nan(headers: dict[bytes, bytes], now: float) -> None:
    assert not expiry(headers, now) <= now and not expiry(headers, now) > now + FURTHEST_S + 1
    assert not last_modified_age(headers, now) <= 0
