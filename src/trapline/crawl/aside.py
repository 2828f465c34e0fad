"""Work that would keep the loop from its pages: done in a thread, or later. What comes of it is taken in the loop.

It knows neither what is read nor what becomes of it. One thread: readers of long lists wait for each other, not the crawl for them.
What waits is bounded in bytes.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
MOST_WAITING_BYTES = 64 << 20  # one list of any size may always wait


class Aside:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread = ThreadPoolExecutor(1, "aside")
        self._is_over = False
        self._waiting_bytes = 0

    def read(self, read: Callable[[], T], take: Callable[[T], None], size: int) -> bool:
        """Call `read`, which holds `size` bytes, in the thread, then `take` here. False: too many bytes wait already; it is not read."""
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
        """Nothing is taken any more: the crawl has written what it has."""
        self._is_over = True
        self._thread.shutdown(wait=False, cancel_futures=True)
