"""The calls of a refresher: the log of calls, and the effect of each call on the memory.

The effect is the same for a call just made and for a call read from the log.
"""

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from trapline.blobs import BlobKind
from trapline.errors import ConfigError
from trapline.frontier.layout import NEED_ROOM, Array
from trapline.refresh.core import kernels
from trapline.refresh.core.layout import POINT, PROMISED, UNVERIFIED
from trapline.refresh.live.channels import MOST_POINTS, NOT_VERIFIED, Channels
from trapline.refresh.live.memory import Memory
from trapline.refresh.live.moving import put_all, put_page, put_site
from trapline.rng import uniform

# ---- The log of calls. With a snapshot and the log since then, a crawl that was killed resumes with the same evidence.
#
# It knows no files or databases, like the frontier's log (frontier/journal.py). Format: blobs (blobs.py) of frames, one per call. A frame
# has the code of the call, the channel or flag, the length of the payload, the page, a number, the time, and the payload. Times are
# seconds since the refresher's start.

BLOBS = BlobKind(b"TLR\x01", "the log of refresh")
_FRAME = struct.Struct("<BBHidd")

NOTHING = np.zeros(0)


class LoggedCall(NamedTuple):
    """A logged call. refresh/core/kernels.py has the codes; the functions below say what the other fields mean for each call."""

    call: int
    flag: int
    page: int
    number: float
    now: float
    payload: Array


class RefreshLog:
    """The calls since the last `take`. The refresher writes them; the caller that stores the blobs takes them, and keeps their order."""

    def __init__(self) -> None:
        self._frames = bytearray()

    def write(self, entry: LoggedCall) -> None:
        """Append a call."""
        call, flag, page, number, now, payload = entry
        self._frames += _FRAME.pack(call, flag, len(payload), page, number, now)
        if len(payload):
            self._frames += payload.tobytes()

    def take(self) -> bytes:
        """Remove and return all calls as one blob; empty bytes if there are none."""
        body, self._frames = self._frames, bytearray()
        return BLOBS.blob(body)


def read(blobs: bytes) -> Iterator[LoggedCall]:
    """Yield every call of concatenated blobs, in order."""
    for body in BLOBS.bodies(blobs):
        yield from _entries(body)


def _entries(body: bytearray) -> Iterator[LoggedCall]:
    at = 0
    while at < len(body):
        call, flag, count, page, number, now = _FRAME.unpack_from(body, at)
        at += _FRAME.size
        yield LoggedCall(call, flag, page, number, now, np.frombuffer(body, np.float64, count, at))
        at += 8 * count


# ---- calls

MOST_ACCESSES = 100_000  # most accesses that one call can count


def carry_out(memory: Memory, channels: Channels, entry: LoggedCall) -> None:
    """Apply a call to the memory."""
    _CALLS[entry.call](memory, channels, entry)


def check(memory: Memory, entry: LoggedCall) -> None:
    """Raise ConfigError if a call read from a log cannot follow the present state, because calls between are missing."""
    if entry.call not in _CALLS:
        raise ConfigError(f"the log of refresh has an unknown call {entry.call}; use the version that wrote it")
    pages = entry.payload.tolist() if entry.call == kernels.CHOSE else [entry.page]
    if entry.call in (kernels.JOIN, kernels.ADOPTED):
        fits = memory.slot(entry.page) < 0
    else:
        fits = entry.call in _OF_NO_PAGE or all(memory.slot(int(page)) >= 0 for page in pages)
    if not fits:
        raise ConfigError(
            f"the log of refresh does not follow the snapshot (page {entry.page}): a part of the log is missing; "
            "restore the folder from a copy, or crawl again into another folder"
        )


def _happen(memory: Memory, entry: LoggedCall, slot: int, number: int = 0) -> int:
    return int(kernels.happen(memory.handle, entry.call, slot, number, entry.number, entry.now))


def _join(memory: Memory, channels: Channels, entry: LoggedCall) -> None:
    _let_time_pass(memory, channels, entry)
    slot = memory.add_page(entry.page, int(entry.number), float(entry.payload[0]))
    while _happen(memory, entry, slot) == NEED_ROOM:
        memory.grow_blocks()


