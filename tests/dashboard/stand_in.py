"""A server that stands in for the dashboard's own: the static pages with the real headers, recorded JSON, and a stream that
changes every tenth of a second. Tests of the pages use it, because they need no crawl."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SAMPLE = Path(__file__).parent / "sample"
STATIC = Path(str(files("trapline"))) / "dashboard" / "static"
PAGE_CSS = Path(str(files("trapline"))) / "report" / "page.css"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

KEPT = {"state", "goal", "x_unit", "source", "level"}  # words of the server that decide what a page shows


def sample(name: str) -> Any:
    return json.loads((SAMPLE / f"{name}.json").read_text())


@dataclass
class StandIn:
    """What the server answers. Tests change it while it runs."""

    url: str = ""
    token: str = ""
    crawls: list[dict[str, Any]] = field(default_factory=lambda: sample("crawls"))
    overview: dict[str, Any] = field(default_factory=lambda: sample("overview"))
    history: dict[str, Any] = field(default_factory=lambda: sample("history"))
    sites: list[dict[str, Any]] = field(default_factory=lambda: sample("sites"))
    events: list[dict[str, Any]] = field(default_factory=lambda: sample("events"))
    fresh_events: list[dict[str, Any]] = field(default_factory=list)
    actions: list[dict[str, Any]] = field(default_factory=list)
    hostile: str = ""  # added to every text that is not a state
    refusal: str = ""  # the sentence with which actions are refused
    is_silent: bool = False  # streams end, and new ones are refused
    jobs: set[str] = field(default_factory=set)  # URLs that were answered with 202 before

    def tick(self) -> dict[str, Any]:
        """Return the numbers of one moment; each moment has more pages than the one before."""
        now, totals = self.overview, self.overview["totals"]
        if now["state"] == "running" and not now["paused"]:
            totals["pages"] += 6
            totals["bytes"] += 54_000
            totals["waiting"] = max(0, totals["waiting"] - 6)
            now["seconds"] += 0.1
        now["at"] = time.time()
        return now

    def spoiled(self, value: Any) -> Any:
        """Return an answer with the hostile text in every name and text."""
        if not self.hostile:
            return value
        if isinstance(value, dict):
            return {name: one if name in KEPT else self.spoiled(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self.spoiled(one) for one in value]
        return value + self.hostile if isinstance(value, str) else value

    async def stream(self) -> AsyncIterator[bytes]:
        while not self.is_silent:
            yield _frame("status", self.spoiled(self.tick()))
            if self.fresh_events:
                yield _frame("log", self.spoiled(self.fresh_events))
                self.fresh_events = []
            await asyncio.sleep(0.1)

    def page_of_sites(self, wanted: dict[str, str]) -> dict[str, Any]:
        rows = [row for row in self.sites if wanted.get("q", "").lower() in row["origin"].lower()]
        if kind := wanted.get("filter"):
            rows = [row for row in rows if row["state"] == kind or (kind == "waiting" and row["waiting"])]
        key, first = wanted.get("sort", "waiting"), int(wanted.get("from", 0))
        rows.sort(key=lambda row: (row[key] is None, row[key] or 0 if key != "origin" else row[key]))
        rows = rows[::-1] if wanted.get("dir", "desc") == "desc" else rows
        return {
            "total": len(self.sites),
            "matching": len(rows),
            "from": first,
            "at": time.time(),
            "source": "live",
            "rows": rows[first : first + int(wanted.get("n", 100))],
        }

    def page_of_events(self, wanted: dict[str, str]) -> dict[str, Any]:
        levels = ["error", "warning", "info", "debug"]
        allowed = levels[: levels.index(wanted.get("level", "info")) + 1]
        found = [
            event
            for event in self.events
            if event["level"] in allowed
            and wanted.get("kind", event["event"]) == event["event"]
            and wanted.get("site", "") in event.get("site", "")
        ]
        kinds = sorted({event["event"] for event in self.events})
        return {"events": found, "next": None, "kinds": kinds}

    def take(self, action: dict[str, Any]) -> JSONResponse:
        if self.refusal:
            return JSONResponse({"error": self.refusal}, 409)
        self.actions.append(action)
        if action["action"] in ("pause", "continue"):
            self.overview["paused"] = action["action"] == "pause"
        return JSONResponse({"answer": f"Done: {action['action']}."})


def _frame(kind: str, data: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()


class _Headers:
    """Adds the headers of the real server to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] += [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            await send(message)

        await self.app(scope, receive, with_headers)


def _static(request: Request) -> Response:
    name = request.path_params.get("name", "index.html")
    file = PAGE_CSS if name == "page.css" else STATIC / name
    known = {path for path in STATIC.rglob("*") if path.is_file()} | {PAGE_CSS}
    return Response(file.read_bytes(), media_type=TYPES[file.suffix]) if file in known else Response(status_code=404)


def make_app(world: StandIn) -> Starlette:
    async def login(request: Request) -> Response:
        if (await request.json())["token"] != world.token:
            return JSONResponse({"error": "The token is wrong."}, 401)
        answer = Response(status_code=204)
        answer.set_cookie("trapline-test", world.token, httponly=True, samesite="strict")
        return answer

    async def view(request: Request) -> Response:
        if world.token and request.cookies.get("trapline-test") != world.token:
            return JSONResponse({"error": "A token is needed."}, 401)
        name, wanted = request.path_params["name"], dict(request.query_params)
        if name == "stream":
            return (
                Response(status_code=503)
                if world.is_silent
                else StreamingResponse(world.stream(), media_type="text/event-stream")
            )
        if name == "actions":
            return world.take(await request.json())
        if name == "explain":
            return _explained(wanted.get("url", ""))
        if name.startswith("sites/"):
            return JSONResponse(world.spoiled({**world.sites[int(name[6:])], **sample("site")}))
        answers = {
            "overview": lambda: world.overview,
            "history": lambda: world.history,
            "sites": lambda: world.page_of_sites(wanted),
            "events": lambda: world.page_of_events(wanted),
        }
        return JSONResponse(world.spoiled(answers[name]() if name in answers else sample(name)))

    def _explained(url: str) -> Response:
        if url not in world.jobs:
            world.jobs.add(url)
            return JSONResponse({"job": "explain"}, 202)
        if "unknown" in url:
            return JSONResponse({"error": "The crawl does not know this URL."}, 409)
        return JSONResponse(world.spoiled(sample("explain")))

    def all_crawls(request: Request) -> Response:
        if world.token and request.cookies.get("trapline-test") != world.token:
            return JSONResponse({"error": "A token is needed."}, 401)
        return JSONResponse(world.spoiled(world.crawls))

    routes = [
        Route("/", _static),
        Route("/static/{name:path}", _static),
        Route("/api/login", login, methods=["POST"]),
        Route("/api/crawls", all_crawls),
        Route("/api/{crawl:int}/{name:path}", view, methods=["GET", "POST"]),
    ]
    return Starlette(routes=routes, middleware=[Middleware(_Headers)])


@contextmanager
def stand_in(port: int = 0) -> Iterator[StandIn]:
    """Serve a stand-in on loopback, in a thread."""
    world = StandIn()
    listener = socket.create_server(("127.0.0.1", port))
    world.url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    config = uvicorn.Config(
        make_app(world), lifespan="off", ws="none", log_level="warning", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield world
    finally:
        world.is_silent = True
        server.should_exit = True
        thread.join()
        listener.close()
