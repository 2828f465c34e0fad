"""The report of a partition to its coordinator, and all reports added up: for termination, for the page budget, and for
the user's view.

This module knows the reports and their sums. The coordinator decides what follows from them.
"""

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from trapline.crawler.engine.records import CrawlProgress
from trapline.crawler.engine.status import MOST_ROWS, CrawlStatus, Recent, RefetchCounts, next_visit
from trapline.crawler.engine.tally import SignalCounts
from trapline.crawler.files.handled import HandledCounts
from trapline.crawler.speed.connection_states import CrawlSpeed
from trapline.crawler.speed.connection_states import together as speed_together
from trapline.crawler.speed.pace import Pace, pace_together
from trapline.crawler.speed.what_if import WhatIf, what_ifs_together
from trapline.parallel.folder.merged import summed
from trapline.parallel.live.page_budget import Holding
from trapline.parallel.live.termination import PartitionCount

Rows = Sequence[tuple[str, int]]
NOTHING = CrawlProgress(0.0, 0.0, 0, 0, 0, 0, 0, 0, 0, 0.0)


class PartitionReport(NamedTuple):
    counted: PartitionCount
    holding: Holding  # its share of the page budget
    progress: CrawlProgress
    busiest: Rows = ()
    errors: Rows = ()
    abandoned_sites: Rows = ()
    rejected_links: Rows = ()
    doing: str = ""
    refetches: RefetchCounts | None = None
    pages_per_s: float = 0.0
    next_visit_s: float = math.inf  # seconds to the next visit, while no connection is open
    notes: Sequence[str] = ()  # for the user, such as seeds that do not answer
    handled: HandledCounts | None = None  # None: the crawl has no handler
    pace: Pace | None = None
    # Requisites to fetch, and visits and messages that may bring some. None: the crawl fetches none.
    requisites_left: int | None = None
    speed: CrawlSpeed | None = None
    what_ifs: Sequence[WhatIf] = ()

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> "PartitionReport":
        """Read a report from JSON, in which tuples are lists. Raises `KeyError`, `TypeError` or `ValueError` if it is
        not a report."""
        counted, holding = PartitionCount(*fields["counted"]), Holding(*fields["holding"])
        named = {"counted": counted, "holding": holding, "progress": CrawlProgress(*fields["progress"])}
        refetches = None if fields["refetches"] is None else _read_refetches(*fields["refetches"])
        handled = None if fields.get("handled") is None else HandledCounts(*fields["handled"])
        pace = None if fields.get("pace") is None else Pace(*fields["pace"])
        speed = None if fields.get("speed") is None else CrawlSpeed.read(*fields["speed"])
        read = {"refetches": refetches, "handled": handled, "pace": pace, "speed": speed}
        found = cls(**{**fields, **named, **read, "what_ifs": [WhatIf(*one) for one in fields.get("what_ifs", ())]})
        found._check()
        return found

    def _check(self) -> None:
        """Raise `TypeError` for a value of the wrong type. Otherwise it would fail where the reports are added up, and
        end the crawl."""
        rows = [
            row for table in (self.busiest, self.errors, self.abandoned_sites, self.rejected_links) for row in table
        ]
        refetches = (
            () if self.refetches is None else (self.refetches.fetched, self.refetches.changed, *self.refetches.signals)
        )
        limit, *times = self.pace or ("",)
        numbers = (
            *self.counted,
            *self.holding,
            *self.progress,
            *refetches,
            *(self.handled or ()),
            *times,
            self.pages_per_s,
            self.next_visit_s,
            self.requisites_left or 0,
            *(number for _, *numbers in self.what_ifs for number in numbers),
        )
        names = (*(name for name, _ in rows), *(one.option for one in self.what_ifs))
        counts, texts = [count for _, count in rows], [self.doing, limit, *names, *self.notes]
        if not all(isinstance(number, int | float) for number in (*numbers, *counts)) or not all(
            isinstance(text, str) for text in texts
        ):
            raise TypeError("not the report of a partition")


def _read_refetches(fetched: int, changed: int, signals: Sequence[int], by_quality: bool) -> RefetchCounts:
    return RefetchCounts(fetched, changed, SignalCounts(*signals), by_quality)


