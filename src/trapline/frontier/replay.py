"""Replay of logged calls. A snapshot and the log of calls since then restore the frontier after a crash.

The calls that a crawl makes for every page go from the log straight to the kernels: their arguments were checked when they
were first made, and the log has a checksum. All other calls go through the public methods of the frontier.
"""

from collections.abc import Callable
from typing import BinaryIO, NamedTuple

import numpy as np

from trapline.compiled.array_handles import Pin, Pinned, recaller
from trapline.compiled.jit import b1, helper, i8, kernel
from trapline.errors import InvariantError
from trapline.frontier.answers import Visit
from trapline.frontier.changes import StrategyChange, rules_from_numbers
from trapline.frontier.core.arrivals import Arrivals
from trapline.frontier.core.kernels import answer_discover, answer_finish, answer_next, answer_report, register
from trapline.frontier.core.revisits import answer_revisit
from trapline.frontier.frontier import Frontier
from trapline.frontier.journal import BLOBS, NOT_GIVEN, Call, JournalFrame, frame_at
from trapline.frontier.layout import NEED_ROOM, RESCORE, WAIT, Array, FrontierState, Numbers, StateType, Times, recall
from trapline.frontier.transfer import SiteExport

# ---- The compiled half: the calls that a crawl makes for every page, straight from the log.

# Answers besides those of kernels.
DIFFERENT = -7  # `next` or `revisit` gave another answer than the log has
UNREAD = -8  # the next call must go through a public method of the frontier
ADD_PAGES, DISCOVER, NEXT, REPORT, FINISH, REVISIT = (
    int(call) for call in (Call.ADD_PAGES, Call.DISCOVER, Call.NEXT, Call.REPORT, Call.FINISH, Call.REVISIT)
)


class CallLog(NamedTuple):
    """Three views of the body of one blob (journal.py has the format): as int64 words, as floats, and as ids, two per word."""

    words: Array
    floats: Array
    ids: Array


def log_of(body: bytearray) -> CallLog:
    """Return the views of the body of a blob."""
    return CallLog(*(np.frombuffer(body, kind) for kind in (np.int64, np.float64, np.int32)))


LogType = Pinned(log_of(bytearray(8)))
recall_log = recaller(LogType)


@helper(b1(LogType, i8, i8, Numbers, Times))
def is_logged(log: CallLog, at: int, n: int, out: Array, moment: Array) -> bool:
    """Return whether the answer of `next` is the one in the log: its kind, its numbers and its time."""
    said = n + 2 if n >= 0 else 1 if n == RESCORE else 0
    same = log.words[at + 1] == n and log.words[at] >> 32 == said and log.floats[at + 3] == moment[0]
    for i in range(said if same else 0):
        same = same and log.words[at + 4 + i] == out[i]
    return same


@helper(i8(StateType, LogType, Numbers, Numbers, Times))
def make_revisit(s: FrontierState, log: CallLog, place: Array, out: Array, moment: Array) -> int:
    """Make a logged `revisit` call. Return its answer, or DIFFERENT. The leased pages are the first of the pages in the log."""
    words, floats, at = log.words, log.floats, place[0]
    n = answer_revisit(s, words[at + 1], log.ids[2 * (at + 6) :], words[at] >> 32, floats[at + 4], out, moment)
    place[2] = n
    same = words[at + 2] == n and words[at + 3] == out[0] and floats[at + 5] == moment[0]
    return n if n == NEED_ROOM or same else DIFFERENT


