"""What the endpoint answers: a status, a short text, and when to come again. It knows no request."""

import json
import math
from typing import Any, NamedTuple

MOST_RETRY_S = 3600.0


class Reply(NamedTuple):
    status: int
    body: bytes = b""
    kind: bytes = b"text/plain; charset=utf-8"
    retry_s: float = 0.0  # 0.0: it does not say
    close: bool = False  # what is still to come of the request is not wanted

    def headers(self) -> list[tuple[bytes, bytes]]:
        fields = [
            (b"content-type", self.kind),
            (b"content-length", b"%d" % len(self.body)),
            (b"x-content-type-options", b"nosniff"),  # a challenge is a stranger's text
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
