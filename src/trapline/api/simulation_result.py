"""The results of simulated crawls for Python programs: numbers, curves and tables, which convert to Arrow and pandas, and an HTML page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from trapline.errors import ConfigError, nearest
from trapline.output import write_text
from trapline.report import CrawlRecord
from trapline.simulator import SimulatedCrawl
from trapline.simulator.arena import Arena
from trapline.simulator.breakdown import SiteTotals
from trapline.simulator.conditions import CrawlConditions, Variant, common_summary
from trapline.simulator.log import log_table
from trapline.units import counted

_PLAIN = (str, int, float, bool, type(None))
_NO_LOG = "a comparison keeps no log of its crawls; call trapline.simulate with this strategy to get one"


@dataclass(frozen=True, slots=True, repr=False)
class SimulationResult:
    """A simulated crawl: the result of `trapline.simulate`, or one crawl of a `Comparison`.

    A table is a `pyarrow.Table`; its method `to_pandas()` makes a data frame. docs/measures.md defines the measures.
    """

    record: CrawlRecord
    """All numbers and curves, as `trapline simulate --json` prints them."""
    web: str
    """The name of the graph."""
    conditions: CrawlConditions
    settings: Mapping[str, Any]
    _arena: Arena
    _sites: SiteTotals | None
    _crawl: SimulatedCrawl | None = None

    def __repr__(self) -> str:
        return (
            f"<SimulationResult {self.name!r}: {self.record.pages_fetched:,} of {counted(self.record.pages, 'page')}>"
        )

    def _repr_html_(self) -> str:
        """Return the numbers and the quality curve, for notebooks."""
        from trapline.report.notebook import result_html  # imported late: programs without a notebook need no charts

        return result_html(self.record, self.web)

    @property
    def name(self) -> str:
        """The name of the strategy, with what differs from the other crawls of a comparison."""
        return self.record.name

    @property
    def strategy(self) -> str:
        return self.record.strategy

    @property
    def parameters(self) -> dict[str, Any]:
        """The conditions of the crawl, as the JSON of the commands has them."""
        return self.conditions.parameters(self._crawl.rules if self._crawl else None)

    @property
    def totals(self) -> dict[str, Any]:
        """The numbers of the crawl by name, without curves."""
        found = _flat(self.record)
        rules, world = self.conditions.rules, self.conditions.world
        under = {"delay": float(rules.delay_s), "per_connection": rules.per_connection, "protocol": world.protocol}
        return {"crawl": self.name, **under, **found}

    @property
    def curve(self) -> Any:
        """Table of the progress: `time_s`, `pages` fetched until then, and their `quality` as a share of the quality of the whole web."""
        return _table([_curve(self)])

    @property
    def sites(self) -> Any:
        """Table with one row per site: what the crawl fetched from it, and when."""
        return _table([_site_rows(self)])

    @property
    def fetches(self) -> Any:
        """Table with one row per fetch, in order of completion, with the columns of `trapline simulate --log`."""
        crawl = self._logged()
        return log_table(crawl.log, self._arena.web, self._arena.servers.size, self._arena.made_by(crawl))

    def to_arrow(self) -> Any:
        """Return the totals as a table with one row."""
        return _rows([self])

    def to_pandas(self) -> Any:
        """Return the totals as a data frame with one row."""
        return self.to_arrow().to_pandas()

    def save(self, path: str | Path) -> None:
        """Write a page (HTML) with all numbers and charts."""
        _save([self], [Variant(self.conditions)], path)

    def save_log(self, path: str | Path) -> None:
        """Write one row per fetch, as Parquet."""
        self._arena.write_log(self._logged(), Path(path))

    def _logged(self) -> SimulatedCrawl:
        if self._crawl is None:
            raise ConfigError(_NO_LOG)
        return self._crawl


@dataclass(slots=True, repr=False)
class Comparison:
    """Simulated crawls of one web, one per strategy and combination of conditions: the result of `trapline.compare`.

    Iterate over it, or take a crawl by its name: `comparison["opic"]`. `failures` has the errors of strategies that failed, by name.
    """

    web: str
    """The name of the graph."""
    variants: Sequence[Variant]
    wanted: int
    crawls: list[SimulationResult] = field(default_factory=list)
    failures: dict[str, Exception] = field(default_factory=dict)
    interrupted: bool = False
    seconds: float = 0.0

    def __repr__(self) -> str:
        return f"<Comparison of {counted(len(self.crawls), 'crawl')}: {', '.join(crawl.name for crawl in self.crawls)}>"

    def _repr_html_(self) -> str:
        """Return one row per crawl and a chart, for notebooks."""
        from trapline.report.notebook import comparison_html  # as above

        return comparison_html(self.records, self.web, list(self.failures))

    @property
    def records(self) -> list[CrawlRecord]:
        """All numbers and curves of the crawls, as compare.json has them."""
        return [crawl.record for crawl in self.crawls]

    def __iter__(self) -> Iterator[SimulationResult]:
        return iter(self.crawls)

    def __len__(self) -> int:
        return len(self.crawls)

    def __getitem__(self, name: str) -> SimulationResult:
        found = {crawl.name: crawl for crawl in self.crawls}
        if name not in found:
            raise KeyError(f"no crawl {name!r}; {nearest(name, found)}")
        return found[name]

    @property
    def curves(self) -> Any:
        """Table of the progress of all crawls: `crawl`, `time_s`, `pages`, `quality`."""
        return _table([_curve(crawl) for crawl in self.crawls])

    @property
    def sites(self) -> Any:
        """Table with one row per crawl and site."""
        return _table([_site_rows(crawl) for crawl in self.crawls])

    def to_arrow(self) -> Any:
        """Return the totals as a table with one row per crawl."""
        return _rows(self.crawls)

    def to_pandas(self) -> Any:
        """Return the totals as a data frame with one row per crawl."""
        return self.to_arrow().to_pandas()

    def save(self, path: str | Path) -> None:
        """Write the page of the comparison (HTML): a table of all numbers, and charts with one curve per crawl."""
        _save(self.crawls, self.variants, path)


# ---- tables


def _flat(record: CrawlRecord) -> dict[str, Any]:
    """Return the values of a record that are numbers or texts. A value by share, such as seconds_until, becomes one per share."""
    found: dict[str, Any] = {}
    for one in fields(record):
        value = getattr(record, one.name)
        if one.name in ("variant", "label", "clock"):
            continue
        if isinstance(value, _PLAIN):
            found[one.name] = value
        elif isinstance(value, dict):
            found |= {f"{one.name}_{share.removesuffix('%')}": number for share, number in value.items()}
    return found


def _rows(crawls: Sequence[SimulationResult]) -> Any:
    import pyarrow as pa  # type: ignore[import-untyped]  # imported late: the import takes longer than a small crawl

    rows = [crawl.totals for crawl in crawls]
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})


def _table(parts: Sequence[Mapping[str, Any]]) -> Any:
    import pyarrow as pa

    return pa.concat_tables([pa.table(dict(part)) for part in parts])


def _curve(crawl: SimulationResult) -> dict[str, Any]:
    course = crawl.record.progress
    names = [crawl.name] * len(course.time_s)
    return {"crawl": names, "time_s": course.time_s, "pages": course.pages, "quality": course.quality}


def _site_rows(crawl: SimulationResult) -> dict[str, Any]:
    assert crawl._sites is not None  # only the command line leaves them out, and asks for none
    web = crawl._arena.web
    names = web.site_names
    about: dict[str, Any] = {"crawl": [crawl.name] * web.sites, "site": range(web.sites)}
    if names is not None:
        about["name"] = [names[site] for site in range(web.sites)]
    return about | {name: _nulls(values) for name, values in crawl._sites._asdict().items()}


def _nulls(values: Any) -> Any:
    import pyarrow as pa

    return pa.array(values, from_pandas=True)  # NaN becomes null


# ---- the page


def _save(crawls: Sequence[SimulationResult], variants: Sequence[Variant], path: str | Path) -> None:
    if not crawls:
        raise ConfigError("no crawl was finished, so there is nothing to save")
    first = crawls[0]
    subtitle = f"{first.record.web_size}; {common_summary(variants)}"
    records = [crawl.record for crawl in crawls]
    from trapline.report import compare_page  # imported late: most simulated crawls write no page

    page = compare_page(records, f"Crawl orders of {first.web}", subtitle, first.settings, "Settings of all crawls.")
    write_text(Path(path), page)
