"""The numbers of several crawls as columns: the name and meaning of each column, its values, and which of them is the best.

This module reads records, and knows nothing about HTML or terminals.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from trapline.processor import ProcessorTime
from trapline.report.record import CrawlRecord
from trapline.simulator.metrics import SAMPLES, TAU_SAMPLE
from trapline.units import three_digits, time_unit

Value = float | None
HIGH, LOW, NEITHER = 1, -1, 0
VIOLATIONS = "violations"
NARROW = "\u00a0"  # a no-break space, so that the head of a column is not broken there
SPEED_UP = "speed-up"
WALL = "wall s"
_ABOUT = 0.01  # crawls that differ by less fetched about the same
_IF_ANY = ("MB", "failed", "refused", SPEED_UP, WALL)  # columns that are omitted if all values are 0 or not known


@dataclass(frozen=True, slots=True)
class Column:
    group: str
    name: str
    about: str
    values: list[Value]
    texts: list[str]
    better: int = NEITHER  # which values are better: HIGH, LOW or NEITHER

    @property
    def same(self) -> bool:
        """Whether there are several rows and all show the same text."""
        return len(self.texts) > 1 and len(set(self.texts)) == 1

    @property
    def best(self) -> set[int]:
        """The rows that show the best value; none if all rows show the same value."""
        known = [(value, text) for value, text in zip(self.values, self.texts, strict=True) if value is not None]
        if self.better == NEITHER or len({text for _, text in known}) < 2:
            return set()
        _, best = max(known) if self.better == HIGH else min(known)
        return {row for row, text in enumerate(self.texts) if text == best}


def columns(records: Sequence[CrawlRecord]) -> list[Column]:
    """Return all numbers of section 4 of the specification that are one number per crawl.

    If the crawls fetched different pages, the columns on what they fetched come first, and the columns on the order and
    time of fetches have no best value.
    """
    order = [*_order_columns(records), *_time_columns(records), *_top_columns(records)]
    others = [*_count_columns(records), *_site_columns(records), *_processor_columns(records)]
    every = [*order, *others]
    if not comparable(records):
        every = [*others, *(replace(column, better=NEITHER) for column in order)]
    return [column for column in every if any(value is not None for value in column.values)]


@dataclass(frozen=True, slots=True)
class Grid:
    """One measure of the crawls with one strategy, by two options that differ between them."""

    title: str
    row_option: str
    column_option: str
    rows: list[str]
    columns: list[str]
    cells: list[list[str]]


def grids(records: Sequence[CrawlRecord]) -> list[Grid]:
    """Return a grid for each strategy, of the speed-up or else of the pages per second, if just two options differ."""
    options = list(records[0].variant)
    if len(options) != 2:
        return []
    across, down = options
    return [_grid(strategy, down, across, records) for strategy in dict.fromkeys(record.strategy for record in records)]


def _grid(strategy: str, down: str, across: str, records: Sequence[CrawlRecord]) -> Grid:
    own = {(r.variant[down], r.variant[across]): r for r in records if r.strategy == strategy}
    by_speed_up = all(record.speed_up is not None for record in own.values())
    values = {at: record.speed_up if by_speed_up else record.rate for at, record in own.items()}
    rows, columns = list(dict.fromkeys(row for row, _ in own)), list(dict.fromkeys(column for _, column in own))
    shown = [[_known(values.get((row, column))) for column in columns] for row in rows]
    return Grid(
        f"{strategy}: {SPEED_UP if by_speed_up else 'pages/s'}", f"--{down}", f"--{across}", rows, columns, shown
    )


def _known(value: float | None) -> str:
    return "–" if value is None else three_digits(value)


def comparable(records: Sequence[CrawlRecord]) -> bool:
    """Return whether the crawls fetched about the same. Only then it is meaningful to compare how soon."""
    pages, quality = [record.pages_fetched for record in records], [record.quality_fetched for record in records]
    return max(pages) - min(pages) <= _ABOUT * max(pages) and max(quality) - min(quality) <= _ABOUT


def _column(
    group: str, name: str, about: str, values: Iterable[Value], text: Callable[[float], str], better: int = NEITHER
) -> Column:
    values = list(values)
    return Column(group, name, about, values, ["–" if value is None else text(value) for value in values], better)


def _order_columns(records: Sequence[CrawlRecord]) -> list[Column]:
    averages = [
        _average(
            "PageRank",
            [record.average_cumulative_pagerank for record in records],
            records[0].optimal_average_cumulative_pagerank,
        )
    ]
    if records[0].quality != "PageRank":
        values = [record.average_cumulative_quality for record in records]
        averages.append(_average(records[0].quality, values, records[0].optimal_average_cumulative_quality))
    return [*averages, *_harvest_columns(records), *_tau_columns(records)]


def _harvest_columns(records: Sequence[CrawlRecord]) -> list[Column]:
    first = records[0]
    if first.harvest_quality is None or first.harvest_share is None:
        return []
    about = (
        "Share of the first {} of the fetched pages, in percent, whose quality is at least"
        f" {first.harvest_quality:.3g}. Of all pages, {first.harvest_share:.1%} have that."
    )
    return [
        _column(
            "harvest rate (%)",
            name,
            about.format(name),
            _percents([one.harvest_rate[share] for one in records]),
            three_digits,
            HIGH,
        )
        for share, name in _named(first.harvest_rate)
    ]


def _average(quality: str, values: Sequence[Value], optimum: float) -> Column:
    about = (
        f"Average cumulative {quality}: the area under {quality} against the fraction of pages. A random order has 0.5, "
        f"the best order of the first crawl's pages {optimum:.4f}."
    )
    return _column("order", f"avg. cum. {quality}", about, values, _four, HIGH)


def _tau_columns(records: Sequence[CrawlRecord]) -> list[Column]:
    about = (
        f"Kendall's tau-b of the fetch order against PageRank, on a sample of {TAU_SAMPLE:,} pages, or on all if they are "
        "fewer: 1 is best first, -1 worst first."
    )
    spread = (
        f"Half the distance between the lowest and the highest tau of {SAMPLES} samples; smaller differences mean nothing. 0 if "
        "all pages are in the sample."
    )
    halves = [(record.kendall_tau_spread[1] - record.kendall_tau_spread[0]) / 2 for record in records]
    return [
        _column("order", "Kendall's tau", about, [record.kendall_tau for record in records], _four, HIGH),
        _column("order", f"tau{NARROW}±", spread, halves, "{:.3f}".format),
    ]


def _top_columns(records: Sequence[CrawlRecord]) -> list[Column]:
    group = "pages until … of the top tenth by PageRank"
    about = "Pages fetched until {} of the tenth with the highest PageRank was fetched. At 100 % a single page decides."
    return [
        _column(group, name, about.format(name), [record.top_tenth[share] for record in records], _count, LOW)
        for share, name in _named(records[0].top_tenth)
    ]


def _time_columns(records: Sequence[CrawlRecord]) -> list[Column]:
    quality = records[0].quality
    size, unit, _ = time_unit(max(record.simulated_seconds for record in records))

    def in_unit(seconds: float) -> str:
        return three_digits(seconds / size)

    of_time = f"{records[0].of_time}{unit}"
    group, about = (
        f"{of_time} until … of the {quality}",
        f"{_capital(of_time)} until the crawl had fetched {{}} of the {{}} that it fetched in all.",
    )
    found = [
        _column(group, name, about.format(name, quality), [r.seconds_until[share] for r in records], in_unit, LOW)
        for share, name in _named(records[0].seconds_until)
    ]
    about = f"{_capital(of_time)} from the first visit to the last byte."
    found.append(_column(group, "end", about, [record.simulated_seconds for record in records], in_unit, LOW))
    if any(record.optimal_seconds is not None for record in records):
        optimal, closeness = [r.optimal_seconds for r in records], [r.closeness for r in records]
        about = f"Total bytes / B: the {unit} that the crawl would take if the link were always full."
        found.append(_column("link", f"T* ({unit})", about, optimal, in_unit))
        about = "How close the crawl came to T*: 1 means that the link was always full; the rest is wasted bandwidth."
        found.append(_column("link", "T* / T", about, closeness, _four, HIGH))
    return found


def _count_columns(records: Sequence[CrawlRecord]) -> list[Column]:
    quality = records[0].quality
    about_quality = f"Share of the whole web's {quality} that the fetched pages have."
    about_violations = (
        "Visits that broke a politeness rule, counted from the log. Must be 0. If w depends on the size of a site, only the "
        "smaller w is checked; back-off after failures is not checked."
    )
    about_rate = f"Pages per {records[0].of_time}second."
    about_speed_up = (
        "Pages per second, divided by those of the same strategy with one connection on a link without limit."
    )
    found = [
        _count_column("pages", "Pages fetched.", [r.pages_fetched for r in records]),
        _column(
            "crawl", f"% of {quality}", about_quality, [r.quality_fetched * 100 for r in records], three_digits, HIGH
        ),
        _column("crawl", "pages/s", about_rate, [r.rate for r in records], three_digits, HIGH),
        _column("crawl", SPEED_UP, about_speed_up, [r.speed_up for r in records], three_digits, HIGH),
        _column(
            "crawl",
            "connections",
            "Connections at work, on average.",
            [r.active_connections for r in records],
            three_digits,
        ),
        _count_column("visits", "Visits to sites.", [r.visits for r in records]),
        _column("crawl", "MB", "Megabytes (10^6 bytes) fetched.", [r.bytes / 1e6 for r in records], three_digits),
        _count_column("failed", "Fetches that failed; they may be tried again.", [r.failed for r in records]),
        _count_column("refused", "Fetches that the server refused.", [r.refused for r in records]),
        _count_column(VIOLATIONS, about_violations, [r.politeness_violations for r in records]),
        _column(
            "crawl",
            WALL,
            "Seconds that the simulator's loop took.",
            [r.wall_seconds for r in records],
            three_digits,
        ),
    ]
    return [column for column in found if column.name not in _IF_ANY or any(column.values)]


def _site_columns(records: Sequence[CrawlRecord]) -> list[Column]:
    sizes, locality = [record.pages_per_site for record in records], [record.server_locality for record in records]
    return [
        _column(
            "sites", "pages/site", "Pages fetched per site, on average.", [one.average for one in sizes], three_digits
        ),
        _column(
            "sites", "median site", "Median of the pages fetched per site.", [one.median for one in sizes], three_digits
        ),
        _column(
            "sites",
            "largest site",
            "Pages fetched from the site with the most.",
            [one.largest for one in sizes],
            _count,
        ),
        _locality("same visit", "that follow another one in the same visit", [one.visit for one in locality]),
        _locality("same site", "from the same site as the one that ended just before", [one.site for one in locality]),
        _locality(
            "same address", "from the same address as the one that ended just before", [one.address for one in locality]
        ),
    ]


def _locality(name: str, which: str, shares: Sequence[Value]) -> Column:
    return _column("locality (%)", name, f"Fetches {which}, in percent of all.", _percents(shares), three_digits)


def _processor_columns(records: Sequence[CrawlRecord]) -> list[Column]:
    """Return how busy live crawls kept the processor. A simulated crawl always keeps it busy."""
    if any(record.clock for record in records):
        return []
    found = [record.processor for record in records]
    return [
        _busy("loop busy", "main", [one.loop if one else None for one in found]),
        _busy("store busy", "store", [one.store if one else None for one in found]),
    ]


def _busy(name: str, process: str, times: Sequence[ProcessorTime | None]) -> Column:
    about = f"User and system time of the crawl's {process} process, in percent of its running time. For partitions: of all together."
    shares = [time.busy if time else None for time in times]
    return _column("processor (%)", name, about, _percents(shares), three_digits)


def _percents(shares: Iterable[Value]) -> list[Value]:
    return [None if share is None else share * 100 for share in shares]


def _count_column(name: str, about: str, values: Iterable[int]) -> Column:
    return _column("crawl", name, about, values, _count)


def _named(shares: Iterable[str]) -> list[tuple[str, str]]:
    return [(share, share.replace("%", NARROW + "%")) for share in shares]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _four(value: float) -> str:
    return f"{value:.4f}"


def _count(value: float) -> str:
    return f"{value:,.0f}"
