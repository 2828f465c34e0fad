"""Ctrl-C and SIGTERM, each once: for as long as a crawl runs. What they do is the crawl's business (run.py)."""

import asyncio
import math
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_ONE_S = 0.5  # signals within it are one: `timeout` sends its own to the process and to the group
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interrupts(loop: asyncio.AbstractEventLoop, interrupted: Callable[[], None]) -> Iterator[None]:
    """Call `interrupted` for each."""
    last = -math.inf

    def hear() -> None:
        nonlocal last
        if loop.time() - last >= _ONE_S:
            last = loop.time()
            interrupted()

    for number in _SIGNALS:
        loop.add_signal_handler(number, hear)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
