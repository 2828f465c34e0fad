"""Work that would keep the loop from its pages: done in a thread, or later. What comes of it is taken in the loop.

It knows neither what is read nor what becomes of it. One thread: readers of long lists wait for each other, not the crawl for them.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Aside:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread = ThreadPoolExecutor(1, "aside")
        self._is_over = False

    def read(self, read: Callable[[], T], take: Callable[[T], None]) -> None:
        def done(future: asyncio.Future[T]) -> None:
            if not self._is_over and not future.cancelled():
                take(future.result())

        self._loop.run_in_executor(self._thread, read).add_done_callback(done)

    def soon(self, callback: Callable[[], None]) -> None:
        self._loop.call_soon(lambda: None if self._is_over else callback())

    def close(self) -> None:
        """Nothing is taken any more: the crawl has written what it has."""
        self._is_over = True
        self._thread.shutdown(wait=False, cancel_futures=True)
