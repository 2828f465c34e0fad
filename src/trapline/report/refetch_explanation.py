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
        yield "  refetch: never, because the page no longer belongs to the crawl"
        return
    now = refresher.now
    yield from _lines(refresher.explain(page, now), refresh.policy, now)


def _lines(known: dict[str, Any], policy: str, now: float) -> Iterator[str]:
    yield f"  copy: {duration(now - known['last_crawl'])} old at the last commit"
    popularity = (
        "from its quality, because the crawl knows no accesses"
        if known["by_quality"]
        else f"from the accesses known so far ({known['accesses']:,})"
    )
    yield f"  expected accesses: {number(known['accesses_per_day'])} per day, estimated {popularity}"
    signals = f"signals for this page: {known['all_signals']:,}, of which {known['signals']:,} arrived after the copy was fetched"
    yield f"  provider: level {known['level']}; {signals}"
    values = (
        f"value of a refetch now: {_value(known['value'])}; value of recently refetched pages: {_value(known['price'])}"
    )
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
        yield "  refetched: not yet"
        return
    changed = sum(version.changed == 1 for version in history)
    not_modified = sum(version.status == 304 for version in history)
    gap_s = (history[-1].started - history[0].started) / refetches
    change_gap = f" (every {duration(gap_s * refetches / changed)} on average)" if changed else ""
    gap = f"every {duration(gap_s)} on average"
    counts = (
        f"changed {counted(changed, 'time')}{change_gap}; not modified (status 304) {counted(not_modified, 'time')}"
    )
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
        yield "  signals: its provider has sent none so far"
    for trust in channels:
        yield f"  {trust.channel}{'' if trust.verified else ' (unverified)'}: {_trusted(trust)}"


def _trusted(trust: Trust) -> str:
    if not trust.signals:
        return _published(trust)
    received = f"{counted(trust.signals, 'signal')} received"
    if not trust.judged_by:
        return f"{received}, none checked so far; estimate: {trust.precision:.0%} are true"
    checked = f"checked: {trust.judged_by:.0f}, of which {trust.confirmed:.0f} were true"
    expected = f"estimate: {trust.precision:.0%} are true, and {trust.recall:.0%} of all changes are announced"
    struck_out = "; too many were false, so the crawl ignores this channel" if trust.struck_out else ""
    return f"{received}; {checked}; {expected}{struck_out}"


def _published(trust: Trust) -> str:
    published = "update times published, no signals so far"
    if not trust.promised:
        return f"{published}; none of these times was checked yet"
    kept = f"{trust.kept:.0f} of {trust.promised:.0f} checked times were right"
    return f"{published}; {kept}; estimate: {trust.kept_share:.0%} are right"
