"""The states of a visit (visit.py), who ended its connection, and the visits that wait.

States (`VisitState`), and what leads from one to another:

    CONNECTING         -> ROBOTS             the connection is open, and the rules of the site are missing or expired
                       -> FETCHING           the connection is open, and the rules are known
                       -> OVER               there is no connection: the site has failed
    ROBOTS             -> PAUSED             the rules have arrived; or robots.txt redirects within the site
                       -> OVER               there are no usable rules: the site has failed, or is tried again later
    FETCHING           -> PAUSED             a page has arrived, another follows, and the site wants pauses
                       -> WAITS_FOR_STORE    the store is behind
                       -> OVER               no page is left or allowed, or the connection was lost
    PAUSED             -> CONNECTING         the pause is over, and robots.txt needs a second connection
                       -> ROBOTS, FETCHING   the pause is over
                       -> OVER               the crawl stops, or the connection was lost during the pause
    WAITS_FOR_STORE    -> FETCHING           the store has room again
                       -> OVER               the store has room again, but the connection was lost meanwhile

While a visit is PAUSED or WAITS_FOR_STORE it sends nothing. Answers to pipelined requests may still arrive then.
"""

from collections.abc import Callable
from enum import Enum, auto

from trapline.crawler.engine.world import Timer, World
from trapline.fetch import failure

_WE_HUNG_UP = frozenset({failure.TIMEOUT, failure.TOO_LARGE, failure.PROTOCOL})


class VisitState(Enum):
    CONNECTING = auto()
    ROBOTS = auto()  # robots.txt was requested
    FETCHING = auto()
    PAUSED = auto()
    WAITS_FOR_STORE = auto()
    OVER = auto()


SENDS_NOTHING = (VisitState.PAUSED, VisitState.WAITS_FOR_STORE)


class End(Enum):
    """Who ended a connection."""

    NONE = auto()  # it has not ended
    SERVER = auto()  # the server takes no more requests
    OURS = auto()  # we ended it because the answer was too long, too slow or malformed; the server may still be sending
    NOBODYS = auto()


def end_by(kind: str) -> End:
    """Return who ended a lost connection, by its kind of failure. An orderly end has none."""
    if kind in ("", failure.CLOSED):
        return End.SERVER
    return End.OURS if kind in _WE_HUNG_UP else End.NOBODYS


# ---- Visits that wait for the store, or for the end of a pause.
#
# The crawler adds a visit that has to wait. `store_has_room`, the timers, `end_pauses` and `leaves` remove it. A visit is identified by
# the function that continues it.

Resume = Callable[[], None]


class WaitingVisits:
    def __init__(self) -> None:
        self._for_store: dict[Resume, None] = {}
        self._pausing: dict[Resume, Timer] = {}

    def for_store(self, resume: Resume) -> None:
        self._for_store[resume] = None

    def pause(self, resume: Resume, moment: float, world: World) -> None:
        self._pausing[resume] = world.call_at(moment, lambda: self._paused(resume))

    def _paused(self, resume: Resume) -> None:
        self._pausing.pop(resume).cancel()
        resume()

    def end_pauses(self) -> None:
        for resume in list(self._pausing):
            self._paused(resume)

    def store_has_room(self) -> None:
        waiting, self._for_store = self._for_store, {}
        for resume in waiting:
            resume()

    def leaves(self, resume: Resume) -> None:
        self._for_store.pop(resume, None)
        if resume in self._pausing:
            self._pausing.pop(resume).cancel()
