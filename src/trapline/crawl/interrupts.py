"""Ctrl-C and SIGTERM, each once: for as long as a crawl runs. What they do is the crawl's business (run.py)."""

import asyncio
import math
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from trapline.crawl.ends import INTERRUPTED, TERMINATED

_ONE_S = 0.5  # signals within it are one: `timeout` sends its own to the process and to the group
_WHY = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}


@contextmanager
def interrupts(loop: asyncio.AbstractEventLoop, interrupted: Callable[[str], None]) -> Iterator[None]:
    """Call `interrupted` for each, with what it means for the crawl (ends.py)."""
    last = -math.inf

    def hear(why: str) -> None:
        nonlocal last
        if loop.time() - last >= _ONE_S:
            last = loop.time()
            interrupted(why)

    for number, why in _WHY.items():
        loop.add_signal_handler(number, hear, why)
    try:
        yield
    finally:
        for number in _WHY:
            loop.remove_signal_handler(number)
