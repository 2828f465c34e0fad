"""The section of a crawl's page on pages fetched again: plots, what was told, and who is believed. It reads a record and writes HTML."""

from collections.abc import Callable, Sequence
from html import escape
from itertools import groupby

from trapline.report.html import Count, counts_table, figure, head_cell, number_cell
from trapline.report.refresh_chart import refresh_charts
from trapline.report.refresh_record import Believed, RefreshRecord, Told
from trapline.report.table import Column
from trapline.units import three_digits

_HINT = (
    "Freshness is what the next fetch of a page says of the time before: unchanged, the copy was fresh all along; changed, the moment "
    "is unknown, and each is as likely: some hundredths too high for pages that change oftener than they are fetched. Copies that nobody "
    "has looked at since are taken for fresh: right for sites that tell every change, too high for others, and most so towards the end."
)
_HEARD = "Signals of this channel of the site, whatever became of them."
_JUDGED_BY = (
    "Crawls that came after exactly one signal; of a channel that only publishes what will come, moments that have passed. Old ones count "
    "less and less."
)
_NOT_JUDGED = "not judged yet"
OUTCOMES = {
    "noted": "counted",
    "old": "we have the page from later",
    "new page": "the crawl did not know it",
    "not fetched yet": "waits in the frontier",
    "no page of the crawl": "of no use",
    "accepted": "from a sender that owns the site",
    "unverified": "nobody vouches for it: little force",
    "repeated": "said just before",
    "held": "until the key was known",
    "refuted": "the key is not in its file",
    "unsigned": "signature missing or wrong",
    "replayed": "a delivery that came before",
    "unknown": "of a site that is not crawled",
    "limited": "too many",
    "lost": "the disk refused it",
}


def refresh_section(record: RefreshRecord) -> str:
    figures = "\n".join(figure(chart, key=True) for chart in refresh_charts(record))
    parts = (
        f'<section>\n<h2>Fetched again</h2>\n<p class="hint">{escape(_HINT)}</p>\n<div class="charts">\n{figures}\n</div>',
        *_told("What the crawl heard", record.signals),
        *_told("Accesses that it heard of, by page and hour", record.access_counts),
        *_told("What came to the endpoint", record.at_endpoint),
        *([_believed(record.trust)] if record.trust else []),
        "</section>",
    )
    return "\n".join(parts)


def _told(title: str, told: Sequence[Told]) -> list[str]:
    """A table for each channel."""
    if not told:
        return []
    by_channel = groupby(told, key=lambda one: one.channel)
    tables = (counts_table(channel, [_count(one) for one in several]) for channel, several in by_channel)
    return [f'<h3>{title}</h3>\n<div class="counts">', *tables, "</div>"]


def _count(one: Told) -> Count:
    return Count(one.outcome, OUTCOMES.get(one.outcome, ""), one.signals)


def trust_columns(rows: Sequence[Believed]) -> list[Column]:
    def column(name: str, about: str, values: Sequence[float | None], text: Callable[[float], str]) -> Column:
        return Column("", name, about, list(values), [_NOT_JUDGED if one is None else text(one) for one in values])

    of, percent = [one.trust for one in rows], "{:.0%}".format
    judged_by, right, share = zip(*(one.outcomes for one in of), strict=True)
    believed = [part if one.is_judged else None for part, one in zip(share, of, strict=True)]
    told = [one.recall if one.is_judged else None for one in of]
    return [
        column("heard", _HEARD, [one.heard for one in of], "{:,}".format),
        column("judged by", _JUDGED_BY, judged_by, three_digits),
        column("right", "Those of them that found something new.", right, three_digits),
        column("believed", "Share of what it tells that is expected to be true.", believed, percent),
        column("tells", "Share of updates that it is expected to tell.", told, percent),
    ]


def _believed(rows: Sequence[Believed]) -> str:
    numbers = trust_columns(rows)
    names = "".join(map(head_cell, numbers))
    site = (
        '<th class="strategy" scope="col" data-first="ascending"><button type="button">site and channel</button></th>'
    )
    body = "\n".join(_row(at, one, numbers) for at, one in enumerate(rows))
    table = f'<table>\n<thead><tr class="names">{site}{names}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>'
    return f'<h3>Who is believed</h3>\n<div class="scroll tall" tabindex="0">\n{table}\n</div>'


def _row(at: int, one: Believed, numbers: Sequence[Column]) -> str:
    name, trust = escape(f"{one.origin} {one.trust.channel}"), one.trust
    remarks = (trust.channel, "" if trust.verified else "unverified", "struck out" if trust.struck_out else "")
    named = f"<span>{escape(one.origin)}<small>{escape(', '.join(filter(None, remarks)))}</small></span>"
    head = f'<th class="strategy" scope="row" data-value="{name}" title="{name}">{named}</th>'
    return f"<tr>{head}{''.join(number_cell(at, column) for column in numbers)}</tr>"
