"""Answers of the dashboard's server: JSON, and the files of its pages."""

import hashlib
import json
import mimetypes
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

_SERVED = re.compile(r"[a-z0-9][a-z0-9_-]*\.(html|css|js|svg)")
_FOLDERS = ("views",)


def as_json(value: Any, status: int = 200) -> Response:
    """Return an answer in JSON, all of it ASCII: texts of strangers may have characters that UTF-8 cannot write."""
    return Response(json.dumps(value, allow_nan=False, separators=(",", ":")), status, media_type="application/json")


def refused(status: int, error: str) -> Response:
    return as_json({"error": error}, status)


def whole_number(request: Request, name: str, default: int, least: int, most: int) -> int:
    text = request.query_params.get(name, "")
    if not text:
        return default
    if not re.fullmatch("[0-9]{1,15}", text) or not least <= int(text):
        raise HTTPException(400, f"{name} must be a whole number of at least {least}")
    return min(int(text), most)


def real_number(request: Request, name: str) -> float | None:
    """Return a number that the request gives; None: it gives none."""
    text = request.query_params.get(name, "")
    if text and not re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,9})?", text):
        raise HTTPException(400, f"{name} must be a number")
    return float(text) if text else None


def one_of(request: Request, name: str, default: str, allowed: tuple[str, ...]) -> str:
    text = request.query_params.get(name, default)
    if text not in allowed:
        raise HTTPException(400, f"{name} must be one of: {', '.join(filter(None, allowed))}")
    return text


# ---- Files. All of them are read at the start, so that no request names a path on the disk.


class StaticFile(NamedTuple):
    body: bytes
    media_type: str
    tag: str

    def answer(self, request: Request) -> Response:
        headers = {"etag": self.tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=headers)
        return Response(self.body, media_type=self.media_type, headers=headers)


def static_files() -> Mapping[str, StaticFile]:
    """Return the files of the pages by name, and the style sheet of reports, which they share."""
    # Named from the top package, because the package `report` imports compiled code.
    style = (files("trapline") / "report" / "page.css").read_bytes()
    found = dict(_files_in(files("trapline.dashboard") / "static", ""))
    return {"page.css": _static_file("page.css", style), **found}


def _files_in(folder: Traversable, prefix: str) -> Iterator[tuple[str, StaticFile]]:
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.is_dir() and entry.name in _FOLDERS and not prefix:
            yield from _files_in(entry, f"{entry.name}/")
        elif entry.is_file() and _SERVED.fullmatch(entry.name):
            yield f"{prefix}{entry.name}", _static_file(entry.name, entry.read_bytes())


def _static_file(name: str, body: bytes) -> StaticFile:
    kind = mimetypes.types_map.get(f".{name.rpartition('.')[2]}", "application/octet-stream")
    kind = "text/javascript" if name.endswith(".js") else kind
    text = f"{kind}; charset=utf-8" if kind.startswith("text/") else kind
    return StaticFile(body, text, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
