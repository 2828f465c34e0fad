"""Replay: make the logged calls again. Durability is this: a snapshot, and the log of calls since.

The calls that a crawl makes for every page go from the log straight to the kernels (replay_kernels.py): their numbers were checked
when they were made, and the log has a checksum. All others go through the frontier's face, as frames.
"""

from collections.abc import Callable
from typing import BinaryIO

import numpy as np

from trapline import jit
from trapline.errors import InvariantError
from trapline.frontier.arrivals import Arrivals
from trapline.frontier.frontier import Frontier
from trapline.frontier.journal import BLOBS, NOT_GIVEN, Call, Frame, frame_at
from trapline.frontier.layout import RESCORE
from trapline.frontier.replay_kernels import DIFFERENT, UNREAD, log_of, replay_calls
from trapline.frontier.transfer import SiteExport
from trapline.pinned import Pin


def replay(frontier: Frontier, source: bytes | BinaryIO) -> int:
    """Make the calls again, comparing every answer of `next` and `revisit`; how many calls there were."""
    jit.ready()
    journal, frontier.journal = frontier.journal, None  # they are in a log already
    try:
        return sum(_replay_body(frontier, body) for body in BLOBS.bodies(source))
    finally:
        frontier.journal = journal


def _replay_body(frontier: Frontier, body: bytearray) -> int:
    log, place = log_of(body), np.zeros(3, np.int64)
    pin = Pin(log)
    while True:
        answer = frontier.run_kernel(replay_calls, pin.handle, place, frontier.out, frontier.moment)
        if answer == DIFFERENT:
            raise _difference(frontier, frame_at(body, 8 * int(place[0]))[0], int(place[2]))
        if answer != UNREAD:
            return int(place[1])
        frame, end = frame_at(body, 8 * int(place[0]))
        _CALLS[frame.call](frontier, frame)
        place[0], place[1] = end // 8, place[1] + 1


def _difference(frontier: Frontier, frame: Frame, n: int) -> InvariantError:
    if frame.call == Call.REVISIT:
        site, *logged_answer, now, logged_moment = frame.numbers
        answer = (n, int(frontier.out[0]), float(frontier.moment[0]))
        return InvariantError(
            f"replay: revisit({site}, ..., {now}) gave {answer}, the log has {(*logged_answer, logged_moment)}"
        )
    logged_n, now, moment = frame.numbers
    logged = (logged_n, *frame.payload.tolist(), moment)
    ours = (n, *frontier.out[: n + 2 if n >= 0 else n == RESCORE].tolist(), float(frontier.moment[0]))
    return InvariantError(f"replay: next({now}) gave {ours}, the log has {logged}")


def _add_pages(frontier: Frontier, frame: Frame) -> None:
    (count,) = frame.numbers
    frontier.add_pages(frame.payload[:count], frame.payload[count:] if len(frame.payload) > count else None)


def _set_column(frontier: Frontier, frame: Frame) -> None:
    column, first = frame.numbers
    frontier.set_column(frontier.strategy.page.columns[column], frame.payload, first)


def _set_site(frontier: Frontier, frame: Frame) -> None:
    site, per_connection, pages, now, delay_s, not_before = frame.numbers
    frontier.set_site(
        site,
        now,
        delay_s=None if delay_s != delay_s else delay_s,
        per_connection=None if per_connection == NOT_GIVEN else per_connection,
        pages=None if pages == NOT_GIVEN else pages,
        not_before=None if not_before != not_before else not_before,
    )


def _import_site(frontier: Frontier, frame: Frame) -> None:
    site, n, now = frame.numbers
    export = SiteExport.from_numbers(frame.payload[n:], n, len(frontier.strategy.page.columns))
    frontier.import_site(export, site, frame.payload[:n].astype(np.int32), now)


def _fetched_elsewhere(frontier: Frontier, frame: Frame) -> None:
    pages, depths = np.split(frame.payload, 2)
    frontier.fetched_elsewhere(pages, depths, frame.numbers[0])


_CALLS: dict[Call, Callable[[Frontier, Frame], object]] = {
    Call.ADD_SITES: lambda f, frame: f.add_sites(len(frame.payload), frame.numbers[0], frame.payload),
    Call.ADD_PAGES: _add_pages,
    Call.SET_COLUMN: _set_column,
    Call.RESOLVE: lambda f, frame: f.resolve(*frame.numbers),
    Call.SET_SITE: _set_site,
    Call.EXPORT_SITE: lambda f, frame: f.export_site(*frame.numbers),
    Call.IMPORT_SITE: _import_site,
    Call.RESCORE: lambda f, frame: f.rescore(frame.payload, frame.numbers[0]),
    Call.RECEIVE: lambda f, frame: f.receive(Arrivals.from_numbers(frame.payload), frame.numbers[0]),
    Call.HAD_ELSEWHERE: lambda f, frame: f.had_elsewhere(frame.payload, frame.numbers[0]),
    Call.FETCHED_ELSEWHERE: _fetched_elsewhere,
    Call.HOLD_ALL: lambda f, frame: f.hold_all(frame.numbers[0]),
}
