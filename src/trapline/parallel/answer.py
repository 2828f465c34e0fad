"""What a partition tells its coordinator of itself, and all of them as one: for the census, for goals, for whoever watches the crawl."""

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from trapline.crawl.records import Progress
from trapline.crawl.standing import MOST_ROWS, FetchedAgain, Recent, Standing, next_visit
from trapline.crawl.tally import Heard
from trapline.parallel.census import Count
from trapline.parallel.quotas import Holding

Rows = Sequence[tuple[str, int]]
NOTHING = Progress(0.0, 0.0, 0, 0, 0, 0, 0, 0, 0, 0.0)


class Answer(NamedTuple):
    counted: Count
    holding: Holding  # of the goal of pages
    progress: Progress
    busiest: Rows = ()
    errors: Rows = ()
    given_up: Rows = ()
    left_out: Rows = ()
    doing: str = ""
    again: FetchedAgain | None = None
    pages_per_s: float = 0.0
    next_visit_s: float = math.inf  # while it has no connection open

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> "Answer":
        """From JSON, in which tuples are lists. `KeyError`, `TypeError`, `ValueError`: it is no answer."""
        counted, holding = Count(*said["counted"]), Holding(*said["holding"])
        named = {"counted": counted, "holding": holding, "progress": Progress(*said["progress"])}
        found = cls(**{**said, **named, "again": None if said["again"] is None else _read_again(*said["again"])})
        found._check()
        return found

    def _check(self) -> None:
        """What is not of its type would be found out where all are added up, and end the crawl."""
        rows = [row for table in (self.busiest, self.errors, self.given_up, self.left_out) for row in table]
        again = () if self.again is None else (self.again.fetched, self.again.changed, *self.again.heard)
        numbers = *self.counted, *self.holding, *self.progress, *again, self.pages_per_s, self.next_visit_s
        counts, texts = [count for _, count in rows], [self.doing, *(name for name, _ in rows)]
        if not all(isinstance(one, int | float) for one in (*numbers, *counts)) or not all(
            isinstance(one, str) for one in texts
        ):
            raise TypeError("no answer of a partition")


def _read_again(fetched: int, changed: int, heard: Sequence[int], by_quality: bool) -> FetchedAgain:
    return FetchedAgain(fetched, changed, Heard(*heard), by_quality)


def answer(count: Count, holding: Holding, progress: Progress, standing: Standing | None) -> Answer:
    if standing is None:
        return Answer(count, holding, progress)
    rows = standing.busiest(), standing.errors, standing.given_up, standing.left_out
    return Answer(count, holding, progress, *rows, standing.doing, standing.again, standing.pages_per_s)


def in_numbers(progress: Progress, answer: Answer | None, here: bool) -> dict[str, float]:
    """Of one partition, for whoever asks how it stands. None: it has not answered yet."""
    return {
        "pages": progress.pages,
        "pages_per_second": answer.pages_per_s if answer and here else 0.0,
        "pages_refetched": answer.again.fetched if answer and answer.again else 0,
        "waiting": progress.waiting,
        "parcels_made": answer.counted.made if answer else 0,
        "parcels_arrived": answer.counted.arrived if answer else 0,
    }


def summed(every: Iterable[Progress], at: float, seconds: float) -> Progress:
    return Progress(at, seconds, *map(sum, zip(*(one[2:] for one in every), strict=True)))


class Together:
    """All partitions as one crawl that is shown. Who fills it: the coordinator, twice a second."""

    def __init__(self, strategy: str, folder: str, goal: float, robots: int, partitions: int) -> None:
        """`robots`: of all."""
        self._told = strategy, folder
        self._goal, self._robots, self._partitions = goal, robots, partitions
        self._recent = Recent()

    def standing(
        self, every: Iterable[Progress], answers: Sequence[Answer], seconds: float, doing: str, notes: Sequence[str]
    ) -> Standing:
        """`every`: how each partition stands, also of those that have not answered yet; `notes`: what some have said when they came."""
        progress = summed(every, time.time(), seconds)
        rates = self._recent.note(progress, Counter())
        strategy, folder = self._told
        return Standing(
            progress,
            *rates,
            lambda: _rows(one.busiest for one in answers),
            _rows(one.errors for one in answers),
            strategy,
            folder,
            doing or _doing(answers),
            self._goal,
            self._robots,
            _rows(one.given_up for one in answers),
            _rows(one.left_out for one in answers),
            self._again(answers),
            self._partitions,
            notes,
        )

    def _again(self, answers: Sequence[Answer]) -> FetchedAgain | None:
        """None also until all have said it once: else whoever adds up what is new would take for new what they bring along."""
        every = [one.again for one in answers if one.again is not None]
        if len(every) < self._partitions:
            return None
        heard = Heard(sum(one.heard.signals for one in every), sum(one.heard.access_counts for one in every))
        fetched, changed = sum(one.fetched for one in every), sum(one.changed for one in every)
        return FetchedAgain(fetched, changed, heard, all(one.by_quality for one in every))


def _rows(tables: Iterable[Rows]) -> list[tuple[str, int]]:
    """The largest of all; each of the tables has its own largest only."""
    total: Counter[str] = Counter()
    for table in tables:
        total.update(dict(table))
    return total.most_common(MOST_ROWS)


def _doing(answers: Sequence[Answer]) -> str:
    """Of one of them, if all that have something to do are at something else than crawling."""
    busy = [one for one in answers if not one.counted.idle]
    if not busy or not all(one.doing for one in busy):
        return ""
    return next_visit(min(one.next_visit_s for one in busy)) or busy[0].doing
