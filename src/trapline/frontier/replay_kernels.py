"""The compiled half of replay.py: the calls that a crawl makes for every page, straight from the log.

`Log` is three views of the body of one blob (journal.py has the format): as integers, as floats, and as the ids of a payload, two a word.
"""

from typing import NamedTuple

import numpy as np

from trapline.frontier.journal import Call
from trapline.frontier.kernels import answer_discover, answer_finish, answer_next, answer_report, register
from trapline.frontier.layout import NEED_ROOM, RESCORE, Array, Numbers, State, StateType, Times, recall
from trapline.frontier.revisits import answer_revisit
from trapline.jit import b1, helper, i8, kernel
from trapline.pinned import Pinned, recaller

DIFFERENT = -7  # beside the answers of kernels: `next` or `revisit` did not answer as the log says
UNREAD = -8  # a call for the face of the frontier
ADD_PAGES, DISCOVER, NEXT, REPORT, FINISH, REVISIT = (
    int(call) for call in (Call.ADD_PAGES, Call.DISCOVER, Call.NEXT, Call.REPORT, Call.FINISH, Call.REVISIT)
)


class Log(NamedTuple):
    words: Array
    floats: Array
    ids: Array


def log_of(body: bytearray) -> Log:
    return Log(*(np.frombuffer(body, kind) for kind in (np.int64, np.float64, np.int32)))


LogType = Pinned(log_of(bytearray(8)))
recall_log = recaller(LogType)


@helper(b1(LogType, i8, i8, Numbers, Times))
def is_logged(log: Log, at: int, n: int, out: Array, moment: Array) -> bool:
    """Whether the answer of `next` is the one in the log: its kind and all that was said."""
    said = n + 2 if n >= 0 else 1 if n == RESCORE else 0
    same = log.words[at + 1] == n and log.words[at] >> 32 == said and log.floats[at + 3] == moment[0]
    for i in range(said if same else 0):
        same = same and log.words[at + 4 + i] == out[i]
    return same


@helper(i8(StateType, LogType, Numbers, Numbers, Times))
def make_revisit(s: State, log: Log, place: Array, out: Array, moment: Array) -> int:
    """The answer of the call, or DIFFERENT. Its pages are the first of those in the log."""
    words, floats, at = log.words, log.floats, place[0]
    n = answer_revisit(s, words[at + 1], log.ids[2 * (at + 6) :], words[at] >> 32, floats[at + 4], out, moment)
    place[2] = n
    same = words[at + 2] == n and words[at + 3] == out[0] and floats[at + 5] == moment[0]
    return n if n == NEED_ROOM or same else DIFFERENT


@helper(i8(StateType, LogType, Numbers, i8, Numbers, Times))
def make_call(s: State, log: Log, place: Array, call: int, out: Array, moment: Array) -> int:
    """The answer of the call, DIFFERENT or UNREAD."""
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
def words_of(log: Log, at: int, call: int) -> int:
    """The length of a frame that `make_call` reads."""
    count = log.words[at] >> 32
    if call == NEXT:
        return 4 + count
    if call == FINISH:
        return 7
    return (6 if call in (REPORT, REVISIT) else 2) + (count + 1) // 2


@kernel(i8(i8, i8, Numbers, Numbers, Times))
def replay_calls(handle: int, log_handle: int, place: Array, out: Array, moment: Array) -> int:
    """Make the calls from word place[0] on; 0, NEED_ROOM, DIFFERENT, or UNREAD: the next one is for the face. place[1] counts them,
    place[2] is the last answer of `next` or `revisit`."""
    s: State = recall(handle)
    log: Log = recall_log(log_handle)
    while place[0] < log.words.size:
        call = log.words[place[0]] & 255
        answer = make_call(s, log, place, call, out, moment)
        if answer in (NEED_ROOM, DIFFERENT, UNREAD) or s.run[0].fault != 0:
            return answer
        place[0] += words_of(log, place[0], call)
        place[1] += 1
    return 0
