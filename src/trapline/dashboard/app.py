"""The dashboard as an ASGI application: its routes. `Access` checks every request before it comes here.

A route reads its parameters, calls one reader in a thread, and answers with JSON. It never waits for the disk in the event loop.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from trapline.crawler.files.event_log import LEVELS
from trapline.dashboard.actions import send_action
from trapline.dashboard.answers import as_json, one_of, real_number, refused, static_files, whole_number
from trapline.dashboard.detail_views import MOST_POINTS, history, partitions, site_page
from trapline.dashboard.event_stream import EventStream
from trapline.dashboard.events import EventFilter, LogTail, events
from trapline.dashboard.job_runner import JobRunner
from trapline.dashboard.metrics import Scraping
from trapline.dashboard.overview import CrawlReading, live_status, progress_of
from trapline.dashboard.site_index import FILTERS, PER_PARTITION, SORTS
from trapline.dashboard.watched_crawl import WatchedCrawl
from trapline.errors import ConfigError
from trapline.terminal import say

_MOST_URL = 4_000


class _NumberConvertor(IntegerConvertor):
    """A number in a path. Python refuses to convert thousands of digits."""

    regex = "[0-9]{1,18}"


register_url_convertor("number", _NumberConvertor())


def make_app(crawls: Sequence[WatchedCrawl], jobs: JobRunner, can_act: bool, closing: asyncio.Event) -> Starlette:
    """Return the application. `closing`: set when the server ends, so that streams end too."""
    return Starlette(routes=DashboardRoutes(crawls, jobs, can_act, closing).all(), exception_handlers=_ERRORS)


def make_metrics_app(crawls: Sequence[WatchedCrawl]) -> Starlette:
    """Return an application that has only the metrics."""
    return Starlette(routes=[Route("/metrics", Scraping(crawls).answer)], exception_handlers=_ERRORS)


async def _refuse_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return refused(error.status_code, error.detail)


async def _refuse_config(request: Request, error: Exception) -> Response:
    return refused(409, str(error))


async def _refuse_defect(request: Request, error: Exception) -> Response:
    say(f"trapline: error: {request.url.path}: {type(error).__name__}: {error}", err=True)
    return refused(500, "internal error of the dashboard; see its terminal")


_ERRORS = {HTTPException: _refuse_http, ConfigError: _refuse_config, Exception: _refuse_defect}


class DashboardRoutes:
    def __init__(self, crawls: Sequence[WatchedCrawl], jobs: JobRunner, can_act: bool, closing: asyncio.Event) -> None:
        self._crawls, self._jobs, self._can_act = crawls, jobs, can_act
        self._files, self._scraping = static_files(), Scraping(crawls)
        self._streams = [EventStream(crawl, LogTail(crawl.folder), closing) for crawl in crawls]

    def all(self) -> list[Route]:
        views = {
            "overview": self._overview,
            "history": self._history,
            "stream": self._stream,
            "sites": self._sites,
            "sites/{site:number}": self._site,
            "explain": self._explain,
            "quality": self._quality,
            "refresh": self._refresh,
            "partitions": self._partitions,
            "events": self._events,
        }
        return [
            Route("/", self._index),
            Route("/static/{name:path}", self._static),
            Route("/metrics", self._scraping.answer),
            Route("/api/crawls", self._list_crawls),
            *(Route(f"/api/{{crawl:number}}/{path}", handler) for path, handler in views.items()),
            Route("/api/{crawl:number}/actions", self._act, methods=["POST"]),
        ]

    def _crawl(self, request: Request) -> WatchedCrawl:
        number = request.path_params["crawl"]
        if number >= len(self._crawls):
            raise HTTPException(404, f"there is no crawl {number}")
        return self._crawls[number]

    async def _read(self, request: Request) -> tuple[WatchedCrawl, CrawlReading]:
        """Return the crawl of a request, as it is now. Raise `HTTPException` if it cannot be read."""
        crawl = self._crawl(request)
        view = await crawl.tick()
        if view.reading is None:
            raise HTTPException(409, view.overview["error"])
        return crawl, view.reading

    # Pages

    async def _index(self, request: Request) -> Response:
        return self._file(request, "index.html")

    async def _static(self, request: Request) -> Response:
        return self._file(request, request.path_params["name"])

    def _file(self, request: Request, name: str) -> Response:
        if name not in self._files:
            raise HTTPException(404, "there is no such file")
        return self._files[name].answer(request)

    # The crawl as a whole

    async def _list_crawls(self, request: Request) -> Response:
        return as_json([await self._listed(number, crawl) for number, crawl in enumerate(self._crawls)])

    async def _listed(self, number: int, crawl: WatchedCrawl) -> dict[str, Any]:
        view = await crawl.tick()
        options = view.reading.options if view.reading else {}
        return {
            "id": number,
            "name": crawl.name,
            "folder": str(crawl.folder),
            "state": view.overview["state"],
            "partitions": view.reading.partitions if view.reading else 1,
            "refresh": options.get("refresh") is not None,
            "can_act": self._can_act,
        }

    async def _overview(self, request: Request) -> Response:
        return as_json((await self._crawl(request).tick()).overview)

    async def _history(self, request: Request) -> Response:
        points = whole_number(request, "points", 400, 2, MOST_POINTS)
        crawl, reading = await self._read(request)
        live = live_status(reading)
        progress = progress_of(live) if live else None
        return as_json(await asyncio.to_thread(history, crawl.parts, points, progress))

    async def _stream(self, request: Request) -> Response:
        self._crawl(request).prepare_sites()
        stream = self._streams[request.path_params["crawl"]]
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        if stream.is_full:
            return refused(503, "too many browsers show this crawl")
        return StreamingResponse(stream.subscribe(), media_type="text/event-stream")

    async def _partitions(self, request: Request) -> Response:
        _, reading = await self._read(request)
        return as_json(await asyncio.to_thread(partitions, reading))

    async def _events(self, request: Request) -> Response:
        level, count = one_of(request, "level", "info", LEVELS), whole_number(request, "n", 100, 1, 1000)
        kind, site = (request.query_params.get(name, "") for name in ("kind", "site"))
        wanted = EventFilter(level, kind, site.lower(), real_number(request, "before"))
        crawl, _ = await self._read(request)
        return as_json(await asyncio.to_thread(events, crawl.folder, crawl.parts, wanted, count))

    # Sites

    async def _sites(self, request: Request) -> Response:
        sort = one_of(request, "sort", "waiting", SORTS)
        descending = one_of(request, "dir", "desc", ("asc", "desc")) == "desc"
        only, q = one_of(request, "filter", "", FILTERS), request.query_params.get("q", "").strip()
        first = whole_number(request, "from", 0, 0, 10**12)
        count = whole_number(request, "n", 100, 1, 1000)
        crawl, _ = await self._read(request)
        index = await crawl.sites()
        return as_json(await asyncio.to_thread(index.page, q, sort, descending, first, count, only))

    async def _site(self, request: Request) -> Response:
        crawl, reading = await self._read(request)
        index = await crawl.sites()
        row = index.row_of(request.path_params["site"])
        if row is None:
            raise HTTPException(404, "the crawl has no such site")
        part, site = divmod(row["id"], PER_PARTITION)
        page = await asyncio.to_thread(site_page, index.readers[part], site, reading.options)
        return as_json({**row, **page})

    # Answers of jobs

    async def _explain(self, request: Request) -> Response:
        url = request.query_params.get("url", "").strip()
        if not url or len(url) > _MOST_URL or url.startswith("-") or not url.isprintable():
            raise HTTPException(400, "give the URL of a page, or a site such as example.org")
        return await self._job(request, "explain_url", url, fresh_s=5.0)

    async def _quality(self, request: Request) -> Response:
        return await self._job(request, "quality_curve", fresh_s=60.0, timeout_s=600.0)

    async def _refresh(self, request: Request) -> Response:
        _, reading = await self._read(request)
        if reading.options.get("refresh") is None:
            raise HTTPException(404, "the crawl fetches every page once; --refresh or --continuous refetches pages")
        return await self._job(request, "refresh_view", fresh_s=30.0)

    async def _job(self, request: Request, job: str, *words: str, fresh_s: float, timeout_s: float = 120.0) -> Response:
        crawl, _ = await self._read(request)
        answer = await self._jobs.soon(job, str(crawl.folder), *words, fresh_s=fresh_s, timeout_s=timeout_s)
        return as_json({"job": job}, 202) if answer is None else as_json(answer)

    # Actions

    async def _act(self, request: Request) -> Response:
        if not self._can_act:
            return refused(403, "the dashboard was started with --read-only")
        crawl, body = self._crawl(request), await request.body()
        client = request.client.host if request.client else "unknown"
        return as_json({"answer": await asyncio.to_thread(send_action, crawl.folder, body, client)})
