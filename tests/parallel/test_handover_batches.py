"""A hand-over is decoded bit by bit as it was encoded, in pieces of bounded size. Other bytes are refused in one line."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trapline.crawler.engine.records import KeptCopy
from trapline.crawler.recrawl.moved_pages import MovedPage
from trapline.errors import ConfigError
from trapline.frontier.transfer import SiteExport
from trapline.parallel.transport import handover_batches, url_batches
from trapline.parallel.transport.handover_batches import (
    PIECE_PAGES,
    Contents,
    MovedRefetch,
    Piece,
    decode,
    encode,
    is_handover,
    pieces,
    refetch_pieces,
)
from trapline.parallel.transport.url_batches import BATCH_BYTES

NUMBERS = st.floats(allow_nan=False)
TEXT = st.text(max_size=40)
BYTES = st.binary(max_size=20)
COPIES = st.none() | st.builds(KeptCopy, NUMBERS, NUMBERS, st.none() | NUMBERS, BYTES, BYTES, BYTES, BYTES, TEXT)
REFETCHES = st.builds(
    MovedRefetch, TEXT, st.integers(0, 9), st.builds(MovedPage, st.lists(NUMBERS, max_size=9), st.booleans(), COPIES)
)
PIECES = st.builds(
    Piece, TEXT, st.dictionaries(TEXT, NUMBERS, max_size=4), NUMBERS, st.lists(TEXT), st.lists(NUMBERS), st.lists(NUMBERS),
    st.lists(NUMBERS), st.lists(st.lists(NUMBERS, max_size=3)), st.lists(TEXT), st.lists(REFETCHES, max_size=3), st.lists(NUMBERS),
)  # fmt: skip
INBOX_POSITION = st.none() | st.tuples(TEXT, st.integers(0, 2**40))


def export(pages: int, known: int) -> SiteExport:
    numbers = np.arange(pages, dtype=float)
    record = {"known": float(known), "delay_s": math.nan}
    return SiteExport(record, 2.5, np.arange(pages, dtype=np.int32), numbers, numbers, numbers, numbers.reshape(-1, 1))


@given(
    st.lists(st.tuples(TEXT, TEXT)),
    st.lists(PIECES, max_size=3),
    st.booleans(),
    st.lists(NUMBERS, max_size=9),
    INBOX_POSITION,
)
def test_a_hand_over_is_decoded_as_it_was_encoded(
    hosts: list[tuple[str, str]],
    sites: list[Piece],
    is_last: bool,
    learned: list[float],
    inbox_position: tuple[str, int] | None,
) -> None:
    contents = Contents(hosts, sites, is_last, learned, inbox_position)
    assert decode(encode(contents)) == contents
    assert is_handover(encode(contents)) and not is_handover(url_batches.encode([]))


@settings(deadline=None)
@given(st.sampled_from([0, 1, PIECE_PAGES, PIECE_PAGES + 1, 3 * PIECE_PAGES]), st.integers(0, 2 * PIECE_PAGES + 5))
def test_a_site_of_any_size_is_split_into_pieces(waiting: int, fetched: int) -> None:
    names, over = [f"w{n}" for n in range(waiting)], [f"h{n}" for n in range(fetched)]
    found = list(pieces("http://a.test", export(waiting, waiting + fetched), names, over))
    assert [url for piece in found for url in piece.waiting] == names
    assert [url for piece in found for url in piece.gone] == over
    assert all(0 < len(piece.waiting) + len(piece.gone) <= PIECE_PAGES for piece in found)
    known = fetched
    for piece in found:
        refetched = decode(encode(Contents(sites=[piece]))).sites[0].export(1)
        known += len(refetched.pages)
        assert (refetched.record["known"], refetched.remaining_delay_s) == (known, 2.5) and math.isnan(
            refetched.record["delay_s"]
        )
        assert refetched.keys.tolist() == refetched.depths.tolist() == refetched.columns[:, 0].tolist()
    assert [key for piece in found for key in piece.keys] == list(range(waiting))


def test_refetched_pages_are_split_into_pieces_that_fit_a_batch() -> None:
    pages = [MovedRefetch(f"http://a.test/{n}", 1, MovedPage([float(n)] * 3000, False, None)) for n in range(100)]
    found = list(refetch_pieces("http://a.test", export(0, 100), [1.0], pages))
    assert [one for piece in found for one in piece.refetched] == pages and len(found) > 3
    assert all(piece.size <= BATCH_BYTES for piece in found)
    assert [list(piece.outcomes) for piece in found] == [[1.0]] + [[]] * (len(found) - 1)


def test_a_hand_over_of_an_older_version_is_read() -> None:
    data = b"TLH1" + url_batches.packed(b'[[["a.org", "192.0.2.1"]], [], true]')
    assert decode(data) == Contents([("a.org", "192.0.2.1")], [], True, (), None)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"TLB1",
        b"TLH1",
        b"TLH1xyz",
        b"TLH1" + url_batches.packed(b"{"),
        b"TLH1" + url_batches.packed(b"[[], [[]], 1]"),
        b"TLH1" + url_batches.packed(b"[[], [], 1, []]"),
        b"TLH1" + url_batches.packed(b'[[], [], 1, [], "x"]'),
        b"TLH1"
        + url_batches.packed(b'[[], [["http://a", {}, 0, [], [], [], [], [], [], [["u", 0, [[], 0, [1]]]]]], 1]'),
        b"TLH1" + url_batches.packed(b'[[], [["http://a", {}, 0, [], [], [], [], [], [], [7]]], 1]'),
        b"TLH1"
        + url_batches.packed(
            b'[[], [["http://a", {}, 0, [], [], [], [], [], [], [["u", 0, [[], 0, [1, 2, 3, "\\u20ac", "", "", "", ""]]]]]], 1]'
        ),
    ],
)
def test_bytes_that_are_no_hand_over_are_refused(data: bytes) -> None:
    with pytest.raises(ConfigError, match="the hand-over is damaged, or another version wrote it"):
        decode(data)


def test_a_hand_over_that_would_take_too_much_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(url_batches, "MOST_BYTES", 1000)
    with pytest.raises(ConfigError, match="decompresses to more than"):
        handover_batches.decode(encode(Contents([("a" * 2000, "")])))


def test_an_infinite_number_of_a_signal_is_refused_as_damage() -> None:
    with pytest.raises(ConfigError, match="damaged"):
        decode(handover_batches.MAGIC + url_batches.packed(b'[[], [], true, [], ["inbox", 1e999]]'))
