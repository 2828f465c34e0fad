"""What `trapline explain` says of a page that is to be fetched again: what is known of it, and when it is due."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trapline.units import counted, duration, number

if TYPE_CHECKING:
    from trapline.crawl.options import RefreshOptions


def again_lines(folder: Path, page: int, refresh: "RefreshOptions | None") -> Iterator[str]:
    """As the last commit left it. Nothing, if the crawl fetches every page once."""
    if refresh is None:
        return
    from trapline.cli.compiling import compile_kernels
    from trapline.crawl.resume import refresher_of
    from trapline.crawl.store.reading import Reading

    compile_kernels()
    reading = Reading(folder)
    refresher = refresher_of(reading, refresh)
    reading.close()
    if page not in refresher:
        yield "  it is not fetched again: it is gone, or may not be fetched"
        return
    now = refresher.now
    yield from _lines(refresher.explain(page, now), refresh.policy, now)


def _lines(known: dict[str, Any], policy: str, now: float) -> Iterator[str]:
    crawls, changes = known["crawls"], known["changes"]
    yield f"  fetched again: {counted(crawls, 'time')}, {changes:,} changed; the copy is {duration(now - known['last_crawl'])} old"
    popularity = (
        "by its quality, for no accesses are known" if known["by_quality"] else f"by {known['accesses']:,} so far"
    )
    yield f"  accesses expected: {number(known['accesses_per_day'])} a day, {popularity}"
    yield f"  its provider: {known['level']}; {counted(known['all_signals'], 'signal')}, {known['signals']:,} since the copy"
    worth = f"worth {number(known['value'])} now; what was fetched again lately was worth {number(known['price'])}"
    due = known["due"]
    when = "now" if due <= now else f"in {duration(due - now)}" if due < math.inf else "when something is heard of it"
    yield f"  by {policy}: {worth}; due {when}"
