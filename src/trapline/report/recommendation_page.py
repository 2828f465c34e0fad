"""The advice on a crawl, for people: sentences, numbers, a plot, and the HTML page that holds them.

This module turns a recommendation into text, and knows neither files nor options.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape

import numpy as np

from trapline.confidence import Estimate
from trapline.report.chart import Axis, Chart, ChartLine, axis
from trapline.report.html import Headline, PageFrame, filled, head_cell, headline, number_cell
from trapline.report.table import HIGH, NEITHER, Column
from trapline.simulator.recommendation import CrawlBudget, Recommendation, Trials
from trapline.units import counted, duration, time_unit

_MUCH_LONGER = 2.0  # times the default crawl
_WHOLE_WEB = 0.5  # share of the known pages from which a budget says little about a larger web


def points(gain: Estimate) -> str:
    """Format a gain in percentage points.

    >>> points(Estimate(0.031, 0.002)), points(Estimate(-0.5, None))
    ('+3.10 ± 0.20', '-50.00')
    """
    return f"{gain.mean * 100:+.2f}" + ("" if gain.ci is None else f" ± {gain.ci * 100:.2f}")


def advice(found: Recommendation) -> list[str]:
    """Return the advice as sentences."""
    advised, budget = found.advised, budget_text(found.budget)
    fetched = f"Within {budget}, it fetches {advised.mean:.1%} of the PageRank of the graph"
    over_first = f"{_difference(advised, found.breadth_first)} than breadth-first"
    if found.keeps_default:
        sentences = [f"Keep the default, {advised.setting.label}.", f"{fetched}, {over_first}.", *_nearest(found)]
    else:
        sentences = [
            f"Crawl with {advised.setting.label}.",
            f"{fetched}: {_difference(advised, found.default)} than the default, and {over_first}.",
        ]
        if not advised.gain_over(found.default).is_above_zero:
            sentences.append(
                "The gain over the default may be chance, because its interval contains 0; more --draws can tell."
            )
        sentences += [*_longer(found), *_better_row(found)]
    if found.covers_all:
        sentences.append(
            "The budget is enough for everything, so settings differ only in how soon: compare them with a smaller budget."
        )
    return sentences


def _longer(found: Recommendation) -> list[str]:
    """Return how long the advised crawl takes, if the budget has no time and it takes much longer than the default."""
    advised, default = (float(np.mean(trials.seconds)) for trials in (found.advised, found.default))
    if found.budget.time_s is not None or advised <= _MUCH_LONGER * default:
        return []
    return [f"It takes {duration(advised)}, the default {duration(default)}; give --time if this is too long."]


def _better_row(found: Recommendation) -> list[str]:
    """Return why the advice is not the first row of the table, if another setting fetched more on these draws."""
    best = found.best[0]
    gain = best.gain_over(found.advised)
    if gain.mean <= 0.0:
        return []
    more = f"The setting {best.setting.label} fetched {points(gain)} points more than the advice on these draws"
    chosen = "the search chose the advice before, on other draws"
    if gain.is_above_zero:
        return [
            f"{more}, but {chosen}, and the best of several looks better than it is. To check it, name its strategy and give more --draws."
        ]
    return [f"{more}, which may be chance, because the interval contains 0; {chosen}."]


def _nearest(found: Recommendation) -> list[str]:
    """Return how the best other setting compares with the default, if there is another."""
    others = [trials for trials in found.best if trials is not found.default]
    if not others:
        return []
    label, gain = others[0].setting.label, others[0].gain_over(found.default)
    if gain.is_above_zero:
        return [
            f"The setting {label} fetched {points(gain)} points more on these draws, but it did not win the search, and the best of "
            "several looks better than it is. To check it, name its strategy and give more --draws."
        ]
    return [f"No other setting is clearly better; the nearest, {label}, differs by {points(gain)} points."]


def _difference(one: Trials, other: Trials) -> str:
    """Return how much more or less of the PageRank the first fetched than the other."""
    gain = one.gain_over(other)
    return f"{points(gain).removeprefix('-')} percentage points {'less' if gain.mean < 0 else 'more'}"


def budget_text(budget: CrawlBudget) -> str:
    pages = "" if budget.pages is None else counted(budget.pages, "page")
    return " and ".join(filter(None, (pages, "" if budget.time_s is None else duration(budget.time_s))))


def grounds(found: Recommendation, pages: int, sites: int, servers: str, sample: float = 1.0) -> list[str]:
    """Return what the advice rests on, as sentences."""
    draws = len(found.advised.shares)
    share = float(np.mean(found.default.pages)) / pages
    sentences = [
        f"The advice rests on the {counted(pages, 'page')} and {counted(sites, 'site')} of this graph, and on their PageRank in it. Pages "
        "outside the graph count for nothing."
    ]
    if sample < 1.0:
        sentences.append(
            f"The graph is taken as a sample of {sample:.3g} of the pages, and the budget is that share of yours: the rest of the web is "
            "assumed to be like the sample."
        )
    elif share > _WHOLE_WEB:
        sentences.append(
            f"The budget is enough for {share:.0%} of the known pages. If the graph is only a part of the web that you will crawl, say "
            "which part (--sample); otherwise the advice is for a crawl that fetches almost everything."
        )
    sentences.append(
        f"Servers from the model {servers!r}, not measured on these sites. The intervals (95 %) cover {counted(draws, 'draw')} of "
        "servers, failures and random choices that the search had not seen. They do not cover pages that are not known."
    )
    return sentences


def how_compared(found: Recommendation) -> str:
    return (
        f"The search compared {counted(found.settings, 'setting')}: all on one draw of servers, the better ones on more. "
        f"These are the results on {counted(len(found.advised.shares), 'new draw')}. Gains are in percentage points, with 95 % "
        f"intervals, compared draw by draw. This took {counted(found.crawls, 'simulated crawl')}."
    )


# ---- Numbers.


def recommendation_columns(found: Recommendation) -> list[Column]:
    """Return the numbers of the best settings, one row for each, best first."""
    rows = found.best
    fetched = "Share of the PageRank of the graph that was fetched within the budget."
    return [
        _column("PageRank %", fetched, [trials.mean * 100 for trials in rows], "{:.2f}".format, HIGH),
        _gains("over default", "the default settings", [trials.gain_over(found.default) for trials in rows]),
        _gains("over breadth-first", "breadth-first", [trials.gain_over(found.breadth_first) for trials in rows]),
        _column("pages", "Pages fetched, on average.", _means(trials.pages for trials in rows), "{:,.0f}".format),
        _column("time", "Time until the last page, on average.", _means(trials.seconds for trials in rows), duration),
    ]


def _means(every: Iterable[Sequence[float]]) -> list[float]:
    return [float(np.mean(values)) for values in every]


def _gains(name: str, other: str, gains: Sequence[Estimate]) -> Column:
    about = (
        f"How much more of the PageRank was fetched than with {other}, in percentage points, with its 95 % interval."
    )
    values: list[float | None] = [gain.mean * 100 for gain in gains]
    return Column("", name, about, values, [points(gain) for gain in gains], NEITHER)


def _column(
    name: str, about: str, values: Sequence[float], text: Callable[[float], str], better: int = NEITHER
) -> Column:
    return Column("", name, about, list(values), list(map(text, values)), better)


def recommendation_table(found: Recommendation) -> str:
    """Return the table for a terminal."""
    numbers = recommendation_columns(found)
    columns = [["setting", *(name_of(found, trials) for trials in found.best)]]
    columns += [[column.name, *column.texts] for column in numbers]
    widths = [max(map(len, column)) for column in columns]
    return "\n".join(
        "  ".join((f"{name:{widths[0]}}", *(f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))))
        for name, *cells in zip(*columns, strict=True)
    )


def name_of(found: Recommendation, trials: Trials) -> str:
    """Return the setting, and whether it is the advice or the default."""
    marks = [word for word, one in (("advice", found.advised), ("default", found.default)) if one is trials]
    return trials.setting.label + (f" ({', '.join(marks)})" if marks else "")


# ---- The plot and the page.


def budget_chart(found: Recommendation) -> Chart:
    """Return the PageRank fetched against the budget used, for the advice and what it is compared with."""
    x_axis, end = _budget_axis(found.budget)
    shown = list(dict.fromkeys(map(id, (found.advised, found.default, found.breadth_first))))
    trials = [next(one for one in found.best if id(one) == key) for key in shown]
    lines = [_line(index, name_of(found, one), one, end) for index, one in enumerate(trials)]
    top = max(float(line.y.max()) for line in lines)
    return Chart(
        "recommend", "PageRank fetched", "", x_axis, axis("PageRank fetched (% of the graph)", top, "%"), lines
    )


def _line(index: int, name: str, trials: Trials, end: float) -> ChartLine:
    curve = np.mean(trials.curves, 0) * 100
    return ChartLine(index, name, np.linspace(0.0, end, len(curve)), curve, f"{trials.mean:.1%}")


def _budget_axis(budget: CrawlBudget) -> tuple[Axis, float]:
    if budget.time_s is None:
        end = float(budget.pages or 0)
        return axis("pages fetched", end, tight=True), end
    unit = time_unit(budget.time_s)
    end = budget.time_s / unit.seconds
    return axis(f"time ({unit.name})", end, tight=True), end


def recommendation_page(
    found: Recommendation, title: str, subtitle: str, command: str, why: Sequence[str], settings: Mapping[str, object]
) -> str:
    numbers = recommendation_columns(found)
    chart = budget_chart(found)
    return filled(
        "recommend.html",
        PageFrame(title, subtitle, settings, "As options that can be typed.", numbers),
        [chart],
        0,
        headlines="\n".join(map(headline, _headlines(found))),
        advice=escape(" ".join(advice(found))),
        command=escape(command),
        how_compared=escape(how_compared(found)),
        table=_html_table(found, numbers),
        grounds="\n".join(f"<li>{escape(sentence)}</li>" for sentence in why),
    )


def _headlines(found: Recommendation) -> list[Headline]:
    over = ((found.default, "the default"), (found.breadth_first, "breadth-first"))
    gains = [
        Headline(points(found.advised.gain_over(one)), "points", f"compared with {name}")
        for one, name in over
        if one is not found.advised
    ]
    first = Headline(f"{found.advised.mean:.1%}", "of the PageRank", f"within {budget_text(found.budget)}")
    return [first, *gains]


def _html_table(found: Recommendation, numbers: Sequence[Column]) -> str:
    names = "".join(map(head_cell, numbers))
    head = f'<th class="strategy" scope="col" data-first="ascending"><button type="button">setting</button></th>{names}'
    rows = "\n".join(_html_row(at, name_of(found, trials), numbers) for at, trials in enumerate(found.best))
    return f'<table>\n<thead>\n<tr class="names">{head}</tr>\n</thead>\n<tbody>\n{rows}\n</tbody>\n</table>'


def _html_row(at: int, name: str, numbers: Sequence[Column]) -> str:
    cells = "".join(number_cell(at, column) for column in numbers)
    return f'<tr><th class="strategy" scope="row" data-value="{escape(name)}">{escape(name)}</th>{cells}</tr>'