def _plain(memory: Memory, channels: Channels, entry: LoggedCall) -> None:
    memory.make_timer_room()
    _happen(memory, entry, memory.slot(entry.page), entry.flag)


def _leave(memory: Memory, channels: Channels, entry: LoggedCall) -> None:
    slot = memory.slot(entry.page)
    _happen(memory, entry, slot, entry.flag)
    memory.remove_page(entry.page, slot)


def _adopted(memory: Memory, channels: Channels, entry: LoggedCall) -> None:
    _let_time_pass(memory, channels, entry)
    slot = memory.add_page(entry.page, int(entry.number), 0.0)
    put_page(memory, channels, slot, entry.payload)
    memory.make_timer_room()
    while _happen(memory, entry, slot) == NEED_ROOM:
        memory.grow_blocks()


def _trusted(memory: Memory, channels: Channels, entry: LoggedCall) -> None:
    _let_time_pass(memory, channels, entry)
    put_site(memory, channels, entry.page, entry.payload)


def _learned(memory: Memory, channels: Channels, entry: LoggedCall) -> None:
    _let_time_pass(memory, channels, entry)
    put_all(memory, channels, entry.payload)


def _accessed(memory: Memory, channels: Channels, entry: LoggedCall) -> None:
    """Count accesses. A fraction of an access is rounded up or down at random."""
    count = min(max(entry.number, 0.0), MOST_ACCESSES)
    rounded_up = uniform(entry.page, int(memory.whole.run["accesses"][0])) < count - int(count)
    _happen(memory, entry, memory.slot(entry.page), int(count) + rounded_up)


def _signalled(memory: Memory, channels: Channels, entry: LoggedCall) -> None:
    slot, probability = memory.slot(entry.page), 0.0 if entry.flag & NOT_VERIFIED else 1.0
    row = channels.row(memory.site(slot), entry.flag & ~NOT_VERIFIED, probability)
    _happen(memory, entry, slot, row)


def _published(memory: Memory, channels: Channels, entry: LoggedCall) -> None:
    _let_time_pass(memory, channels, entry)  # first, so that old points that are due pass before they are replaced
    slot = memory.slot(entry.page)
    record = memory.whole.page[slot]
    new = np.zeros(len(entry.payload) // 2, POINT)
    new["at_s"], new["p"] = entry.payload[::2], entry.payload[1::2]
    new["row"] = channels.row(memory.site(slot), entry.flag, float(new["p"].max(initial=0.0)))
    old = memory.whole.point[record.point : record.point_end]
    others = old[memory.whole.trust["channel"][old["row"]] != entry.flag]
    ahead = np.concatenate([others, new])
    ahead = ahead[np.argsort(ahead["at_s"], kind="stable")][:MOST_POINTS]
    memory.put_points(slot, ahead)
    record = memory.whole.page[slot]
    record.marks = int(record.marks) & ~PROMISED | (PROMISED if (ahead["p"] > UNVERIFIED).any() else 0)
    memory.make_timer_room()
    _happen(memory, entry, slot)


def _chose(memory: Memory, channels: Channels, entry: LoggedCall) -> None:
    slots = memory.slot_of[entry.payload.astype(np.int64)].astype(np.int64) - 1
    kernels.repeat_choice(memory.handle, slots, len(slots), entry.number, entry.now)


def _let_time_pass(memory: Memory, channels: Channels, entry: LoggedCall) -> None:
    kernels.happen(memory.handle, kernels.TIME_PASSED, 0, 0, 0.0, entry.now)


_CALLS: dict[int, Callable[[Memory, Channels, LoggedCall], None]] = {
    kernels.JOIN: _join,
    kernels.CRAWLED: _plain,
    kernels.FAILED: _plain,
    kernels.RETURNED: _plain,
    kernels.LEAVE: _leave,
    kernels.ACCESSED: _accessed,
    kernels.SIGNALLED: _signalled,
    kernels.PUBLISHED: _published,
    kernels.CHOSE: _chose,
    kernels.TIME_PASSED: _let_time_pass,
    kernels.ADOPTED: _adopted,
    kernels.TRUSTED: _trusted,  # its `page` is a site
    kernels.LEARNED: _learned,
}
_OF_NO_PAGE = (kernels.TIME_PASSED, kernels.TRUSTED, kernels.LEARNED)