def answer(
    count: PartitionCount, holding: Holding, progress: CrawlProgress, status: CrawlStatus | None
) -> PartitionReport:
    if status is None:
        return PartitionReport(count, holding, progress)
    rows = status.busiest(), status.errors, status.abandoned_sites, status.rejected_links
    numbers = (status.refetches, status.pages_per_s)
    report = PartitionReport(count, holding, progress, *rows, status.doing, *numbers)
    report = report._replace(notes=status.notes, handled=status.handled, pace=status.pace)
    return report._replace(speed=status.speed, what_ifs=status.what_ifs)


def in_numbers(progress: CrawlProgress, answer: PartitionReport | None, here: bool) -> dict[str, Any]:
    """Return the numbers of one partition, for `trapline parallel status` and live/status. `answer` None: the partition has not
    answered yet. `here`: it is connected."""
    return {
        "pages": progress.pages,
        "pages_per_second": answer.pages_per_s if answer and here else 0.0,
        "pages_refetched": answer.refetches.fetched if answer and answer.refetches else 0,
        "waiting": progress.waiting,
        "batches_made": answer.counted.made if answer else 0,
        "batches_received": answer.counted.arrived if answer else 0,
        "connections": answer.speed.lately._asdict() if answer and answer.speed and here else None,
    }


class Together:
    """All partitions shown as one crawl. The coordinator updates it twice a second."""

    def __init__(self, strategy: str, folder: str, goal: float, connections: int, partitions: int) -> None:
        """`goal`: the page limit. `connections`: of all partitions together."""
        self._strategy, self._folder = strategy, folder
        self._goal, self._connections, self._partitions = goal, connections, partitions
        self._recent = Recent()

    def status(
        self,
        every: Iterable[CrawlProgress],
        answers: Sequence[PartitionReport],
        seconds: float,
        doing: str,
        notes: Sequence[str],
    ) -> CrawlStatus:
        """Return the status of the whole crawl. `every`: the progress of each partition, also of those that have not
        answered yet. `notes`: remarks that partitions made when they connected."""
        progress = summed(every, time.time(), seconds)
        rates = self._recent.note(progress, Counter())
        return CrawlStatus(
            progress,
            *rates,
            lambda: _rows(one.busiest for one in answers),
            _rows(one.errors for one in answers),
            self._strategy,
            self._folder,
            doing or _doing(answers),
            self._goal,
            self._connections,
            _rows(one.abandoned_sites for one in answers),
            _rows(one.rejected_links for one in answers),
            self._refetches(answers),
            self._partitions,
            _handled(answers),
            [*notes, *(note for one in answers for note in one.notes)],
            pace_together([one.pace for one in answers if one.pace is not None], self._goal, progress.pages),
            speed_together([one.speed for one in answers if one.speed is not None]),
            what_ifs_together([(one.pages_per_s, one.what_ifs) for one in answers]),
        )

    def _refetches(self, answers: Sequence[PartitionReport]) -> RefetchCounts | None:
        """Return the refetch counts of all partitions, or None until all have reported theirs: otherwise the counts of
        earlier runs would look like new refetches when they arrive."""
        every = [one.refetches for one in answers if one.refetches is not None]
        if len(every) < self._partitions:
            return None
        signals = SignalCounts(
            sum(one.signals.signals for one in every), sum(one.signals.access_counts for one in every)
        )
        fetched, changed = sum(one.fetched for one in every), sum(one.changed for one in every)
        return RefetchCounts(fetched, changed, signals, all(one.by_quality for one in every))


def _handled(answers: Sequence[PartitionReport]) -> HandledCounts | None:
    every = [one.handled for one in answers if one.handled is not None]
    return HandledCounts(0, sum(one.pages for one in every), sum(one.errors for one in every)) if every else None


def _rows(tables: Iterable[Rows]) -> list[tuple[str, int]]:
    """Return the largest rows of all tables together. Each table has only its own largest rows, so the sums may be too
    small."""
    total: Counter[str] = Counter()
    for table in tables:
        total.update(dict(table))
    return total.most_common(MOST_ROWS)


def _doing(answers: Sequence[PartitionReport]) -> str:
    """Return what one partition is doing, if all partitions that are not idle do something else than crawling."""
    busy = [one for one in answers if not one.counted.idle]
    if not busy or not all(one.doing for one in busy):
        return ""
    return next_visit(min(one.next_visit_s for one in busy)) or busy[0].doing
