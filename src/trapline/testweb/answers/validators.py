"""Validators: a page's ETag and Last-Modified, and whether a client's copy is still current (RFC 9110, 8.8 and 13).

    honest   both. The tag is strong, unless bytes that are not content differ from answer to answer
    weak     a weak tag only
    date     Last-Modified only
    fickle   a strong tag that differs with every answer, so that no copy is ever confirmed
    none     neither

Last-Modified has whole seconds, and two versions may fall into the same second. So Last-Modified is not sent before the
second of the last update is over. Then no other version has the same date, and If-Modified-Since is compared for equality.
"""

from email.utils import formatdate, parsedate_to_datetime
from math import floor
from typing import TYPE_CHECKING, NamedTuple

from trapline.testweb.answers.noise import token

if TYPE_CHECKING:
    from trapline.testweb.answers.message import Request
    from trapline.testweb.web.served_web import ServedWeb


class ServedValidators(NamedTuple):
    """The validators of one answer: an entity tag, "" for none, and a modification time, None for none."""

    tag: str = ""
    modified: int | None = None
    """seconds since 1970"""

    def fields(self) -> list[str]:
        tag = [f"ETag: {self.tag}"] if self.tag else []
        return tag if self.modified is None else [*tag, f"Last-Modified: {http_date(self.modified)}"]

    def confirm(self, request: "Request") -> bool:
        """Return whether the client's copy is this version: by If-None-Match if it is there, else by If-Modified-Since."""
        if request.none_match:
            given = [tag.strip() for tag in request.none_match.split(",")]
            return request.none_match == "*" or bool(self.tag and _opaque(self.tag) in map(_opaque, given))
        return self.modified is not None and _seconds(request.modified_since) == self.modified


def validators(web: "ServedWeb", page: int, now: float) -> ServedValidators:
    kind = web.behaviours[web.site[page]].validators
    if kind == "none":
        return ServedValidators()
    if kind == "fickle":
        return ServedValidators(f'"{token(web, page, now)[:16]}"')
    modified = floor(web.updated(page, now))
    noisy = web.changes is not None and web.changes.noise
    tag = f'{"W/" if noisy or kind == "weak" else ""}"{page:x}-{web.version(page, now):x}"'
    return ServedValidators(
        tag="" if kind == "date" else tag,
        modified=modified if kind != "weak" and modified < floor(now) else None,
    )


def http_date(at: float) -> str:
    return formatdate(at, usegmt=True)


def _opaque(tag: str) -> str:
    """Return the opaque part of a tag, which the weak comparison compares."""
    return tag.removeprefix("W/")


def _seconds(date: str) -> int | None:
    try:
        return int(parsedate_to_datetime(date).timestamp()) if date else None
    except (ValueError, OverflowError):
        return None
