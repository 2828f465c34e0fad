"""What all experiments of `cho` share: the web, how many draws, at which numbers of partitions, and the measures by their names."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from trapline.experiments.cho_web import CrawledWeb, Found, Setting
from trapline.experiments.judgement import Values
from trapline.units import counted

Measure = Callable[[Found], float]
Tell = Callable[[int, int, str], None]
_MOST_COPIES = 4_000_000  # pages times partitions, where each partition may fetch all: 100 bytes each
PUBLISHED = "published, to the best of our knowledge"  # our copy of the paper has lost its digits


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is run."""

    partitions: Sequence[int] = (1, 2, 4, 8, 16, 32, 64)
    some_partitions: Sequence[int] = (2, 8, 64)
    crossing: Sequence[int] = (2, 4, 8, 16, 64)
    seeds: Sequence[int] = (64, 512, 4096, 30_000)
    exchanges: Sequence[int] = (0, 1, 4, 16, 64)


WHOLE = Scale()
QUICK = Scale(partitions=(1, 2, 4, 8, 64), crossing=(2, 4), seeds=(64, 4096), exchanges=(0, 1, 8, 64))


@dataclass(frozen=True, eq=False, slots=True)
class Study:
    web: CrawledWeb
    draws: int
    scale: Scale
    tell: Tell
    experiments: int = 1  # how many are asked for
    _at: list[int] = field(default_factory=lambda: [0, 0])  # experiments done, crawls done

    def values(self, setting: Setting, measure: Measure) -> Values:
        """One a draw."""
        found = []
        for draw in range(self.draws):
            note = f"experiments; {setting.mode}, {counted(setting.partitions, 'partition')}, draw {draw + 1}"
            self.tell(self._at[0], self.experiments, note)
            found.append(measure(self.web.crawl(setting, draw)))
        return found

    def passed(self) -> None:
        self._at[0] += 1

    @property
    def pages(self) -> int:
        return self.web.graph.pages

    @property
    def crossing(self) -> list[int]:
        """Numbers of partitions for which each may know every page; two always may."""
        return [n for n in self.scale.crossing if n == 2 or n * self.pages <= _MOST_COPIES]


def coverage(found: Found) -> float:
    """Of all pages of the graph, as in the paper: also of those that no seed leads to."""
    return found.record.coverage_of_graph


def overlap(found: Found) -> float:
    return found.record.overlap


def quality(found: Found) -> float:
    return found.quality


def sent(found: Found) -> float:
    return found.record.urls_exchanged_per_page


def sent_at_once(found: Found) -> float:
    return found.links_sent_at_once


def minus(one: Values, other: Values) -> list[float]:
    return [a - b for a, b in zip(one, other, strict=True)]


def times(one: Values, factor: float) -> list[float]:
    return [value * factor for value in one]


def ratio(one: Values, other: Values) -> list[float]:
    return [a / b if b else 0.0 for a, b in zip(one, other, strict=True)]
