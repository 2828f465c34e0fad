"""Replies of the endpoint: a status, a short text, and when to retry. The module knows no requests."""

import json
import math
from typing import Any, NamedTuple

MOST_RETRY_S = 3600.0


class Reply(NamedTuple):
    status: int
    body: bytes = b""
    kind: bytes = b"text/plain; charset=utf-8"
    retry_s: float = 0.0  # 0.0: no Retry-After header
    close: bool = False  # close the connection, without reading the rest of the request

    def headers(self) -> list[tuple[bytes, bytes]]:
        fields = [
            (b"content-type", self.kind),
            (b"content-length", b"%d" % len(self.body)),
            (b"x-content-type-options", b"nosniff"),  # the body may be a hub's challenge, which is a stranger's text
        ]
        if self.retry_s:
            fields.append((b"retry-after", b"%d" % math.ceil(min(self.retry_s, MOST_RETRY_S))))
        if self.close:
            fields.append((b"connection", b"close"))
        return fields


def said(status: int, text: str) -> Reply:
    return Reply(status, f"{text}\n".encode())


def too_many(wait_s: float) -> Reply:
    return Reply(429, b"too many\n", retry_s=max(wait_s, 1.0))


def as_json(value: Any) -> Reply:
    return Reply(200, json.dumps(value, indent=1).encode() + b"\n", b"application/json")


DONE = said(200, "ok")
TAKEN = said(202, "accepted")
NOT_FOUND = said(404, "not found")
GONE = said(410, "gone")
NOT_WRITTEN = Reply(503, b"could not be written\n", retry_s=60.0)
