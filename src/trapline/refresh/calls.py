"""What each call of a refresher does to its memory. The same for a call just made and for one read from a log."""

from collections.abc import Callable

import numpy as np

from trapline.errors import ConfigError
from trapline.frontier.layout import NEED_ROOM
from trapline.refresh import kernels
from trapline.refresh.channels import NOT_VERIFIED, Channels
from trapline.refresh.layout import POINT, PROMISED, UNVERIFIED
from trapline.refresh.memory import Memory
from trapline.refresh.moving import put_all, put_page, put_site
from trapline.refresh.published import MOST_POINTS
from trapline.refresh.refresh_log import Entry
from trapline.rng import uniform

MOST_ACCESSES = 100_000  # counted of one call


def carry_out(memory: Memory, channels: Channels, entry: Entry) -> None:
    _CALLS[entry.call](memory, channels, entry)


def check(memory: Memory, entry: Entry) -> None:
    """Raise `ConfigError` unless a call read from a log can follow on what was there before: calls between may be missing."""
    if entry.call not in _CALLS:
        raise ConfigError(f"the log of refresh has a call {entry.call}, which this version does not know")
    pages = entry.payload.tolist() if entry.call == kernels.CHOSE else [entry.page]
    if entry.call in (kernels.JOIN, kernels.ADOPTED):
        fits = memory.slot(entry.page) < 0
    else:
        fits = entry.call in _OF_NO_PAGE or all(memory.slot(int(page)) >= 0 for page in pages)
    if not fits:
        raise ConfigError(
            f"the log of refresh does not go on where it should (page {entry.page}): some of it is missing; "
            "restore the folder from a copy, or crawl anew into another"
        )


def _happen(memory: Memory, entry: Entry, slot: int, number: int = 0) -> int:
    return int(kernels.happen(memory.handle, entry.call, slot, number, entry.number, entry.now))


def _join(memory: Memory, channels: Channels, entry: Entry) -> None:
    _let_time_pass(memory, channels, entry)
    slot = memory.add_page(entry.page, int(entry.number), float(entry.payload[0]))
    while _happen(memory, entry, slot) == NEED_ROOM:
        memory.grow_blocks()


def _plain(memory: Memory, channels: Channels, entry: Entry) -> None:
    memory.make_timer_room()
    _happen(memory, entry, memory.slot(entry.page), entry.flag)


def _leave(memory: Memory, channels: Channels, entry: Entry) -> None:
    slot = memory.slot(entry.page)
    _happen(memory, entry, slot, entry.flag)
    memory.remove_page(entry.page, slot)


def _adopted(memory: Memory, channels: Channels, entry: Entry) -> None:
    _let_time_pass(memory, channels, entry)
    slot = memory.add_page(entry.page, int(entry.number), 0.0)
    put_page(memory, channels, slot, entry.payload)
    memory.make_timer_room()
    while _happen(memory, entry, slot) == NEED_ROOM:
        memory.grow_blocks()


def _trusted(memory: Memory, channels: Channels, entry: Entry) -> None:
    _let_time_pass(memory, channels, entry)
    put_site(memory, channels, entry.page, entry.payload)


def _learned(memory: Memory, channels: Channels, entry: Entry) -> None:
    _let_time_pass(memory, channels, entry)
    put_all(memory, channels, entry.payload)


def _accessed(memory: Memory, channels: Channels, entry: Entry) -> None:
    """Parts of an access are rounded by chance."""
    count = min(max(entry.number, 0.0), MOST_ACCESSES)
    rounded_up = uniform(entry.page, int(memory.whole.run["accesses"][0])) < count - int(count)
    _happen(memory, entry, memory.slot(entry.page), int(count) + rounded_up)


def _signalled(memory: Memory, channels: Channels, entry: Entry) -> None:
    slot, probability = memory.slot(entry.page), 0.0 if entry.flag & NOT_VERIFIED else 1.0
    row = channels.row(memory.site(slot), entry.flag & ~NOT_VERIFIED, probability)
    _happen(memory, entry, slot, row)


def _published(memory: Memory, channels: Channels, entry: Entry) -> None:
    _let_time_pass(memory, channels, entry)  # and points with it
    slot = memory.slot(entry.page)
    record = memory.whole.page[slot]
    new = np.zeros(len(entry.payload) // 2, POINT)
    new["at_s"], new["p"] = entry.payload[::2], entry.payload[1::2]
    new["row"] = channels.row(memory.site(slot), entry.flag, float(new["p"].max(initial=0.0)))
    had = memory.whole.point[record.point : record.point_end]
    others = had[memory.whole.trust["channel"][had["row"]] != entry.flag]
    ahead = np.concatenate([others, new])
    ahead = ahead[np.argsort(ahead["at_s"], kind="stable")][:MOST_POINTS]
    memory.put_points(slot, ahead)
    record = memory.whole.page[slot]
    record.marks = int(record.marks) & ~PROMISED | (PROMISED if (ahead["p"] > UNVERIFIED).any() else 0)
    memory.make_timer_room()
    _happen(memory, entry, slot)


def _chose(memory: Memory, channels: Channels, entry: Entry) -> None:
    slots = memory.slot_of[entry.payload.astype(np.int64)].astype(np.int64) - 1
    kernels.repeat_choice(memory.handle, slots, len(slots), entry.number, entry.now)


def _let_time_pass(memory: Memory, channels: Channels, entry: Entry) -> None:
    kernels.happen(memory.handle, kernels.ASKED, 0, 0, 0.0, entry.now)


_CALLS: dict[int, Callable[[Memory, Channels, Entry], None]] = {
    kernels.JOIN: _join,
    kernels.CRAWLED: _plain,
    kernels.FAILED: _plain,
    kernels.RETURNED: _plain,
    kernels.LEAVE: _leave,
    kernels.ACCESSED: _accessed,
    kernels.SIGNALLED: _signalled,
    kernels.PUBLISHED: _published,
    kernels.CHOSE: _chose,
    kernels.ASKED: _let_time_pass,
    kernels.ADOPTED: _adopted,
    kernels.TRUSTED: _trusted,  # of a site
    kernels.LEARNED: _learned,
}
_OF_NO_PAGE = (kernels.ASKED, kernels.TRUSTED, kernels.LEARNED)
