"""What a page says of its version in ETag and Last-Modified, and whether a client's copy is still it (RFC 9110, 8.8 and 13).

    honest   both. The tag is strong, unless bytes that are no content differ from answer to answer
    weak     a weak tag alone
    date     Last-Modified alone
    fickle   a strong tag that differs with every answer: nothing is ever confirmed
    none     neither

A date has whole seconds, and two versions may fall into one. Last-Modified is therefore not said before the second of the last update
is over; then no other version has it, and If-Modified-Since is compared for equality. It makes no body and knows no site's reasons.
"""

from email.utils import formatdate, parsedate_to_datetime
from math import floor
from typing import TYPE_CHECKING, NamedTuple

from trapline.testweb.noise import token

if TYPE_CHECKING:
    from trapline.testweb.request import Request
    from trapline.testweb.web import Web

VALIDATORS = ("honest", "weak", "date", "fickle", "none")


class Validators(NamedTuple):
    tag: str = ""
    modified: int | None = None
    """seconds since 1970"""

    def fields(self) -> list[str]:
        tag = [f"ETag: {self.tag}"] if self.tag else []
        return tag if self.modified is None else [*tag, f"Last-Modified: {http_date(self.modified)}"]

    def confirm(self, request: "Request") -> bool:
        """Whether the client's copy is this version: by its tags if it names any, else by its date."""
        if request.none_match:
            given = [one.strip() for one in request.none_match.split(",")]
            return request.none_match == "*" or bool(self.tag and _opaque(self.tag) in map(_opaque, given))
        return self.modified is not None and _seconds(request.modified_since) == self.modified


def validators(web: "Web", page: int, now: float) -> Validators:
    kind = web.behaviours[web.site[page]].validators
    if kind == "none":
        return Validators()
    if kind == "fickle":
        return Validators(f'"{token(web, page, now)[:16]}"')
    modified = floor(web.updated(page, now))
    noisy = web.changes is not None and web.changes.noise
    tag = f'{"W/" if noisy or kind == "weak" else ""}"{page:x}-{web.version(page, now):x}"'
    return Validators(
        tag="" if kind == "date" else tag,
        modified=modified if kind != "weak" and modified < floor(now) else None,
    )


def http_date(at: float) -> str:
    return formatdate(at, usegmt=True)


def _opaque(tag: str) -> str:
    """What the weak comparison compares."""
    return tag.removeprefix("W/")


def _seconds(date: str) -> int | None:
    try:
        return int(parsedate_to_datetime(date).timestamp()) if date else None
    except (ValueError, OverflowError):
        return None
