"""A batch of links is decoded as it was encoded. Other bytes are refused."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.errors import ConfigError
from trapline.parallel.transport.url_batches import BATCH_BYTES, MAGIC, LinkRow, decode, encode, parts

ROWS = st.builds(
    LinkRow,
    st.text("ab/:.?é", max_size=30).map(str.encode),
    st.integers(1, 2**32 - 1),
    st.integers(0, 32767),
    st.sampled_from([0.0, 0.1, 1e300]),
)


@given(st.lists(ROWS, max_size=40))
def test_rows_are_decoded_sorted(rows: list[LinkRow]) -> None:
    assert decode(encode(rows)).rows == sorted(rows)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_batch_or_refused(data: bytes) -> None:
    for text in (data, MAGIC + data, MAGIC + b"\0" + data):
        with suppress(ConfigError):
            decode(text)


@given(st.lists(ROWS, min_size=1, max_size=20), st.data())
def test_a_damaged_batch_is_refused(rows: list[LinkRow], data: st.DataObject) -> None:
    whole = encode(rows)
    at = data.draw(st.integers(0, len(whole) - 1))
    damaged = whole[:at] + bytes([whole[at] ^ 1 << data.draw(st.integers(0, 7))]) + whole[at + 1 :]
    with suppress(ConfigError):
        assert decode(damaged).rows == sorted(rows)  # a bit without a meaning


def test_a_cut_batch_is_refused() -> None:
    whole = encode([LinkRow(b"http://a/%d" % number, 1, 2) for number in range(50)])
    for length in range(len(whole)):
        with pytest.raises(ConfigError):
            decode(whole[:length])


def test_a_batch_that_unpacks_to_more_than_allowed_is_refused() -> None:
    import zstandard

    bomb = zstandard.ZstdCompressor(level=3).compress(bytes(80 << 20))
    with pytest.raises(ConfigError, match="64 MiB"):
        decode(MAGIC + b"\0" + bomb)


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=60))
def test_batches_are_split_at_the_size_limit(urls: list[bytes]) -> None:
    rows = [LinkRow(url * 4_000, 1, 0) for url in urls]
    cut = list(parts(rows, lambda row: len(row.url)))
    assert [row for part in cut for row in part] == rows
    assert all(len(part) == 1 or sum(len(row.url) for row in part) <= BATCH_BYTES for part in cut)
    assert all(cut)
