"""The calls of URLFrontier. Each is a method with the name of the call; docs/how-to/urlfrontier.md says what each does here."""

import asyncio
import math
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any, NoReturn

import grpc

from trapline.durable.pages import HandedOut, ScheduledPage
from trapline.durable.scheduled import MOST_PAGES, ScheduledFrontier
from trapline.urlfrontier.crawls import Crawls
from trapline.urlfrontier.intake import PutIntake, serve_stream
from trapline.urlfrontier.items import crawl_of, host_of, info_of, item_of, page_of
from trapline.urlfrontier.messages import (
    AckMessage,
    BatchAck,
    Boolean,
    Empty,
    Long,
    QueueList,
    Stats,
    StringList,
)

_HOLD_S = 30  # of a reservation, by default
_LISTED = 100  # by default
_ROUND_QUEUES, _ROUND_URLS = 1_000, 10_000  # that GetURLs reserves at one moment
_READ = 500  # URLs that are read at a time


class FrontierService:
    def __init__(self, crawls: Crawls, address: str, quality_key: str = "") -> None:
        self._crawls, self.address, self._quality_key = crawls, address, quality_key
        self.intake = PutIntake(crawls)
        self._turn = 0

    # ---- URLs in and out

    async def PutURLs(self, requests: Any, context: Any) -> None:
        async def write(identifier: str, statuses: list[int]) -> None:
            await context.write(AckMessage(ID=identifier, status=statuses[0]))

        await serve_stream(requests, self.intake, self._put_item, write)

    def _put_item(self, item: Any) -> tuple[str, list[Any]]:
        kind = item.WhichOneof("item")
        if kind == "discovered":
            return item.ID, [page_of(item.discovered.info, None, self._quality_key)]
        if kind == "known":
            known = item.known
            return item.ID, [page_of(known.info, known.refetchable_from_date, self._quality_key)]
        return item.ID, [None]

    async def PutDiscovered(self, requests: Any, context: Any) -> None:
        async def write(identifier: str, statuses: list[int]) -> None:
            await context.write(BatchAck(ID=identifier, statuses=statuses))

        def put_batch(batch: Any) -> tuple[str, list[Any]]:
            return batch.ID, [page_of(info, None, self._quality_key) for info in batch.items]

        await serve_stream(requests, self.intake, put_batch, write)

    async def GetURLs(self, request: Any, context: Any) -> None:
        if not self._crawls.is_active:
            return
        most, hold_s = min(request.max_urls_per_queue or MOST_PAGES, MOST_PAGES), request.delay_requestable or _HOLD_S
        left = request.max_queues or math.inf
        is_one = request.WhichOneof("item") == "crawlID"
        served: dict[str, tuple[float, set[str]]] = {}
        while left > 0:
            crawls = [crawl_of(request.crawlID)] if is_one else self._in_turn()
            queues = int(min(left, max(1, _ROUND_URLS // most), _ROUND_QUEUES))
            found = self._reserve(crawls, queues, request.key or None, most, hold_s, served)
            if not found:
                break
            left -= sum(len(handed) for *_, handed in found)
            for crawl, frontier, handed in found:
                pages, encoded = [page for one in handed for page in one.pages], crawl.encode()
                for at in range(0, len(pages), _READ):
                    if self._crawls.get(crawl) is not frontier:  # it was deleted
                        break
                    for page in frontier.listed(pages[at : at + _READ]):
                        await context.write(info_of(page, encoded))
            if request.key:
                break

    def _in_turn(self) -> list[str]:
        """Return all crawl ids; another one is first each time."""
        crawls = list(self._crawls)
        self._turn += 1
        start = self._turn % len(crawls) if crawls else 0
        return crawls[start:] + crawls[:start]

    def _reserve(
        self,
        crawls: list[str],
        queues: int,
        key: str | None,
        most: int,
        hold_s: float,
        served: dict[str, tuple[float, set[str]]],
    ) -> list[tuple[str, ScheduledFrontier, list[HandedOut]]]:
        """Reserve URLs of up to this number of queues, and commit that. Each crawl gets about the same share. `served`: of each crawl, when
        the call reached it, and the queues that were given since then."""
        found: list[tuple[str, ScheduledFrontier, list[HandedOut]]] = []
        left = queues
        for place, crawl in enumerate(crawls):
            frontier = self._crawls.get(crawl)
            share = -(-left // (len(crawls) - place))
            if frontier is None or share < 1:
                continue
            frontier.catch_up()
            moment, seen = served.setdefault(crawl, (frontier.now, set()))
            handed = frontier.hand_out(most, hold_s, share, key, served=seen, moment=moment)
            if handed:
                frontier.commit()
                seen.update(one.site for one in handed)
                found.append((crawl, frontier, handed))
                left -= len(handed)
        return found

    # ---- queues

    async def ListQueues(self, request: Any, context: Any) -> Any:
        frontier = self._crawls.get(crawl_of(request.crawlID))
        names = frontier.site_names(request.include_inactive) if frontier is not None else []
        start, size = request.start, request.size or _LISTED
        values = names[start : start + size]
        return QueueList(
            values=values, total=len(names), start=start, size=len(values), crawlID=crawl_of(request.crawlID)
        )

    async def BlockQueueUntil(self, request: Any, context: Any) -> Any:
        return await self._change(request, context, lambda frontier: frontier.block(request.key, request.time))

    async def SetDelay(self, request: Any, context: Any) -> Any:
        delay_s = min(request.delay_requestable, 10**9)  # the most that the frontier takes
        return await self._change(request, context, lambda frontier: frontier.set_delay(request.key, delay_s))

    async def SetCrawlLimit(self, request: Any, context: Any) -> Any:
        return await self._change(request, context, lambda frontier: frontier.limit(request.key, request.limit))

    async def _change(self, request: Any, context: Any, change: Callable[[ScheduledFrontier], None]) -> Any:
        """Change one queue, and answer when that is on disk."""
        if not request.key or request.key[0] < " ":
            await _refuse(context, "key: is empty or begins with a control character; name a queue")
        frontier = self._crawls.get_or_make(crawl_of(request.crawlID))
        change(frontier)
        frontier.commit(sync=True)
        return Empty()

    async def DeleteQueue(self, request: Any, context: Any) -> Any:
        frontier = self._crawls.get(crawl_of(request.crawlID))
        removed = 0
        if frontier is not None:
            removed = frontier.remove_site(request.key)
            frontier.commit(sync=True)
        return Long(value=removed)

    # ---- crawls and the service

    async def ListCrawls(self, request: Any, context: Any) -> Any:
        return StringList(values=list(self._crawls))

    async def DeleteCrawl(self, request: Any, context: Any) -> Any:
        return Long(value=self._crawls.delete(crawl_of(request.value)))

    async def ListNodes(self, request: Any, context: Any) -> Any:
        return StringList(values=[self.address])

    async def SetActive(self, request: Any, context: Any) -> Any:
        self._crawls.set_active(request.state)
        return Empty()

    async def GetActive(self, request: Any, context: Any) -> Any:
        return Boolean(state=self._crawls.is_active)

    async def SetLogLevel(self, request: Any, context: Any) -> Any:
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "SetLogLevel: this service has no log levels")

    # ---- inspection

    async def GetStats(self, request: Any, context: Any) -> Any:
        crawls = [crawl_of(request.crawlID)] if request.crawlID or request.key else list(self._crawls)
        frontiers = [frontier for frontier in map(self._crawls.get, crawls) if frontier is not None]
        counts = [frontier.counts(request.key or None) for frontier in frontiers]
        known, done, reserved, queues = (
            (sum(numbers) for numbers in zip(*counts, strict=True)) if counts else (0, 0, 0, 0)
        )
        return Stats(
            size=known - done,
            inProcess=reserved,
            counts={"completed": done, "active": known - done},
            numberOfQueues=queues,
            crawlID=request.crawlID,
        )

    async def GetURLStatus(self, request: Any, context: Any) -> Any:
        crawl = crawl_of(request.crawlID)
        frontier, key = self._crawls.get(crawl), request.key or host_of(request.url)
        page = frontier.page(request.url, key) if frontier is not None and key else None
        if page is None:
            await _refuse(context, "URL: is not known in this queue", grpc.StatusCode.NOT_FOUND)
        return item_of(page, crawl)

    async def ListURLs(self, request: Any, context: Any) -> None:
        crawl, start = crawl_of(request.crawlID), request.start
        async for page in self._listed(request, start, start + (request.size or _LISTED)):
            await context.write(item_of(page, crawl).SerializeToString())

    async def CountURLs(self, request: Any, context: Any) -> Any:
        if not request.filter:
            frontier = self._crawls.get(crawl_of(request.crawlID))
            return Long(value=len(frontier.pages(request.key or None)) if frontier is not None else 0)
        return Long(value=sum([1 async for _ in self._listed(request, 0, sys.maxsize)]))

    async def _listed(self, request: Any, start: int, end: int) -> AsyncIterator[ScheduledPage]:
        """Yield the URLs of a queue or crawl in which the filter occurs, from number `start` to before `end`. Other calls are served in
        between."""
        frontier = self._crawls.get(crawl_of(request.crawlID))
        if frontier is None:
            return
        wanted, place = _contains(request.filter, request.ignoreCase), 0
        pages = frontier.pages(request.key or None)
        if not request.filter:
            pages, place = pages[start:end], start
        for at in range(0, len(pages), _READ):
            if self._crawls.get(crawl_of(request.crawlID)) is not frontier:  # it was deleted
                return
            for page in filter(lambda page: wanted(page.url), frontier.listed(pages[at : at + _READ].tolist())):
                if place >= start:
                    yield page
                place += 1
                if place >= end:
                    return
            await asyncio.sleep(0)

    async def PurgeURLs(self, request: Any, context: Any) -> Any:
        frontier = self._crawls.get(crawl_of(request.crawlID))
        removed = 0
        if frontier is not None:
            removed = frontier.remove_older(self._crawls.now() - 86_400 * request.days, request.key or None)
            frontier.commit(sync=True)
        return Long(value=removed)


def _contains(text: str, ignores_case: bool) -> Callable[[str], bool]:
    if ignores_case:
        lower = text.lower()
        return lambda url: lower in url.lower()
    return lambda url: text in url


async def _refuse(context: Any, reason: str, status: Any = grpc.StatusCode.INVALID_ARGUMENT) -> NoReturn:
    await context.abort(status, reason)
    raise AssertionError("abort raises")
