"""The section on refetched pages in the page of a crawl: plots, signals, and trust in providers. It turns a record into HTML."""

from collections.abc import Callable, Sequence
from html import escape
from itertools import groupby

import numpy as np

from trapline.report.chart import Axis, Chart, ChartLine, Floats, axis
from trapline.report.html import CountTile, counts_table, figure, head_cell, number_cell
from trapline.report.refresh_record import Believed, Due, FetchBins, Fresh, RefreshRecord, SignalCount
from trapline.report.table import Column
from trapline.units import counted, three_digits, time_unit

# ---- The contents of the plots of refetched pages, made from a refresh record. `svg.py` draws them.

_MINUTE_S = 60.0


def refresh_charts(record: RefreshRecord) -> list[Chart]:
    return [_fresh(record.fresh), _new_and_refetched(record.fetches), _found(record.fetches)]


def _fresh(fresh: Fresh) -> Chart:
    x = fresh.seconds / time_unit(fresh.seconds[-1]).seconds
    known = fresh.looked_at > 0
    lines = [
        ChartLine(0, "fresh", x, fresh.fresh * 100) if known.any() else _nothing("fresh"),
        ChartLine(1, "copies that were refetched later", x, fresh.looked_at * 100),
    ]
    label = "fresh, as far as is known (% of the copies)"
    return Chart("fresh-time", "Freshness, as seen", "", _time(fresh.seconds[-1]), axis(label, 100.0, "%"), lines)


def _new_and_refetched(fetches: FetchBins) -> Chart:
    minutes = np.diff(fetches.edges) / _MINUTE_S
    x, rates = _middles(fetches.edges), (fetches.new / minutes, fetches.refetches / minutes)
    lines = [ChartLine(at, name, x, y) for at, (name, y) in enumerate(zip(("new", "refetched"), rates, strict=True))]
    top = axis("pages per minute", max(float(y.max()) for y in rates))
    return Chart("refetches-time", "New and refetched pages", "", _time(fetches.edges[-1]), top, lines)


def _found(fetches: FetchBins) -> Chart:
    filled = fetches.refetches > 0
    x, share = _middles(fetches.edges)[filled], fetches.changed[filled] / fetches.refetches[filled] * 100
    line = ChartLine(0, "changed", x, share) if filled.any() else _nothing("changed")
    label = "changed (% of the refetched pages)"
    return Chart("changed-time", "Changes found", "", _time(fetches.edges[-1]), axis(label, 100.0, "%"), [line])


def _nothing(name: str) -> ChartLine:
    return ChartLine(0, name, np.zeros(1), np.zeros(1))


def _middles(edges: Floats) -> Floats:
    """Return the middles of the bins in the unit of the axis."""
    return (edges[1:] + edges[:-1]) / 2 / time_unit(edges[-1]).seconds


def _time(end_s: float) -> Axis:
    unit = time_unit(end_s)
    return axis(f"time ({unit.name})", end_s / unit.seconds, tight=True)


# ---- The section.

_HINT = (
    "Freshness is inferred from the next fetch of a page. If the page had not changed, the copy was fresh all the time. If it had "
    "changed, the moment is unknown, and all moments are taken as equally likely; this is some hundredths too high for pages that "
    "change more often than they are fetched. Copies that were not fetched again count as fresh: that is right for sites that signal "
    "every change, and too high for others, most of all towards the end."
)
_SIGNALS = "All signals of this channel of the site, whatever their outcome."
_JUDGED_BY = (
    "Fetches that came after exactly one signal; for a channel that only announces future changes, announced moments that have passed. "
    "Older ones count less."
)
_NOT_JUDGED = "not judged yet"
OUTCOMES = {
    "noted": "counted",
    "old": "our copy is newer",
    "new page": "the crawl did not know it",
    "not fetched yet": "waits in the frontier",
    "no page of the crawl": "ignored",
    "accepted": "from a sender that owns the site",
    "unverified": "the sender is not verified: little weight",
    "repeated": "the same signal came just before",
    "held": "until the key was known",
    "refuted": "the key is not in its file",
    "unsigned": "signature missing or wrong",
    "replayed": "the same delivery came before",
    "unknown": "of a site that is not crawled",
    "limited": "too many",
    "lost": "could not be written to disk",
}


