"""One HTML file of a live crawl: its numbers, plots over time, pages fetched again, sites, what came back, and whether it was polite.

It reads a live record and writes text; what it says is decided in `live_table.py` and `live_chart.py`, and what it is made of in `html.py`.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

from trapline.report.html import Frame, counts_table, filled, head_cell, headline, number_cell
from trapline.report.live_chart import live_charts
from trapline.report.live_record import LiveRecord, SiteRow
from trapline.report.live_table import (
    ENDS,
    RULES,
    failures,
    given_up,
    headlines,
    left_out,
    settings,
    site_columns,
    statuses,
    types,
)
from trapline.report.record import CrawlRecord
from trapline.report.refresh_chart import refresh_charts
from trapline.report.refresh_page import refresh_section, trust_columns
from trapline.report.table import Column
from trapline.units import counted, duration

_MOST_EXAMPLES = 10


def live_page(record: LiveRecord, judged: CrawlRecord | None = None) -> str:
    """The page; equal records give equal pages. `judged`: the crawl by the PageRank of the web it found."""
    numbers, again = site_columns(record.sites), record.refresh
    explained = [*numbers, *(trust_columns(again.trust) if again and again.trust else ())]
    return filled(
        "live.html",
        Frame(f"Crawl {record.name}", _subtitle(record), settings(record.options), "As in crawl.db.", explained),
        live_charts(record, judged),
        0,
        others=refresh_charts(again) if again else (),
        refresh=refresh_section(again) if again else "",
        headlines="\n".join(map(headline, headlines(record))),
        counts="\n".join(
            (
                counts_table("Status", statuses(record)),
                counts_table("Not had", failures(record)),
                counts_table("Type", types(record)),
                counts_table("Sites given up", given_up(record)),
                counts_table("Links left out", left_out(record)),
            )
        ),
        politeness=_politeness(record),
        sites_hint=_sites_hint(record),
        sites=_sites(record.sites, numbers),
        given_up=_given_up(record),
    )


def _subtitle(record: LiveRecord) -> str:
    found = record.summary
    began = datetime.fromtimestamp(found["began"], UTC).strftime("%Y-%m-%d %H:%M UTC")
    ended = (
        "still running"
        if record.running
        else f"ended: {ENDS.get(found['stopped_by'], found['stopped_by'] or 'without saying why')}"
    )
    again = f", resumed {counted(found['resumed'], 'time')}" if found["resumed"] else ""
    parts = f", {record.partitions} partitions" if record.partitions > 1 else ""
    return f"{found['strategy']}{parts}; began {began}, took {duration(found['seconds'])}{again}; {ended}"


def _politeness(record: LiveRecord) -> str:
    found = record.summary
    checked = f"{counted(found['requests'], 'request')} in {counted(found['visits'], 'visit')}"
    if not found["politeness_violations"]:
        return (
            f"<p>No rule was broken, by an audit of all {checked}: visits to a site or an address neither overlap nor come "
            "early, requests keep their pause, and robots.txt was obeyed.</p>"
        )
    rules = "".join(
        f"<li><b>{number:,}</b> {escape(RULES[rule])}</li>"
        for rule, number in found["politeness_violations_by_rule"].items()
        if number
    )
    broken = counted(found["politeness_violations"], "visit")
    return f'<p class="bad">{broken} broke a rule, by an audit of all {checked}.</p><ul>{rules}</ul>{_examples(record)}'


def _examples(record: LiveRecord) -> str:
    rows = "".join(
        f'<tr><th class="strategy" scope="row">{escape(one.site)}</th><td>{one.visit}</td>'
        f"<td>{one.at - record.summary['began']:,.3f}</td><td>{escape(', '.join(one.rules))}</td></tr>"
        for one in record.violations[:_MOST_EXAMPLES]
    )
    others = "".join(f'<th scope="col">{name}</th>' for name in ("visit", "after (s)", "rules"))
    heads = f'<th class="strategy" scope="col">the first of them</th>{others}'
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'


def _sites_hint(record: LiveRecord) -> str:
    shown = len(record.sites)
    if shown == record.sites_visited:
        return f"{counted(shown, 'site')}, busiest first."
    return f"The busiest {shown:,} of {record.sites_visited:,} sites."


def _given_up(record: LiveRecord) -> str:
    """A section, if there are any."""
    number = record.summary["sites_given_up"]
    if not number:
        return ""
    which = f"The first {len(record.given_up):,} of {number:,}." if number > len(record.given_up) else ""
    rows = "\n".join(
        f'<tr><th class="strategy" scope="row"><span>{escape(one.origin)}</span></th><td class="why">{escape(one.why)}</td></tr>'
        for one in record.given_up
    )
    heads = '<th class="strategy" scope="col">site</th><th class="why" scope="col">why</th>'
    table = f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"
    hint = f'<p class="hint">The crawl does not wait for them. {which}</p>'
    return f'<section>\n<h2>Sites given up</h2>\n{hint}\n<div class="scroll tall" tabindex="0">\n{table}\n</div>\n</section>'


def _sites(sites: Sequence[SiteRow], numbers: Sequence[Column]) -> str:
    site = '<th class="strategy" scope="col" data-first="ascending"><button type="button">site</button></th>'
    rows = "\n".join(_site(at, one, numbers) for at, one in enumerate(sites))
    names = "".join(map(head_cell, numbers))
    return f'<table>\n<thead><tr class="names">{site}{names}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>'


def _site(at: int, site: SiteRow, numbers: Sequence[Column]) -> str:
    name = escape(site.origin)
    head = f'<th class="strategy" scope="row" data-value="{name}" title="{name}"><span>{name}</span></th>'
    return f"<tr>{head}{''.join(number_cell(at, column) for column in numbers)}</tr>"
