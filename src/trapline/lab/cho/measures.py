"""What the experiments of `cho` share: the numbers of a crawl, the sizes of the study, and charts of measured values.

An experiment is a function of a study: it asks for the values of crawls, draw by draw, and returns an item of the paper. Which crawls it
needs is found by a first pass, in which every crawl has the same made-up numbers; the crawls then run as a study that can be continued;
and a second pass has their results.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain

import numpy as np

from trapline.confidence import estimate
from trapline.lab.cho.crawled_web import CrawledWeb, CrawlResult, Setting
from trapline.lab.paper import PaperChart, PaperClaim, PaperItem, PaperPart, PaperTable, Results, Values
from trapline.lab.study import StudyRun
from trapline.parallel.simulated.crawl import CROSS_OVER, INDEPENDENT

PUBLISHED = "to the best of our knowledge"  # our copy of the paper has lost its digits
_STEPS = 1000  # of coverage, at which overlap is kept
_MOST_COPIES = (
    40_000_000  # limit of pages times partitions where each partition may fetch all pages: up to 75 bytes each
)


# ---- numbers of a crawl


@dataclass(frozen=True, slots=True)
class ChoNumbers:
    """The numbers by which the experiments judge a crawl."""

    coverage: float  # of all pages of the graph, as in the paper: also of pages that no seed leads to
    overlap: float
    quality: float
    sent: float  # URLs per page, in batches
    sent_at_once: float  # URLs per page if each link is sent when it is found
    links_per_page: float
    coordinator_messages: float  # per page
    overlaps: Sequence[float]  # when the coverage was 0, 1, 2, ... thousandths, as far as the crawl came

    def overlap_at(self, reached: float) -> float | None:
        """Return the overlap when this share of all pages was fetched, to a thousandth; None: the crawl never fetched as many."""
        at = math.ceil(reached * _STEPS - 1e-9)
        return self.overlaps[at] if at < len(self.overlaps) else None


_MADE_UP = ChoNumbers(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, [1.0] * (_STEPS + 1))


def numbers_of(found: CrawlResult) -> ChoNumbers:
    record = found.record
    reached, overlaps = found.course
    rows = np.searchsorted(reached, np.arange(_STEPS + 1) / _STEPS)
    return ChoNumbers(
        coverage=record.coverage_of_graph,
        overlap=record.overlap,
        quality=found.quality,
        sent=record.urls_exchanged_per_page,
        sent_at_once=found.links_sent_at_once,
        links_per_page=found.links_per_page,
        coordinator_messages=record.coordinator_messages / max(1, record.pages_downloaded),
        overlaps=[round(float(value), 9) for value in overlaps[rows[rows < len(overlaps)]]],
    )


# ---- studies

Measure = Callable[[ChoNumbers], float]


@dataclass(frozen=True, slots=True)
class Scale:
    """The numbers of partitions, seeds and exchanges for which crawls are run."""

    partitions: Sequence[int] = (1, 2, 4, 8, 16, 32, 64)
    some_partitions: Sequence[int] = (2, 8, 64)
    crossing: Sequence[int] = (2, 4, 8, 16, 64)
    seeds: Sequence[int] = (64, 512, 4096, 30_000)
    exchanges: Sequence[int] = (0, 1, 4, 16, 64)


WHOLE = Scale()
QUICK = Scale(partitions=(1, 2, 4, 8, 64), crossing=(2, 4), seeds=(64, 4096), exchanges=(0, 1, 8, 64))


@dataclass(frozen=True, eq=False, slots=True)
class ChoStudy:
    """A web, how often and for which sizes its crawls are repeated, and where their numbers come from."""

    web: CrawledWeb
    draws: int
    scale: Scale
    numbers: Callable[[Setting, int], ChoNumbers]
    label: str = ""  # of the web, if there are several

    def values(self, setting: Setting, measure: Measure) -> Values:
        """Return the measure of the crawl with this setting, for each draw."""
        return [measure(self.numbers(setting, draw)) for draw in range(self.draws)]

    @property
    def pages(self) -> int:
        """Number of pages of the web."""
        return self.web.graph.pages

    @property
    def crossing(self) -> list[int]:
        """Numbers of partitions for which memory suffices if each partition knows every page; 2 is always among them."""
        return [n for n in self.scale.crossing if n == 2 or n * self.pages <= _MOST_COPIES]


def part(
    experiment: Callable[[ChoStudy], PaperItem], web: CrawledWeb, draws: int, scale: Scale, label: str = ""
) -> PaperPart:
    """Return the experiment as a part of a paper: its runs, and its item."""
    needed: dict[tuple[Setting, int], None] = {}

    def note(setting: Setting, draw: int) -> ChoNumbers:
        needed[setting, draw] = None
        return _MADE_UP

    experiment(ChoStudy(web, draws, scale, note))

    def items(results: Results) -> list[PaperItem]:
        def look_up(setting: Setting, draw: int) -> ChoNumbers:
            return ChoNumbers(**results[_key(web, setting, draw)])

        return [experiment(ChoStudy(web, draws, scale, look_up, label))]

    return PaperPart([_run(web, setting, draw) for setting, draw in needed], items)


def _key(web: CrawledWeb, setting: Setting, draw: int) -> str:
    return f"{web.name}; {setting.name}, draw {draw + 1}"


def _run(web: CrawledWeb, setting: Setting, draw: int) -> StudyRun:
    copies = setting.partitions if setting.mode in (CROSS_OVER, INDEPENDENT) else 1
    cost = (
        setting.most or copies * web.graph.pages
    ) + web.graph.pages // 2  # to set up the partitions and to judge the crawl
    return StudyRun(_key(web, setting, draw), cost, lambda: asdict(numbers_of(web.crawl(setting, draw))), web.name)


# ---- measures


def coverage(found: ChoNumbers) -> float:
    return found.coverage


def overlap(found: ChoNumbers) -> float:
    return found.overlap


def quality(found: ChoNumbers) -> float:
    return found.quality


def sent(found: ChoNumbers) -> float:
    return found.sent


def sent_at_once(found: ChoNumbers) -> float:
    return found.sent_at_once


def times(one: Values, factor: float) -> list[float]:
    """Return the values times a factor."""
    return [value * factor for value in one]


def ratio(one: Values, other: Values) -> list[float]:
    """Return the ratios, draw by draw; 0 where the divisor is 0."""
    return [a / b if b else 0.0 for a, b in zip(one, other, strict=True)]


# ---- measured values

Curve = Mapping[float, Values]  # by x, one value per draw


@dataclass(frozen=True, slots=True)
class Measured:
    """Measured values by curve and x. `names`: what values of x stand for. `apart`: x has no order, so there is a table and no chart."""

    name: str
    title: str
    x_label: str
    y_label: str
    curves: Mapping[str, Curve]
    names: Mapping[float, str] = field(default_factory=dict)
    apart: bool = False

    @property
    def x_values(self) -> list[float]:
        """All values of x, ascending."""
        return sorted(set(chain.from_iterable(self.curves.values())))

    def x_name(self, x: float) -> str:
        return self.names.get(x, f"{x:g}" if x < 1e5 else f"{x:,.0f}")

    def table(self) -> PaperTable:
        rows = [
            [self.x_name(x), *(str(estimate(curve[x])) if x in curve else "-" for curve in self.curves.values())]
            for x in self.x_values
        ]
        return PaperTable(f"{self.name}. {self.title}: {self.y_label}", [self.x_label, *self.curves], rows)

    def chart(self, label: str = "") -> PaperChart:
        """Return the chart. A curve without values, such as that of a coverage that no crawl reached, is not drawn."""
        place = {x: float(at) for at, x in enumerate(self.x_values)}
        drawn = {name: curve for name, curve in self.curves.items() if curve}
        means = {
            name: ([place[x] for x in curve], [estimate(values).mean for values in curve.values()])
            for name, curve in drawn.items()
        }
        spreads = {name: [estimate(values).ci or 0.0 for values in curve.values()] for name, curve in drawn.items()}
        x_names = [self.x_name(x) for x in place]
        title = f"{self.name}. {self.title}"
        name = f"{self.name} {label}".strip().replace(" ", "-")
        return PaperChart(name, title, self.x_label, self.y_label, means, x_names=x_names, spreads=spreads)


def item(
    number: int,
    title: str,
    study: ChoStudy,
    measured: Sequence[Measured],
    claims: Sequence[PaperClaim],
    notes: Sequence[str] = (),
) -> PaperItem:
    """Return the item of an experiment."""
    charts = [one.chart(study.label) for one in measured if not one.apart and len(one.x_values) > 1]
    setting = f"{study.web.name}; simulated crawls, {study.draws} draws of the seeds"
    name = f"experiment {number}, {study.label}" if study.label else f"experiment {number}"
    return PaperItem(name, title, setting, claims, [one.table() for one in measured], charts, notes)
