"""The HTML page of a live crawl: its numbers, plots over time, refetched pages, sites, results of fetches, and politeness.

This module turns a live record into text. `live_record.py` reads the record; `html.py` has the parts of the page.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from types import MappingProxyType

import numpy as np

from trapline.crawler.engine.stop_reasons import ENDS
from trapline.crawler.inspect.broken_links import BrokenLinks, BrokenPage
from trapline.report.breakdown_chart import breakdown_charts
from trapline.report.chart import (
    RANDOM,
    Axis,
    Chart,
    ChartLine,
    Floats,
    axis,
    quality_by_pages,
    quality_by_time,
)
from trapline.report.html import PageFrame, counts_table, definitions, filled, head_cell, headline, number_cell
from trapline.report.live_record import (
    RULES,
    LiveRecord,
    Moments,
    SiteRow,
    abandoned_sites,
    failures,
    headlines,
    phrase,
    rejected_links,
    site_columns,
    statuses,
    types,
)
from trapline.report.record import CrawlRecord
from trapline.report.refresh_page import refresh_charts, refresh_section, trust_columns
from trapline.report.server_use import servers, site_sizes
from trapline.report.table import Column
from trapline.units import byte_unit, counted, duration, three_digits, time_unit

# ---- The contents of the plots of one live crawl: progress, speed, errors and waiting pages. `svg.py` draws them, as for simulated crawls.

_BINS = 60  # bins of a rate chart: narrower ones show noise of the network, wider ones hide changes of the crawl


def live_charts(record: LiveRecord, judged: CrawlRecord | None = None) -> list[Chart]:
    """Return the charts that have something to show.

    `judged`: the record of the crawl judged by the PageRank of the web that it found. Without it, the quality is the
    crawl's own, if it has one.
    """
    moments = record.moments
    found = [
        pages_over_time(moments),
        _rate(moments),
        _frontier(moments),
        _bytes(moments),
        _errors(moments),
        _active(moments),
    ]
    if judged is not None:
        found[2:2] = [quality_by_time([judged]), quality_by_pages([judged])]
        found += breakdown_charts([judged])
    elif moments.quality[-1] > 0:
        found[2:2] = [_quality_by_time(record), _quality_by_pages(record)]
    return found


def pages_over_time(moments: Moments) -> Chart:
    return _over_time(moments, "pages-time", "Pages", "pages fetched", {"pages": moments.pages})


def _rate(moments: Moments) -> Chart:
    x, y = rate(moments.seconds, moments.pages)
    unit = time_unit(moments.seconds[-1])
    line = ChartLine(0, "pages/s", x / unit.seconds, y)
    top = axis("pages per second", float(y.max()))
    return Chart("rate-time", "Speed", "", _time_axis(moments), top, [line])


def rate(seconds: Floats, amount: Floats) -> tuple[Floats, Floats]:
    """Return the average rate per second in few bins of time, at the middle of each bin and at both ends.

    >>> [column.tolist() for column in rate(np.array([0.0, 1.0, 3.0]), np.array([0.0, 10.0, 14.0]))]
    [[0.0, 0.5, 2.0, 3.0], [10.0, 10.0, 2.0, 2.0]]
    """
    edges = np.linspace(0.0, seconds[-1], min(len(seconds), _BINS + 1))
    if len(seconds) <= _BINS:
        edges = np.unique(seconds)
    if len(edges) < 2:
        return np.zeros(1), np.zeros(1)
    y = np.diff(np.interp(edges, seconds, amount)) / np.diff(edges)
    middle = (edges[1:] + edges[:-1]) / 2
    return np.concatenate((edges[:1], middle, edges[-1:])), np.concatenate((y[:1], y, y[-1:]))


def _frontier(moments: Moments) -> Chart:
    lines = {"known": moments.known, "waiting": moments.waiting, "fetched": moments.pages}
    return _over_time(moments, "frontier-time", "Frontier", "pages known, waiting and fetched", lines)


def _bytes(moments: Moments) -> Chart:
    size, unit = byte_unit(float(moments.bytes[-1]))
    return _over_time(
        moments, "bytes-time", "Bytes", f"{unit} of page bodies, as received", {unit: moments.bytes / size}
    )


def _errors(moments: Moments) -> Chart:
    return _over_time(
        moments,
        "errors-time",
        "Errors",
        "failed requests, answers of 400 and above, bodies not decoded",
        {"errors": moments.errors},
    )


def _active(moments: Moments) -> Chart:
    return _over_time(moments, "active-time", "Connections", "visits under way", {"visits": moments.active})


def _quality_by_time(record: LiveRecord) -> Chart:
    label = f"quality of the pages so far, by {record.summary['quality_source'] or 'the crawl'}"
    return _over_time(record.moments, "quality-time", "Quality", label, {"quality": record.moments.quality})


def _quality_by_pages(record: LiveRecord) -> Chart:
    moments = record.moments
    pages, quality = max(float(moments.pages[-1]), 1.0), float(moments.quality[-1])
    lines = [
        ChartLine(0, "quality", moments.pages / pages * 100, moments.quality / quality * 100),
        ChartLine(RANDOM, "in random order", np.array([0.0, 100.0]), np.array([0.0, 100.0])),
    ]
    return Chart(
        "quality-pages",
        "How early the quality came",
        "",
        axis(f"pages (% of the {three_digits(pages)} fetched)", 100.0, "%"),
        axis("quality so far (% of the sum)", 100.0, "%"),
        lines,
    )


def _over_time(moments: Moments, name: str, title: str, label: str, lines: dict[str, Floats]) -> Chart:
    x = moments.seconds / time_unit(moments.seconds[-1]).seconds
    top = max(float(y.max()) for y in lines.values())
    drawn = [ChartLine(index, line_name, x, y) for index, (line_name, y) in enumerate(lines.items())]
    return Chart(name, title, "", _time_axis(moments), axis(label, top), drawn)


def _time_axis(moments: Moments) -> Axis:
    unit = time_unit(moments.seconds[-1])
    return axis(f"time ({unit.name})", moments.seconds[-1] / unit.seconds, tight=True)


# ---- The page.

_MOST_EXAMPLES = 10
_HINT = "Options and their values. As a file for --config: trapline config DIR."


def live_page(
    record: LiveRecord, judged: CrawlRecord | None = None, settings: Mapping[str, object] = MappingProxyType({})
) -> str:
    """Return the page; equal records give equal pages. `judged`: the record judged by the PageRank of the web that the crawl found.
    `settings`: of the crawl."""
    numbers, refresh = site_columns(record.sites), record.refresh
    explained = [*numbers, *(trust_columns(refresh.trust) if refresh and refresh.trust else ())]
    return filled(
        "live.html",
        PageFrame(f"Crawl {record.name}", _subtitle(record), settings, _HINT, explained),
        live_charts(record, judged),
        0,
        others=refresh_charts(refresh) if refresh else (),
        refresh=refresh_section(refresh) if refresh else "",
        headlines="\n".join(map(headline, headlines(record))),
        counts="\n".join(
            (
                counts_table("Status", statuses(record)),
                counts_table("Not fetched", failures(record)),
                counts_table("Type", types(record)),
                counts_table("Pages per site", site_sizes(judged)) if judged else "",
                counts_table("Abandoned sites", abandoned_sites(record)),
                counts_table("Rejected links", rejected_links(record)),
            )
        ),
        servers=definitions(servers(record, judged).items()),
        politeness=_politeness(record),
        sites_hint=_sites_hint(record),
        sites=_sites(record.sites, numbers),
        abandoned_sites=_abandoned_sites(record),
        broken_links=_broken_links(record.broken),
    )


def _subtitle(record: LiveRecord) -> str:
    found = record.summary
    began = datetime.fromtimestamp(found["began"], UTC).strftime("%Y-%m-%d %H:%M UTC")
    ended = (
        "still running"
        if record.running
        else f"ended: {ENDS.get(found['stopped_by'], found['stopped_by'] or 'for an unknown reason')}"
    )
    resumed = f", resumed {counted(found['resumed'], 'time')}" if found["resumed"] else ""
    parts = f", {record.partitions} partitions" if record.partitions > 1 else ""
    return f"{found['strategy']}{parts}; began {began}, took {duration(found['seconds'])}{resumed}; {ended}"


def _politeness(record: LiveRecord) -> str:
    found = record.summary
    checked = f"{counted(found['requests'], 'request')} in {counted(found['visits'], 'visit')}"
    if not found["politeness_violations"]:
        return (
            f"<p>No rule was broken. An audit of all {checked} checked that visits to a site or an address neither overlap nor "
            "come too early, that requests keep their pause, and that robots.txt was obeyed.</p>"
        )
    rules = "".join(
        f"<li><b>{number:,}</b> {escape(RULES[rule])}</li>"
        for rule, number in found["politeness_violations_by_rule"].items()
        if number
    )
    broken = counted(found["politeness_violations"], "visit")
    return f'<p class="bad">{broken} broke a rule. The audit checked {checked}.</p><ul>{rules}</ul>{_examples(record)}'


def _examples(record: LiveRecord) -> str:
    rows = "".join(
        f'<tr><th class="strategy" scope="row">{escape(violation.site)}</th><td>{violation.visit}</td>'
        f"<td>{violation.at - record.summary['began']:,.3f}</td><td>{escape(', '.join(violation.rules))}</td></tr>"
        for violation in record.violations[:_MOST_EXAMPLES]
    )
    others = "".join(f'<th scope="col">{name}</th>' for name in ("visit", "after (s)", "rules"))
    heads = f'<th class="strategy" scope="col">the first of them</th>{others}'
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'


def _sites_hint(record: LiveRecord) -> str:
    shown = len(record.sites)
    if shown == record.sites_visited:
        return f"{counted(shown, 'site')}, busiest first."
    return f"The busiest {shown:,} of {record.sites_visited:,} sites."


def _abandoned_sites(record: LiveRecord) -> str:
    """Return the section on abandoned sites; empty if there are none."""
    number = record.summary["abandoned_sites"]
    if not number:
        return ""
    which = f"The first {len(record.abandoned_sites):,} of {number:,}." if number > len(record.abandoned_sites) else ""
    rows = "\n".join(
        f'<tr><th class="strategy" scope="row"><span>{escape(row.origin)}</span></th><td class="why">{escape(row.why)}</td></tr>'
        for row in record.abandoned_sites
    )
    heads = '<th class="strategy" scope="col">site</th><th class="why" scope="col">why</th>'
    table = f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"
    hint = f'<p class="hint">The crawl does not wait for these sites. {which}</p>'
    return f'<section>\n<h2>Abandoned sites</h2>\n{hint}\n<div class="scroll tall" tabindex="0">\n{table}\n</div>\n</section>'


def _broken_links(broken: BrokenLinks) -> str:
    """Return the section on broken pages and the pages that link to them; empty if there are none."""
    if not broken.broken:
        return ""
    shown = len(broken.pages)
    which = f"The {shown:,} with the most links to them." if shown < broken.broken else ""
    rows = "\n".join(
        f'<tr><th class="strategy" scope="row"><span>{escape(page.url)}</span></th>'
        f"<td>{escape(_answer(page))}</td><td>{page.referrers:,}</td>"
        f'<td class="why">{_referrers(page)}</td></tr>'
        for page in broken.pages
    )
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("answer", "pages linking to it"))
    heads = f'<th class="strategy" scope="col">page</th>{heads}<th class="why" scope="col">which</th>'
    table = f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"
    numbers = f"{counted(broken.broken, 'page')} could not be fetched; fetched pages link to {broken.linked:,} of them."
    hint = f'<p class="hint">{numbers} {which}</p>'
    return (
        f'<section>\n<h2>Broken links</h2>\n{hint}\n<div class="scroll tall" tabindex="0">\n{table}\n</div>\n</section>'
    )


def _answer(page: BrokenPage) -> str:
    return f"{page.status} {phrase(str(page.status))}".strip() if page.status else page.error


def _referrers(page: BrokenPage) -> str:
    more = page.referrers - len(page.first_referrers)
    return "<br>".join((*map(escape, page.first_referrers), *((f"and {more:,} more",) if more else ())))


def _sites(sites: Sequence[SiteRow], numbers: Sequence[Column]) -> str:
    site = '<th class="strategy" scope="col" data-first="ascending"><button type="button">site</button></th>'
    rows = "\n".join(_site(at, one, numbers) for at, one in enumerate(sites))
    names = "".join(map(head_cell, numbers))
    return f'<table>\n<thead><tr class="names">{site}{names}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>'


def _site(at: int, site: SiteRow, numbers: Sequence[Column]) -> str:
    name = escape(site.origin)
    head = f'<th class="strategy" scope="row" data-value="{name}" title="{name}"><span>{name}</span></th>'
    return f"<tr>{head}{''.join(number_cell(at, column) for column in numbers)}</tr>"
