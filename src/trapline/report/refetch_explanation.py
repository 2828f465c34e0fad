"""Explanations of refetching: what the crawl knows of a page, when the page is due, and how far the signals of its site are trusted."""

import math
from collections.abc import Callable, Iterator
from typing import Any

from trapline.crawler.engine.options import RefreshOptions
from trapline.crawler.files.reading import PageVersion, Reading
from trapline.crawler.files.resume import refresher_of
from trapline.report.refresh_record import Trust, trust_of
from trapline.units import counted, duration, number


def refetch_lines(
    reading: Reading,
    page: int,
    history: list[PageVersion],
    refresh: RefreshOptions | None,
    compile_kernels: Callable[[], None],
) -> Iterator[str]:
    """Yield the state of a page's refetching at the last commit before the moment of `reading`; nothing if the crawl does not refetch.

    `history`: the versions of the page in all partitions.
    """
    if refresh is None:
        return
    compile_kernels()
    refresher = refresher_of(reading, refresh)
    yield from _history_lines(history)
    if page not in refresher:
        yield "  refetch: never, because the page is gone or must not be fetched"
        return
    now = refresher.now
    yield from _lines(refresher.explain(page, now), refresh.policy, now)


def _lines(known: dict[str, Any], policy: str, now: float) -> Iterator[str]:
    yield f"  copy: {duration(now - known['last_crawl'])} old"
    popularity = (
        "from its quality, because no accesses are known"
        if known["by_quality"]
        else f"from {known['accesses']:,} so far"
    )
    yield f"  expected accesses: {number(known['accesses_per_day'])} per day, estimated {popularity}"
    yield f"  provider: {known['level']}; {counted(known['all_signals'], 'signal')}, {known['signals']:,} since the copy was fetched"
    values = f"value now {_value(known['value'])}; value of recently refetched pages {_value(known['price'])}"
    due = known["due"]
    when = "now" if due <= now else f"in {duration(due - now)}" if due < math.inf else "when a signal arrives"
    yield f"  policy {policy}: {values}; due {when}"


def _value(value: float) -> str:
    """Format a value, which has the policy's unit and may be of any magnitude.

    >>> _value(9.417e-09), _value(0.25), _value(0.0)
    ('9.4e-09', '0.25', '0')
    """
    return f"{value:.1e}" if 0.0 < value < 1e-3 else number(value)


def _history_lines(history: list[PageVersion]) -> Iterator[str]:
    """Yield how often the page was refetched, at which mean interval, and how often it had changed."""
    refetches = len(history) - 1
    if refetches < 1:
        yield "  refetched: never so far"
        return
    changed = sum(version.changed == 1 for version in history)
    not_modified = sum(version.status == 304 for version in history)
    gap_s = (history[-1].started - history[0].started) / refetches
    change_gap = f", once in {duration(gap_s * refetches / changed)}" if changed else ""
    gap = f"{duration(gap_s)} apart on average"
    counts = f"changed {counted(changed, 'time')}{change_gap}; status 304 {counted(not_modified, 'time')}"
    yield f"  refetched: {counted(refetches, 'time')}, {gap}; {counts}"


def trust_lines(
    reading: Reading, site: int, refresh: RefreshOptions | None, compile_kernels: Callable[[], None]
) -> Iterator[str]:
    """Yield how far each channel of a site is trusted at the moment of `reading`; nothing if the crawl does not refetch."""
    if refresh is None:
        return
    compile_kernels()
    channels = [trust for trust in trust_of(refresher_of(reading, refresh)) if trust.site == site]
    if not channels:
        yield "  signals: none from its provider so far"
    for trust in channels:
        yield f"  {trust.channel}{'' if trust.verified else ', unverified'}: {_trusted(trust)}"


def _trusted(trust: Trust) -> str:
    if not trust.signals:
        return _published(trust)
    received = f"{counted(trust.signals, 'signal')} received"
    if not trust.judged_by:
        return f"{received}, none checked so far; {trust.precision:.0%} are expected to be true"
    checked = f"{trust.confirmed:.0f} of {trust.judged_by:.0f} that were checked were true"
    expected = f"{trust.precision:.0%} are expected to be true, and to announce {trust.recall:.0%} of its changes"
    struck_out = "; struck out: they are ignored" if trust.struck_out else ""
    return f"{received}, {checked}; {expected}{struck_out}"


def _published(trust: Trust) -> str:
    published = "update times published, no signals so far"
    if not trust.promised:
        return f"{published}; not checked yet"
    kept = f"{trust.kept:.0f} of {trust.promised:.0f} published times were right"
    return f"{published}; {kept}, {trust.kept_share:.0%} are expected to be"
