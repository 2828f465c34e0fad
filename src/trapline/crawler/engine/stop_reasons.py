"""Why a crawl ends, as its folder and `summary.json` name it; and Ctrl-C and SIGTERM, which are two of the reasons.

The crawler and its goals decide which reason applies. What follows from a signal is decided in run.py.
"""

import asyncio
import math
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

DRAINED = "drained"  # no page is left to fetch
MAX_PAGES, MAX_TIME, MAX_BYTES = "max-pages", "max-time", "max-bytes"
INTERRUPTED, TERMINATED = "interrupted", "terminated"  # by Ctrl-C, by SIGTERM
BY_HAND = (INTERRUPTED, TERMINATED)
PROXY_LOST = "proxy-lost"  # the proxy is not available
UNREACHABLE = "unreachable"  # nothing was fetched, and every seed refuses connections or has no address
STOPPED = "stopped"  # by the program that takes the pages
ENDS = {
    MAX_PAGES: "--max-pages",
    MAX_TIME: "--max-time",
    MAX_BYTES: "--max-bytes",
    PROXY_LOST: "the proxy was not available",
    UNREACHABLE: "no seed could be reached",
    DRAINED: "nothing was left to fetch",
    INTERRUPTED: "Ctrl-C",
    TERMINATED: "SIGTERM",
    STOPPED: "the program that received the pages",
}
"""Texts for what ended a crawl: `stopped_by` in docs/crawl-summary.md."""


# ---- Ctrl-C and SIGTERM while a crawl runs.

_SAME_SIGNAL_S = 0.5  # signals within this time count as one: `timeout` sends its own to the process and to the group
_WHY = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}


@contextmanager
def signals_held() -> Iterator[None]:
    """Keep signals until `interrupts` takes them: a crawl whose folder is being made ends in order, and not in the middle."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _WHY)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def interrupts(loop: asyncio.AbstractEventLoop, interrupted: Callable[[str], None]) -> Iterator[None]:
    """Call `interrupted` for each signal, with INTERRUPTED or TERMINATED; also for one that `signals_held` has kept."""
    last = -math.inf

    def handle(why: str) -> None:
        nonlocal last
        if loop.time() - last >= _SAME_SIGNAL_S:
            last = loop.time()
            interrupted(why)

    for number, why in _WHY.items():
        loop.add_signal_handler(number, handle, why)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _WHY)
    try:
        yield
    finally:
        for number in _WHY:
            loop.remove_signal_handler(number)
