"""What is handed over is read back to the last bit, in pieces of bounded size, and what is none is refused in one line."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trapline.crawl.engine.records import KeptCopy
from trapline.crawl.recrawl.moved_pages import MovedPage
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
    pieces_again,
)
from trapline.parallel.transport.url_batches import PARCEL_BYTES

NUMBERS = st.floats(allow_nan=False)
TEXT = st.text(max_size=40)
BYTES = st.binary(max_size=20)
COPIES = st.none() | st.builds(KeptCopy, NUMBERS, NUMBERS, st.none() | NUMBERS, BYTES, BYTES, BYTES, BYTES, TEXT)
AGAIN = st.builds(
    MovedRefetch, TEXT, st.integers(0, 9), st.builds(MovedPage, st.lists(NUMBERS, max_size=9), st.booleans(), COPIES)
)
PIECES = st.builds(
    Piece, TEXT, st.dictionaries(TEXT, NUMBERS, max_size=4), NUMBERS, st.lists(TEXT), st.lists(NUMBERS), st.lists(NUMBERS),
    st.lists(NUMBERS), st.lists(st.lists(NUMBERS, max_size=3)), st.lists(TEXT), st.lists(AGAIN, max_size=3), st.lists(NUMBERS),
)  # fmt: skip
HEARD = st.none() | st.tuples(TEXT, st.integers(0, 2**40))


def export(pages: int, known: int) -> SiteExport:
    numbers = np.arange(pages, dtype=float)
    record = {"known": float(known), "delay_s": math.nan}
    return SiteExport(record, 2.5, np.arange(pages, dtype=np.int32), numbers, numbers, numbers, numbers.reshape(-1, 1))


@given(
    st.lists(st.tuples(TEXT, TEXT)), st.lists(PIECES, max_size=3), st.booleans(), st.lists(NUMBERS, max_size=9), HEARD
)
def test_it_is_read_as_it_was_written(
    hosts: list[tuple[str, str]],
    sites: list[Piece],
    is_last: bool,
    learned: list[float],
    heard: tuple[str, int] | None,
) -> None:
    contents = Contents(hosts, sites, is_last, learned, heard)
    assert decode(encode(contents)) == contents
    assert is_handover(encode(contents)) and not is_handover(url_batches.encode([]))


@settings(deadline=None)
@given(st.sampled_from([0, 1, PIECE_PAGES, PIECE_PAGES + 1, 3 * PIECE_PAGES]), st.integers(0, 2 * PIECE_PAGES + 5))
def test_a_site_of_any_size_goes_in_pieces(waiting: int, had: int) -> None:
    names, over = [f"w{n}" for n in range(waiting)], [f"h{n}" for n in range(had)]
    found = list(pieces("http://a.test", export(waiting, waiting + had), names, over))
    assert [url for piece in found for url in piece.waiting] == names
    assert [url for piece in found for url in piece.had] == over
    assert all(0 < len(piece.waiting) + len(piece.had) <= PIECE_PAGES for piece in found)
    known = had
    for piece in found:
        again = decode(encode(Contents(sites=[piece]))).sites[0].export(1)
        known += len(again.pages)
        assert (again.record["known"], again.remaining_delay_s) == (known, 2.5) and math.isnan(again.record["delay_s"])
        assert again.keys.tolist() == again.depths.tolist() == again.columns[:, 0].tolist()
    assert [key for piece in found for key in piece.keys] == list(range(waiting))


def test_pages_that_are_fetched_again_go_in_pieces_that_fit_a_parcel() -> None:
    pages = [MovedRefetch(f"http://a.test/{n}", 1, MovedPage([float(n)] * 3000, False, None)) for n in range(100)]
    found = list(pieces_again("http://a.test", export(0, 100), [1.0], pages))
    assert [one for piece in found for one in piece.again] == pages and len(found) > 3
    assert all(piece.size <= PARCEL_BYTES for piece in found)
    assert [list(piece.outcomes) for piece in found] == [[1.0]] + [[]] * (len(found) - 1)


def test_what_an_older_version_had_under_way_is_read() -> None:
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
def test_what_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(ConfigError, match="the hand-over is damaged, or another version wrote it"):
        decode(data)


def test_what_would_take_too_much_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(url_batches, "MOST_BYTES", 1000)
    with pytest.raises(ConfigError, match="decompresses to more than"):
        handover_batches.decode(encode(Contents([("a" * 2000, "")])))


def test_an_infinite_number_of_a_signal_is_damage() -> None:
    with pytest.raises(ConfigError, match="damaged"):
        decode(handover_batches.MAGIC + url_batches.packed(b'[[], [], true, [], ["inbox", 1e999]]'))
