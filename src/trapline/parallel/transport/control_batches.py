"""The binary format of a batch of control messages. This module knows the format, and not who sends the messages.

magic "TLL1" | zstd of a JSON list with one row per message: kind, URL, number, answer or null (bytes as the characters 0 to 255),
and a text
"""

import json
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import zstandard

from trapline.crawler.robots.site_robots import RobotsResponse
from trapline.errors import ConfigError
from trapline.fetch.urls import origin
from trapline.parallel.transport.url_batches import decode as links_in
from trapline.parallel.transport.url_batches import packed, unpacked

MAGIC = b"TLL1"


class MessageKind(IntEnum):
    """What a control message says about its URL. The numbers are stored on disk: add new ones, never reuse one."""

    LISTED_URL = 1  # a sitemap or a feed lists the URL, or a page or a robots.txt names it as a schedule
    REFETCHED_LINK = 2  # a page that was fetched again links to the URL; `number`: the depth of that page
    ASK = 3  # request for the response at the URL (a redirected robots.txt); `number`: the partition that asks
    ANSWER = 4  # the response at the URL; `number`: the partition that asked
    SEED = 5  # a seed redirects to the URL, so its host or domain is in scope; `number`: the number of redirects
    LIST = 6  # the URL is a sitemap or a feed, which speaks for the sites `text`; `number`: its level
    REQUISITE = 7  # a page needs the file at the URL, as `text` (an image, a script, ...); `number`: its level


NOT_BY_SITE = (MessageKind.ANSWER, MessageKind.SEED)  # addressed to a partition, not to the owner of the URL's site


class ControlMessage(NamedTuple):
    kind: int
    url: str
    number: int = 0
    answer: RobotsResponse | None = None
    text: str = ""

    @property
    def size(self) -> int:
        return len(self.url) + (len(self.answer.body) if self.answer else 0)


def encode(messages: Sequence[ControlMessage]) -> bytes:
    """Return the bytes of a batch of control messages.

    >>> response = RobotsResponse(200, "", None, b"\\xff", None, None)
    >>> messages = [ControlMessage(MessageKind.ANSWER, "http://a/robots.txt", 2, response)]
    >>> decode(encode(messages)) == messages
    True
    """
    rows = [(*message[:3], message.answer and _as_text(message.answer), message.text) for message in messages]
    return MAGIC + packed(json.dumps(rows).encode())


def _as_text(answer: RobotsResponse) -> list[object]:
    return [part.decode("latin-1") if isinstance(part, bytes) else part for part in answer]


def decode(data: bytes) -> list[ControlMessage] | None:
    """Return the control messages of a batch, or None if the data is a batch of another kind. Raises `ConfigError` if
    it is damaged."""
    if data[:4] != MAGIC:
        return None
    try:
        return [_message(row) for row in json.loads(unpacked(data[4:]))]
    except (zstandard.ZstdError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"a batch of control messages is damaged: {error}") from error


def _message(row: Sequence[object]) -> ControlMessage:
    kind, url, number, answer, text = row
    are_texts = isinstance(url, str) and isinstance(text, str)
    if not (isinstance(kind, int) and isinstance(number, int) and are_texts):
        raise ValueError("a row is not a control message")
    if not isinstance(answer, list):
        return ControlMessage(kind, str(url), number, None, str(text))
    response = RobotsResponse(*answer)
    answer_received = response._replace(body=str(response.body).encode("latin-1"))
    return ControlMessage(kind, str(url), number, answer_received, str(text))


def sites_in(data: bytes) -> set[str]:
    """Return the sites whose URLs are in a message batch, be it of control messages or of links."""
    messages = decode(data)
    if messages is None:
        return {origin(row.url.decode(errors="replace")) for row in links_in(data).rows}
    return {origin(message.url) for message in messages if message.kind not in NOT_BY_SITE}
