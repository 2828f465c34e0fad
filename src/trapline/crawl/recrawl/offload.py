"""Long work that would block the crawl loop: it is done in a thread, or later. The loop takes the results.

This module knows neither the work nor the use of its results. There is one thread: long lists wait for each other, and
the crawl does not wait for them. The amount of waiting work is bounded in bytes.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
MOST_WAITING_BYTES = 64 << 20  # a single list may be larger


class Offload:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread = ThreadPoolExecutor(1, "offload")
        self._is_over = False
        self._waiting_bytes = 0

    def read(self, read: Callable[[], T], take: Callable[[T], None], size: int) -> bool:
        """Call `read`, which holds `size` bytes, in the thread, then `take` with its result in the loop. Return False, and call
        neither, if too many bytes wait already."""
        if self._waiting_bytes and self._waiting_bytes + size > MOST_WAITING_BYTES:
            return False
        self._waiting_bytes += size

        def done(future: asyncio.Future[T]) -> None:
            self._waiting_bytes -= size
            if not self._is_over and not future.cancelled():
                take(future.result())

        self._loop.run_in_executor(self._thread, read).add_done_callback(done)
        return True

    def soon(self, callback: Callable[[], None]) -> None:
        self._loop.call_soon(lambda: None if self._is_over else callback())

    def close(self) -> None:
        """Discard all further results: the crawl has written everything."""
        self._is_over = True
        self._thread.shutdown(wait=False, cancel_futures=True)