@helper(i8(StateType, LogType, Numbers, i8, Numbers, Times))
def make_call(s: FrontierState, log: CallLog, place: Array, call: int, out: Array, moment: Array) -> int:
    """Make the logged call at word place[0]. Return its answer, DIFFERENT or UNREAD."""
    words, floats, at = log.words, log.floats, place[0]
    count = words[at] >> 32
    if call == NEXT:
        n = answer_next(s, floats[at + 2], out, moment)
        place[2] = n
        return n if n == NEED_ROOM or is_logged(log, at, n, out, moment) else DIFFERENT
    if call == REPORT:
        links = log.ids[2 * (at + 6) :]
        return answer_report(
            s, words[at + 1], words[at + 2], words[at + 3], floats[at + 4], floats[at + 5], links, count
        )
    if call == FINISH:
        return answer_finish(
            s, words[at + 1], words[at + 2], words[at + 3], floats[at + 4], floats[at + 5], floats[at + 6]
        )
    if call == REVISIT:
        return make_revisit(s, log, place, out, moment)
    if call == DISCOVER:
        return answer_discover(s, log.ids[2 * (at + 2) :], count, floats[at + 1])
    if call == ADD_PAGES and s.run[0].pages + words[at + 1] <= s.page.size:
        register(s, log.ids[2 * (at + 2) :], words[at + 1], count - words[at + 1])
        return 0
    return UNREAD


@helper(i8(LogType, i8, i8))
def words_of(log: CallLog, at: int, call: int) -> int:
    """Return the length in words of a frame that `make_call` reads."""
    count = log.words[at] >> 32
    if call == NEXT:
        return 4 + count
    if call == FINISH:
        return 7
    return (6 if call in (REPORT, REVISIT) else 2) + (count + 1) // 2


@kernel(i8(i8, i8, Numbers, Numbers, Times))
def replay_calls(handle: int, log_handle: int, place: Array, out: Array, moment: Array) -> int:
    """Make the logged calls from word place[0] on. Return 0, NEED_ROOM, DIFFERENT or UNREAD.

    place[1] counts the calls; place[2] is the last answer of `next` or `revisit`.
    """
    s: FrontierState = recall(handle)
    log: CallLog = recall_log(log_handle)
    while place[0] < log.words.size:
        call = log.words[place[0]] & 255
        answer = make_call(s, log, place, call, out, moment)
        if answer in (NEED_ROOM, DIFFERENT, UNREAD) or s.run[0].fault != 0:
            return answer
        place[0] += words_of(log, place[0], call)
        place[1] += 1
    return 0


# ---- replay


StrategySource = Callable[[int, int], StrategyChange]


def replay(frontier: Frontier, source: bytes | BinaryIO, strategies: StrategySource | None = None) -> int:
    """Make the logged calls again, compare every answer of `next` and `revisit` with the log, and return the number of calls.

    `strategies`: returns the change of strategy with a number, after a number of fetches (`Frontier.change_strategy`).
    """
    journal, frontier.journal = frontier.journal, None  # the calls are in a log already
    try:
        return sum(_replay_body(frontier, body, strategies) for body in BLOBS.bodies(source))
    finally:
        frontier.journal = journal


def _replay_body(frontier: Frontier, body: bytearray, strategies: StrategySource | None) -> int:
    """Replay the calls of one blob and return their number."""
    log, place = log_of(body), np.zeros(3, np.int64)
    pin = Pin(log)
    while True:
        answer = frontier.run_kernel(replay_calls, pin.handle, place, frontier.out, frontier.moment)
        if answer == DIFFERENT:
            raise _difference(frontier, frame_at(body, 8 * int(place[0]))[0], int(place[2]))
        if answer != UNREAD:
            return int(place[1])
        frame, end = frame_at(body, 8 * int(place[0]))
        if frame.call == Call.CHANGE_STRATEGY:
            _change_strategy(frontier, frame, strategies)
        else:
            _CALLS[frame.call](frontier, frame)
        place[0], place[1] = end // 8, place[1] + 1


def _difference(frontier: Frontier, frame: JournalFrame, n: int) -> InvariantError:
    """Return the error that says how an answer differs from the log."""
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