def refresh_section(record: RefreshRecord) -> str:
    figures = "\n".join(figure(chart, key=True) for chart in refresh_charts(record))
    parts = (
        f'<section>\n<h2>Refetched pages</h2>\n<p class="hint">{escape(_HINT)}</p>\n<div class="charts">\n{figures}\n</div>',
        f"<p>{_due(record.due)}</p>",
        *_signal_tables("Signals taken in by the crawl", record.signals),
        *_signal_tables("Access counts taken in, by page and hour", record.access_counts),
        *_signal_tables("Signals received by the endpoint", record.at_endpoint),
        *([_believed(record.trust)] if record.trust else []),
        "</section>",
    )
    return "\n".join(parts)


def _due(due: Due) -> str:
    """Return how many pages are due, as a sentence."""
    after = f"; {counted(due.signalled, 'page')} had signals that no fetch has checked" if due.signalled else ""
    waits = f"; {counted(due.failed, 'page')} waited after a failure" if due.failed else ""
    return f"At the last commit, {due.due:,} of {counted(due.pages, 'page')} were due to be refetched{after}{waits}."


def _signal_tables(title: str, counts: Sequence[SignalCount]) -> list[str]:
    """Return a table for each channel, under a heading; nothing if there are no signals."""
    if not counts:
        return []
    by_channel = groupby(counts, key=lambda count: count.channel)
    tables = (counts_table(channel, list(map(_count, of_channel))) for channel, of_channel in by_channel)
    return [f'<h3>{title}</h3>\n<div class="counts">', *tables, "</div>"]


def _count(count: SignalCount) -> CountTile:
    return CountTile(count.outcome, OUTCOMES.get(count.outcome, ""), count.signals)


def trust_columns(rows: Sequence[Believed]) -> list[Column]:
    def column(name: str, about: str, values: Sequence[float | None], text: Callable[[float], str]) -> Column:
        texts = [_NOT_JUDGED if value is None else text(value) for value in values]
        return Column("", name, about, list(values), texts)

    trusts, percent = [row.trust for row in rows], "{:.0%}".format
    judged_by, right, share = zip(*(trust.outcomes for trust in trusts), strict=True)
    precision = [part if trust.is_judged else None for part, trust in zip(share, trusts, strict=True)]
    recall = [trust.recall if trust.is_judged else None for trust in trusts]
    return [
        column("signals", _SIGNALS, [trust.signals for trust in trusts], "{:,}".format),
        column("judged by", _JUDGED_BY, judged_by, three_digits),
        column("right", "Those of them that found something new.", right, three_digits),
        column("precision", "Expected share of its signals that are true.", precision, percent),
        column("recall", "Expected share of updates that it signals.", recall, percent),
    ]


def _believed(rows: Sequence[Believed]) -> str:
    numbers = trust_columns(rows)
    names = "".join(map(head_cell, numbers))
    site = (
        '<th class="strategy" scope="col" data-first="ascending"><button type="button">site and channel</button></th>'
    )
    body = "\n".join(_row(at, row, numbers) for at, row in enumerate(rows))
    table = f'<table>\n<thead><tr class="names">{site}{names}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>'
    return f'<h3>Trust in sites and channels</h3>\n<div class="scroll tall" tabindex="0">\n{table}\n</div>'


def _row(at: int, row: Believed, numbers: Sequence[Column]) -> str:
    name, trust = escape(f"{row.origin} {row.trust.channel}"), row.trust
    remarks = (trust.channel, "" if trust.verified else "unverified", "struck out" if trust.struck_out else "")
    named = f"<span>{escape(row.origin)}<small>{escape(', '.join(filter(None, remarks)))}</small></span>"
    head = f'<th class="strategy" scope="row" data-value="{name}" title="{name}">{named}</th>'
    return f"<tr>{head}{''.join(number_cell(at, column) for column in numbers)}</tr>"
