"""Lines in the format of Heritrix' crawl.log, which existing tools read: twelve fields, separated by spaces.

Time of logging; status, at least 5 wide; size of the body, at least 10 wide; URI; discovery path; via; media type; #thread; begin of the
request and milliseconds; digest; source tag; annotations. A field that is not known is "-", and no field contains a space.

Differences: every hop of a path is L (a link), also that of a redirect; the thread is the number of the visit, modulo 1000.
"""

import re
from datetime import UTC, datetime
from typing import NamedTuple

from trapline.crawler.engine.records import BLOCKED
from trapline.crawler.engine.row_kinds import REFUSED
from trapline.crawler.files.event_log import utc
from trapline.crawler.store import warc
from trapline.fetch import failure

NOTHING = "-"
_MOST_HOPS = 50  # of a path; earlier ones are counted only
_FORBIDDEN, _NO_ROBOTS, _BLOCKED, _NO_ADDRESS, _KILLED = -9998, -61, -5001, -1, -7000
_NO_ANSWER, _UNEXPECTED = -4, -5
_STATUS = {
    failure.DNS: _NO_ADDRESS,
    failure.ADDRESS: _BLOCKED,
    failure.CONNECT: -2,
    failure.TLS: -2,
    failure.CLOSED: -3,
    failure.TIMEOUT: _NO_ANSWER,
    failure.ROBOTS: _NO_ROBOTS,
    failure.STOPPED: _KILLED,
}
_TRUNCATED = {"length": "lenTrunc", "time": "timeTrunc"}
_REVISIT = {warc.IDENTICAL: "warcRevisit:digest", warc.NOT_MODIFIED: "warcRevisit:notModified"}
_NOT_IN_A_FIELD = re.compile(r"[^\x21-\x7e]")


class LoggedFetch(NamedTuple):
    at: float  # wall clock: when the line is written
    status: int  # as Heritrix numbers it
    size: int | None  # of the body; None: there was no answer
    url: str
    path: str = NOTHING
    via: str = NOTHING
    mime: str = ""
    visit: int = 0
    began: float | None = None  # wall clock; None: no request was sent
    took_s: float = 0.0
    digest: bytes | None = None
    annotations: tuple[str, ...] = ()

    def line(self) -> bytes:
        size = NOTHING if self.size is None else str(self.size)
        timing = NOTHING if self.began is None else f"{_digits(self.began)}+{round(self.took_s * 1000)}"
        digest = NOTHING if self.digest is None else f"sha1:{warc.base32(self.digest)}"
        mime = self.mime or ("no-type" if self.size is not None else "unknown")
        fields = (
            *(utc(self.at), f"{self.status:5d}", f"{size:>10}", _field(self.url), self.path, _field(self.via)),
            *(_field(mime), f"#{self.visit % 1000:03d}", timing, digest, NOTHING),
        )
        return f"{' '.join(fields)} {','.join(self.annotations) or NOTHING}\n".encode("ascii")


def status_of(status: int, error: str, result: int) -> int:
    """Return the status of HTTP, or the negative number that Heritrix has for the failure.

    >>> status_of(404, "http", 6), status_of(0, "timeout", 5), status_of(0, "robots", 6), status_of(0, "robots", -2)
    (404, -4, -9998, -61)
    """
    if status:
        return status
    if error == failure.ROBOTS and result == REFUSED:
        return _FORBIDDEN
    return _STATUS.get(error, _UNEXPECTED)


def status_of_abandoned(kind: str) -> int | None:
    """Return the status of a site that was abandoned without a request. None: its requests have lines of their own."""
    return {failure.DNS: _NO_ADDRESS, failure.ADDRESS: _BLOCKED, BLOCKED: _BLOCKED}.get(kind)


def path_of(depth: int, last: str = "") -> str:
    """Return the discovery path of a page.

    >>> path_of(0), path_of(3), path_of(1, "P"), path_of(51)[:5], len(path_of(51))
    ('-', 'LLL', 'LP', '1+LLL', 52)
    """
    hops = "L" * depth + last
    more = len(hops) - _MOST_HOPS
    return (f"{more}+{hops[-_MOST_HOPS:]}" if more > 0 else hops) or NOTHING


def annotations_of(truncated: str, profile: str) -> tuple[str, ...]:
    return tuple(word for word in (_TRUNCATED.get(truncated, ""), _REVISIT.get(profile, "")) if word)


def _digits(at: float) -> str:
    """Return a time in 17 digits.

    >>> _digits(1.5)
    '19700101000001500'
    """
    moment = datetime.fromtimestamp(at, UTC)
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"


def _field(text: str) -> str:
    """Return the text as one field of printing characters: others are percent-encoded."""
    return _NOT_IN_A_FIELD.sub(lambda found: "".join(f"%{byte:02X}" for byte in _bytes(found[0])), text)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