def _change_strategy(frontier: Frontier, frame: JournalFrame, strategies: StrategySource | None) -> None:
    number, fetches, now = frame.numbers
    if strategies is None:
        raise InvariantError("replay: the log changes the strategy; give `strategies`")
    frontier.change_strategy(strategies(number, fetches), number, fetches, now)


def _add_pages(frontier: Frontier, frame: JournalFrame) -> None:
    (count,) = frame.numbers
    frontier.add_pages(frame.payload[:count], frame.payload[count:] if len(frame.payload) > count else None)


def _set_column(frontier: Frontier, frame: JournalFrame) -> None:
    column, first = frame.numbers
    frontier.set_column(frontier.strategy.page.columns[column], frame.payload, first)


def _set_site(frontier: Frontier, frame: JournalFrame) -> None:
    site, per_connection, pages, now, delay_s, not_before = frame.numbers
    frontier.set_site(
        site,
        now,
        delay_s=None if delay_s != delay_s else delay_s,
        per_connection=None if per_connection == NOT_GIVEN else per_connection,
        pages=None if pages == NOT_GIVEN else pages,
        not_before=None if not_before != not_before else not_before,
    )


def _visit(frontier: Frontier, frame: JournalFrame) -> None:
    site, n, now, moment = frame.numbers
    answer = frontier.visit(site, now)
    if isinstance(answer, Visit):
        ours = (len(answer.pages), answer.expires_at, [answer.id, site, *answer.pages])
    else:
        ours = (WAIT, answer.time, [])
    if ours != (n, moment, frame.payload.tolist()):
        raise InvariantError(
            f"replay: visit({site}, {now}) gave {ours}, the log has {(n, moment, frame.payload.tolist())}"
        )


def _set_quality(frontier: Frontier, frame: JournalFrame) -> None:
    page, quality, now = frame.numbers
    frontier.set_quality(page, quality, frame.payload, now)


def _import_site(frontier: Frontier, frame: JournalFrame) -> None:
    site, n, now = frame.numbers
    export = SiteExport.from_numbers(frame.payload[n:], n, len(frontier.strategy.page.columns))
    frontier.import_site(export, site, frame.payload[:n].astype(np.int32), now)


def _fetched_elsewhere(frontier: Frontier, frame: JournalFrame) -> None:
    pages, depths = np.split(frame.payload, 2)
    frontier.fetched_elsewhere(pages, depths, frame.numbers[0])


_CALLS: dict[Call, Callable[[Frontier, JournalFrame], object]] = {
    Call.ADD_SITES: lambda f, frame: f.add_sites(len(frame.payload), frame.numbers[0], frame.payload),
    Call.ADD_PAGES: _add_pages,
    Call.SET_COLUMN: _set_column,
    Call.RESOLVE: lambda f, frame: f.resolve(*frame.numbers),
    Call.SET_SITE: _set_site,
    Call.EXPORT_SITE: lambda f, frame: f.export_site(*frame.numbers),
    Call.IMPORT_SITE: _import_site,
    Call.RESCORE: lambda f, frame: f.rescore(frame.payload, frame.numbers[0]),
    Call.RECEIVE: lambda f, frame: f.receive(Arrivals.from_numbers(frame.payload), frame.numbers[0]),
    Call.GONE_ELSEWHERE: lambda f, frame: f.gone_elsewhere(frame.payload, frame.numbers[0]),
    Call.FETCHED_ELSEWHERE: _fetched_elsewhere,
    Call.HOLD_ALL: lambda f, frame: f.hold_all(frame.numbers[0]),
    Call.CHANGE_RULES: lambda f, frame: f.change_rules(rules_from_numbers(frame.payload), frame.numbers[0]),
    Call.WITHDRAW: lambda f, frame: f.withdraw(frame.payload, frame.numbers[0]),
    Call.READMIT: lambda f, frame: f.readmit(frame.payload, frame.numbers[0]),
    Call.VISIT: _visit,
    Call.SET_QUALITY: _set_quality,
}
