"""Visits that wait for the store, or for the end of a pause.

The crawler adds a visit that has to wait. `store_has_room`, the timers, `end_pauses` and `leaves` remove it. A visit is identified by
the function that continues it.
"""

from collections.abc import Callable

from trapline.crawler.engine.world import Timer, World

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
