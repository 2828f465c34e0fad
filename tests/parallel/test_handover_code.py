"""What is handed over is read back to the last bit, in pieces of bounded size, and what is none is refused in one line."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trapline.errors import ConfigError
from trapline.frontier.transfer import SiteExport
from trapline.parallel import batch_code, handover_code
from trapline.parallel.handover_code import PIECE_PAGES, Contents, Piece, decode, encode, is_handover, pieces

NUMBERS = st.floats(allow_nan=False)
TEXT = st.text(max_size=40)
PIECES = st.builds(
    Piece, TEXT, st.dictionaries(TEXT, NUMBERS, max_size=4), NUMBERS, st.lists(TEXT), st.lists(NUMBERS), st.lists(NUMBERS),
    st.lists(NUMBERS), st.lists(st.lists(NUMBERS, max_size=3)), st.lists(TEXT),
)  # fmt: skip


def export(pages: int, known: int) -> SiteExport:
    numbers = np.arange(pages, dtype=float)
    record = {"known": float(known), "delay_s": math.nan}
    return SiteExport(record, 2.5, np.arange(pages, dtype=np.int32), numbers, numbers, numbers, numbers.reshape(-1, 1))


@given(st.lists(st.tuples(TEXT, TEXT)), st.lists(PIECES, max_size=3), st.booleans())
def test_it_is_read_as_it_was_written(hosts: list[tuple[str, str]], sites: list[Piece], is_last: bool) -> None:
    contents = Contents(hosts, sites, is_last)
    assert decode(encode(contents)) == contents
    assert is_handover(encode(contents)) and not is_handover(batch_code.encode([]))


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
        assert (again.record["known"], again.rest_s) == (known, 2.5) and math.isnan(again.record["delay_s"])
        assert again.keys.tolist() == again.depths.tolist() == again.columns[:, 0].tolist()
    assert [key for piece in found for key in piece.keys] == list(range(waiting))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"TLB1",
        b"TLH1",
        b"TLH1xyz",
        b"TLH1" + batch_code.packed(b"{"),
        b"TLH1" + batch_code.packed(b"[[], [[]], 1]"),
    ],
)
def test_what_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(ConfigError, match="what a partition hands over is damaged"):
        decode(data)


def test_what_would_take_too_much_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_code, "MOST_BYTES", 1000)
    with pytest.raises(ConfigError, match="none of ours"):
        handover_code.decode(encode(Contents([("a" * 2000, "")])))
