"""What `trapline explain` says of pages that are fetched again: what is known of one, when it is due, and how far its site is believed."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from trapline.units import counted, duration, number

if TYPE_CHECKING:
    from trapline.crawl.options import RefreshOptions
    from trapline.crawl.store.reading import Reading, Seen
    from trapline.report.trust import Trust


def again_lines(
    reading: "Reading", page: int, history: list["Seen"], refresh: "RefreshOptions | None"
) -> Iterator[str]:
    """As the last commit before the moment of `reading` left it; `history`: of all partitions. Nothing, if the crawl fetches every page
    once."""
    if refresh is None:
        return
    from trapline.cli.compiling import compile_kernels
    from trapline.crawl.resume import refresher_of

    compile_kernels()
    refresher = refresher_of(reading, refresh)
    yield from _history_lines(history)
    if page not in refresher:
        yield "  it is not fetched again: it is gone, or may not be fetched"
        return
    now = refresher.now
    yield from _lines(refresher.explain(page, now), refresh.policy, now)


def _lines(known: dict[str, Any], policy: str, now: float) -> Iterator[str]:
    yield f"  the copy is {duration(now - known['last_crawl'])} old"
    popularity = (
        "by its quality, for no accesses are known" if known["by_quality"] else f"by {known['accesses']:,} so far"
    )
    yield f"  accesses expected: {number(known['accesses_per_day'])} a day, {popularity}"
    yield f"  its provider: {known['level']}; {counted(known['all_signals'], 'signal')}, {known['signals']:,} since the copy"
    worth = f"worth {_worth(known['value'])} now; what was fetched again lately was worth {_worth(known['price'])}"
    due = known["due"]
    when = "now" if due <= now else f"in {duration(due - now)}" if due < math.inf else "when something is heard of it"
    yield f"  by {policy}: {worth}; due {when}"


def _worth(value: float) -> str:
    """A value has the policy's unit, and any size.

    >>> _worth(9.417e-09), _worth(0.25), _worth(0.0)
    ('9.4e-09', '0.25', '0')
    """
    return f"{value:.1e}" if 0.0 < value < 1e-3 else number(value)


def _history_lines(history: list["Seen"]) -> Iterator[str]:
    """How often it was had, how often it was another then, and how far apart."""
    again = len(history) - 1
    if again < 1:
        yield "  fetched again: never so far"
        return
    changed, not_modified = sum(one.changed == 1 for one in history), sum(one.status == 304 for one in history)
    gap_s = (history[-1].started - history[0].started) / again
    every = f", once in {duration(gap_s * again / changed)}" if changed else ""
    apart = f"{duration(gap_s)} apart on average"
    yield f"  fetched again: {counted(again, 'time')}, {apart}; changed {counted(changed, 'time')}{every}; {not_modified:,} by 304"


def trust_lines(reading: "Reading", site: int, refresh: "RefreshOptions | None") -> Iterator[str]:
    """How far each channel of a site is believed, at the moment of `reading`. Nothing, if the crawl fetches every page once."""
    if refresh is None:
        return
    from trapline.cli.compiling import compile_kernels
    from trapline.crawl.resume import refresher_of
    from trapline.report.trust import trust_of

    compile_kernels()
    found = [one for one in trust_of(refresher_of(reading, refresh)) if one.site == site]
    if not found:
        yield "  its provider has told nothing so far"
    for one in found:
        yield f"  {one.channel}{'' if one.verified else ', unverified'}: {_believed(one)}"


def _believed(one: "Trust") -> str:
    if not one.heard:
        return _published(one)
    told = f"{counted(one.heard, 'signal')} heard"
    if not one.judged_by:
        return f"{told}, none of them put to the test; {one.precision:.0%} are expected to be true"
    judged = f"{one.confirmed:.0f} of {one.judged_by:.0f} that were put to the test were true"
    struck_out = "; struck out: they count as nothing" if one.struck_out else ""
    return f"{told}, {judged}; {one.precision:.0%} are expected to be, and to tell {one.recall:.0%} of its changes{struck_out}"


def _published(one: "Trust") -> str:
    told = "it has published what will come, and signalled nothing so far"
    if not one.promised:
        return f"{told}; not judged yet"
    return f"{told}; {one.kept:.0f} of {one.promised:.0f} moments were kept, {one.kept_share:.0%} are expected to be"
