"""Answers of /metrics: reads what is new in the databases at most once a second, whoever asks."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack

from starlette.requests import Request
from starlette.responses import Response

from trapline.crawler.files.layout import DATABASE
from trapline.dashboard.fetch_histograms import FetchHistograms
from trapline.dashboard.folder_reader import reading
from trapline.dashboard.metrics import exposition
from trapline.dashboard.watched_crawl import TICK_S, WRONG_VALUES, WatchedCrawl
from trapline.errors import ConfigError

_WAIT_S = 2.0  # for the counts. The first reading of a large crawl takes longer: its counts are left out until then


class Scraping:
    def __init__(self, crawls: Sequence[WatchedCrawl]) -> None:
        self._crawls = {crawl.name: crawl for crawl in crawls}
        self._histograms = {name: FetchHistograms() for name in self._crawls}
        self._counting: dict[str, asyncio.Task[None]] = {}
        self._next_at: dict[str, float] = {}

    async def answer(self, request: Request) -> Response:
        await asyncio.gather(*(self._count(name) for name in self._crawls))
        views = {name: await crawl.tick() for name, crawl in self._crawls.items()}
        accept = request.headers.get("accept", "")
        body, kind = await asyncio.to_thread(exposition, views, self._histograms, accept)
        return Response(body, headers={"content-type": kind})

    async def _count(self, name: str) -> None:
        """Count the new rows of a crawl, unless that was done in this second."""
        task = self._counting.get(name)
        if task is None or (task.done() and time.monotonic() >= self._next_at[name]):
            task = self._counting[name] = asyncio.create_task(asyncio.to_thread(self._read_new, name))
            self._next_at[name] = time.monotonic() + TICK_S
        await asyncio.wait([task], timeout=_WAIT_S)

    def _read_new(self, name: str) -> None:
        """Read what is new. A database that cannot be read keeps its counts; the view of the crawl says what is wrong."""
        try:
            with ExitStack() as stack:
                parts = [part for part in self._crawls[name].parts if (part / DATABASE).exists()]
                self._histograms[name].read_new(*(stack.enter_context(reading(part)) for part in parts))
        except (ConfigError, OSError, *WRONG_VALUES):
            pass
