"""What other options would change: how much faster the crawl would be with another value of one of them.

The speed is that of a crawl whose sites go on as they are now: each address gives k pages in the time of a visit and of the
delay after it. Addresses that together need more connections than the crawl has share them, and the bandwidth limits all of
them together. Times that were not measured yet are the mean of those that were.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.records import CrawlProgress
from trapline.crawler.speed.pace import SiteLoads
from trapline.frontier.layout import MOST_PER_VISIT, Array

PER_CONNECTION, DELAY, IP_DELAY, PAUSE = "per-connection", "delay", "ip-delay", "pause"
CONNECTIONS, BANDWIDTH = "connections", "bandwidth"
_LEAST_PAGE_S = 1e-3  # of an address, for one page: no server is faster for long


class WhatIf(NamedTuple):
    option: str
    value: float
    factor: float  # by which the crawl would be faster now; 1: no change


def possible_speed(loads: SiteLoads, options: CrawlOptions, progress: CrawlProgress, address: Array) -> float:
    """Return the pages per second that the sites, the connections and the bandwidth allow. `address`: of each site, from 0."""
    busy_s = np.bincount(address, loads.busy_s)
    turns_s = busy_s + np.bincount(address, loads.visits) * options.rules.address_delay_s
    longest_s = np.zeros(len(busy_s))
    back_off_s = np.where(loads.backs_off, loads.opens_s, 0.0)
    np.maximum.at(longest_s, address, back_off_s + loads.busy_s + loads.visits * loads.delay_s)
    pages = np.bincount(address, loads.pages)
    seconds = np.maximum(np.maximum(turns_s, longest_s), _LEAST_PAGE_S * pages)
    used = float((busy_s / seconds).sum())  # connections, if there are enough of them
    speed = float((pages / seconds).sum()) * min(1.0, options.connections / max(used, 1e-9))
    page_bytes = progress.bytes / progress.pages if progress.pages else 0.0
    return min(speed, options.bandwidth / page_bytes) if page_bytes else speed


def what_ifs(loads: SiteLoads, options: CrawlOptions, progress: CrawlProgress) -> Iterator[WhatIf]:
    """Yield what each alternative would change; nothing if no page waits, or no site has answered yet."""
    is_measured = loads.answer_s > 0.0
    if not is_measured.any() or progress.pages >= options.max_pages:
        return
    loads = loads._replace(
        answer_s=np.where(is_measured, loads.answer_s, loads.answer_s[is_measured].mean()),
        connection_s=np.where(is_measured, loads.connection_s, loads.connection_s[is_measured].mean()),
    )
    address = np.unique(loads.group, return_inverse=True)[1]  # a number from 0 for each address
    speed = possible_speed(loads, options, progress, address)
    for option, value in _alternatives(options):
        there, then = _changed(loads, options, option, value)
        faster = possible_speed(there, then, progress, address) / speed
        yield WhatIf(option, value, max(faster, 1.0))


def _alternatives(options: CrawlOptions) -> Iterator[tuple[str, float]]:
    rules, k = options.rules, options.rules.per_connection
    for times in (2, 10):
        if 0 < k < MOST_PER_VISIT:
            yield PER_CONNECTION, min(k * times, MOST_PER_VISIT)
    for option, now_s in ((DELAY, rules.delay_s), (PAUSE, options.pause_s)):
        if now_s > 0.0:
            yield option, now_s / 2
            yield option, 0.0
    if rules.address_delay_s > 0.0:
        yield IP_DELAY, 0.0
    yield CONNECTIONS, options.connections * 2
    if options.bandwidth < np.inf:
        yield BANDWIDTH, options.bandwidth * 2


def _changed(loads: SiteLoads, options: CrawlOptions, option: str, value: float) -> tuple[SiteLoads, CrawlOptions]:
    """Return the loads and options with another value of one option. Settings of single sites and Crawl-delay stay as they are."""
    if option == PER_CONNECTION:
        per_visit = np.maximum(loads.per_visit, np.minimum(loads.most_per_visit, value))
        return loads._replace(per_visit=per_visit), options
    if option == DELAY:
        delay_s = np.where(loads.has_common_delay, np.minimum(loads.delay_s, value), loads.delay_s)
        return loads._replace(delay_s=delay_s), replace(options, rules=replace(options.rules, delay_s=value))
    if option == PAUSE:
        is_common = np.isnan(loads.own_pause_s) & (loads.pause_s == options.pause_s)
        return loads._replace(pause_s=np.where(is_common, value, loads.pause_s)), replace(options, pause_s=value)
    if option == IP_DELAY:
        return loads, replace(options, rules=replace(options.rules, ip_delay_s=value))
    if option == CONNECTIONS:
        return loads, replace(options, connections=int(value))
    return loads, replace(options, bandwidth=value)


def what_ifs_together(parts: Sequence[tuple[float, Sequence[WhatIf]]]) -> list[WhatIf]:
    """Return what each alternative would change for a crawl of several partitions. `parts`: pages per second and what-ifs of each.
    Those of the bandwidth, which is divided among partitions, add up."""
    found: dict[tuple[str, float], list[tuple[float, WhatIf]]] = {}
    for speed, alternatives in parts:
        for one in alternatives:
            found.setdefault((one.option, one.value), []).append((max(speed, 1e-9), one))
    return [
        WhatIf(
            option,
            value * (len(parts) if option == BANDWIDTH else 1),
            sum(speed * one.factor for speed, one in every) / sum(speed for speed, _ in every),
        )
        for (option, value), every in found.items()
    ]
