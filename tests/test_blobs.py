"""Blobs of a log: the format on disk does not change, and damaged bytes never count as valid.

Cuts and flipped bits are tried on a real log in tests/frontier/test_replay.py.

"""

import io
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.blobs import BlobKind
from trapline.errors import ConfigError
from trapline.frontier.journal import BLOBS as JOURNAL
from trapline.refresh.live.calls import BLOBS as REFRESH

KINDS = (JOURNAL, REFRESH)


def written_by_hand(kind: bytes, body: bytes) -> bytes:
    head = struct.pack("<4sII", kind, len(body), zlib.crc32(body))
    return head + struct.pack("<I", zlib.crc32(head)) + body


@pytest.mark.parametrize(("blobs", "kind"), [(JOURNAL, b"TLJ\x03"), (REFRESH, b"TLR\x01")])
def test_the_format_on_disk_is_that_of_existing_crawls(blobs: BlobKind, kind: bytes) -> None:
    assert blobs.blob(b"seven b") == written_by_hand(kind, b"seven b")


@given(st.lists(st.binary(max_size=40), max_size=5), st.sampled_from(KINDS))
def test_written_blobs_are_read_back(bodies: list[bytes], kind: BlobKind) -> None:
    data, whole = b"".join(map(kind.blob, bodies)), [body for body in bodies if body]
    assert list(kind.bodies(data)) == whole
    assert list(kind.bodies(io.BytesIO(data))) == whole


def test_the_two_kinds_of_logs_are_distinguished() -> None:
    with pytest.raises(ConfigError, match=r"the log of refresh has format b'TLJ\\x03'; this version reads b'TLR\\x01'"):
        list(REFRESH.bodies(JOURNAL.blob(b"abc")))


@given(st.data())
def test_a_cut_file_gives_its_complete_blobs_and_cut_bytes_are_refused(data: st.DataObject) -> None:
    blobs = [JOURNAL.blob(b"first"), JOURNAL.blob(b"second!")]
    whole = b"".join(blobs)
    cut = data.draw(st.integers(1, len(whole) - 1).filter(lambda end: end != len(blobs[0])))
    kept = [b"first"] if cut > len(blobs[0]) else []
    assert list(JOURNAL.bodies(io.BytesIO(whole[:cut]))) == kept
    with pytest.raises(ConfigError, match="the frontier's log is damaged"):
        list(JOURNAL.bodies(whole[:cut]))
