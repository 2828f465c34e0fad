"""`trapline simulate GRAPH --changes ...`: new pages and old ones, in simulated time; a table, JSON and a picture."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trapline.cli.arena import Arena, opened
from trapline.cli.compiling import compile_kernels, compile_ranks
from trapline.cli.conditions import Conditions
from trapline.cli.scoreboard import web_name
from trapline.cli.simulate_changes import Asked, check_fits, crawled, web_of, worth_of
from trapline.cli.strategy import Chosen
from trapline.output import write_bytes, write_json
from trapline.terminal import say, say_text
from trapline.units import counted, duration, time_unit

if TYPE_CHECKING:
    from trapline.simulate.changing import ChangingCrawl
    from trapline.simulate.changing_measures import Course, Measured
    from trapline.simulate.changing_web import ChangingWeb

_STDOUT = Path("-")
_COURSES = ("fresh", "quality", "coverage", "fresh_pages")


@dataclass(frozen=True, slots=True)
class Row:
    """One crawl and what came of it."""

    name: str
    crawl: "ChangingCrawl"
    measured: "Measured"
    violations: int

    @property
    def fetches(self) -> int:
        return len(self.crawl.log.page)

    @property
    def again(self) -> int:
        return int(self.crawl.again.sum())

    @property
    def useful(self) -> float:
        """Share of the fetches of pages that it had, which found them changed."""
        return float(self.crawl.changed.sum()) / self.again if self.again else 0.0


def simulate_changes(
    graph: Path,
    chosen: Chosen,
    conditions: Conditions,
    asked: Asked,
    json_file: Path | None,
    plot_file: Path | None,
    log_file: Path | None,
) -> None:
    check_fits(asked, conditions, log_file)
    _compile(asked, chosen)
    arena = opened(graph, conditions)
    web = web_of(asked, arena)
    rows = [_judged(name, crawl, arena) for name, crawl in crawled(arena, web, chosen, asked.refreshes())]
    if log_file is not None:
        _write_log(log_file, rows[0].crawl, arena)
    if plot_file is not None:
        write_bytes(plot_file, _picture(rows, graph, chosen, conditions, asked))
    if log_file or plot_file:
        say(f"wrote {', '.join(str(file) for file in (log_file, plot_file) if file)}", err=True)
    if json_file is None:
        say_text(_table(rows, web, chosen, conditions))
    else:
        _write_json(json_file, _for_machines(graph, rows, chosen, conditions, asked))


def _compile(asked: Asked, chosen: Chosen) -> None:
    import trapline.simulate.changing
    import trapline.simulate.driver  # noqa: F401  its kernels too, all imported before they are counted

    compile_ranks([chosen])
    compile_kernels()
    for refresh in asked.refreshes().values():
        if refresh is not None:
            refresh.policy.compile()


def _judged(name: str, crawl: "ChangingCrawl", arena: Arena) -> Row:
    from trapline.simulate import politeness_violations
    from trapline.simulate.changing_measures import measured

    found = measured(crawl.log, crawl.web.changes, worth_of(arena), crawl.web.until_s)
    return Row(name, crawl, found, politeness_violations(crawl.log, arena.web.site, arena.web.ips, crawl.rules))


def _write_log(file: Path, crawl: "ChangingCrawl", arena: Arena) -> None:
    from trapline.simulate.log import write_parquet

    made_by = {"strategy": crawl.strategy.name, "parameters": arena.conditions.parameters(crawl.rules)}
    write_parquet(crawl.log, arena.web, arena.servers.size, file, made_by)


# ---- for people


def _table(rows: list[Row], web: "ChangingWeb", chosen: Chosen, conditions: Conditions) -> str:
    graph, changes = web.graph, web.changes
    size = f"{counted(graph.pages, 'page')}, {counted(graph.sites, 'site')}"
    changing = f"{counted(changes.updates, 'update')} in {duration(web.until_s)}"
    width = max(len("refresh"), *(len(row.name) for row in rows)) + 2
    heads = ("fresh", "at the end", "quality", "coverage", "fetches", "again", "changed", "pages/s")
    lines = [
        f"{chosen.name}: {size}, {changing}; {conditions.summary()}",
        "Averages over the time, as shares of the whole web; at the end: the last tenth of it. Fresh: by quality, Q(t).",
        "",
        f"{'refresh':{width}}" + "".join(f"{head:>11}" for head in heads),
        *(f"{row.name:{width}}" + "".join(f"{cell:>11}" for cell in _cells(row)) for row in rows),
        "",
        f"politeness violations: {sum(row.violations for row in rows)}",
    ]
    return "\n".join(lines)


def _cells(row: Row) -> list[str]:
    found = row.measured
    shares = (found.fresh.average, found.fresh.end, found.quality.average, found.coverage.average)
    speed = row.fetches / max(row.crawl.wall_seconds, 1e-9)
    return [
        *(f"{part:.4f}" for part in shares),
        f"{row.fetches:,}",
        f"{row.again:,}",
        f"{row.useful:.1%}",
        f"{speed:,.0f}",
    ]


def _picture(rows: list[Row], graph: Path, chosen: Chosen, conditions: Conditions, asked: Asked) -> bytes:
    from trapline.report.axis import axis
    from trapline.report.chart import Chart, Line
    from trapline.report.plot import chart_png

    unit = time_unit(asked.until_s)
    lines = []
    for index, row in enumerate(rows):
        fresh = row.measured.fresh
        time = row.measured.time_s / unit.seconds
        lines.append(Line(index, row.name, time, 100.0 * fresh.curve, f"{100.0 * fresh.average:.1f} %"))
    x = axis(f"simulated time ({unit.name})", asked.until_s / unit.seconds, tight=True)
    y = axis("quality of which the crawl has a fresh copy", 100.0, "%", tight=True)
    chart = Chart("fresh-quality", "Fresh quality", "average", x, y, lines)
    about = f"{web_name(graph)}, {asked.changes}, {chosen.name}\n{conditions.heading()}"
    return chart_png(chart, "Freshness-weighted quality over time", about)


# ---- for machines


def _write_json(file: Path, value: dict[str, Any]) -> None:
    if file == _STDOUT:
        say_text(json.dumps(value, allow_nan=False, indent=1))
        return
    write_json(file, value)
    say(f"wrote {file}", err=True)


def _for_machines(graph: Path, rows: list[Row], chosen: Chosen, conditions: Conditions, asked: Asked) -> dict[str, Any]:
    from trapline import __version__

    web = rows[0].crawl.web
    return {
        "trapline": __version__,
        "graph": str(graph),
        "strategy": chosen.name,
        "pages": web.graph.pages,
        "sites": web.graph.sites,
        "updates": web.changes.updates,
        "simulated_seconds": web.until_s,
        "time_s": rows[0].measured.time_s.tolist(),
        "results": [_result(row) for row in rows],
        "changing": asdict(asked),
        "parameters": conditions.parameters(rows[0].crawl.rules),
    }


def _result(row: Row) -> dict[str, Any]:
    return {
        "refresh": row.name,
        **{name: _course(getattr(row.measured, name)) for name in _COURSES},
        "fetches": row.fetches,
        "again": row.again,
        "changed": int(row.crawl.changed.sum()),
        "wall_seconds": row.crawl.wall_seconds,
        "politeness_violations": row.violations,
    }


def _course(course: "Course") -> dict[str, Any]:
    return {"average": course.average, "end": course.end, "curve": course.curve.tolist()}
