"""Robots that wait: for the store, which has too much to do, or for the end of a pause.

It knows neither why nor for how long. Who fills it: the crawler, for a robot that asks. Who empties it: `store_has_room`, time,
`end_pauses`, and a robot that `leaves`. A robot is known by what it wants to have called.
"""

from collections.abc import Callable

from trapline.crawl.world import Timer, World

Robot = Callable[[], None]


class Waiting:
    def __init__(self) -> None:
        self._for_store: dict[Robot, None] = {}
        self._pausing: dict[Robot, Timer] = {}

    def for_store(self, robot: Robot) -> None:
        self._for_store[robot] = None

    def pause(self, robot: Robot, moment: float, world: World) -> None:
        self._pausing[robot] = world.call_at(moment, lambda: self._paused(robot))

    def _paused(self, robot: Robot) -> None:
        self._pausing.pop(robot).cancel()
        robot()

    def end_pauses(self) -> None:
        for robot in list(self._pausing):
            self._paused(robot)

    def store_has_room(self) -> None:
        waiting, self._for_store = self._for_store, {}
        for robot in waiting:
            robot()

    def leaves(self, robot: Robot) -> None:
        self._for_store.pop(robot, None)
        if robot in self._pausing:
            self._pausing.pop(robot).cancel()
