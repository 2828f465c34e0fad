"""A response, and the parser of its head: status, headers, how the body ends, whether the connection stays open.

Pure functions of one head's bytes; http1.py finds the end of the head. Part of step 5 in docs/architecture.md. The parser is as lenient
as browsers where nothing is at stake, and strict where a wrong guess could confuse one response with another.
"""

import re
from dataclasses import dataclass

from trapline.fetch.failure import PROTOCOL, TOO_LARGE

# Some servers write 0.9 or 2.0 in the status line and then speak 1.0 or 1.1; Node's parser accepts both.
_VERSIONS = {b"HTTP/1.1 ": 11, b"HTTP/1.0 ": 10, b"HTTP/0.9 ": 10, b"HTTP/2.0 ": 11}
_FOLD = re.compile(rb"\r?\n[ \t]+")
_ANNOUNCED_REQUESTS = re.compile(rb"\bmax=(\d{1,9})", re.IGNORECASE)
_ANNOUNCED_SECONDS = re.compile(rb"\btimeout=(\d{1,9})", re.IGNORECASE)
# More digits than any real length has, and few enough to be parsed quickly.
_MOST_DIGITS = 18
_ODD = b""  # in place of a name: the head must be read the slow way
_MOST_NAMES, _LONGEST_NAME = 1024, 64  # names that are remembered, and their bytes

# Headers with a single value: if a server repeats one with the same value, it counts once.
_ONE_VALUE = frozenset({b"location", b"content-type"})
_NO_CODING = (b"chunked", b"identity", b"")  # transfer codings that need no decoder

SKIPPED = "mime"  # in place of a reason for a truncated body: its media type is not wanted
# How a body ends, if not after a known number of bytes; UNCLEAR: the head is contradictory.
CHUNKED, UNTIL_CLOSE, UNCLEAR = -1, -2, -3


@dataclass(slots=True)
class Response:
    status: int
    version: int  # 10 or 11
    head: bytes  # as received, from the status line to the empty line; without interim responses
    headers: dict[bytes, bytes]  # names in lower case; repeated ones joined by a comma
    keep_alive: bool  # another request may follow on this connection
    wire: bytes = b""  # the body as received
    body: bytes = b""  # without chunk framing; the same object as `wire` if it was not chunked
    truncated: str = ""  # "length", "time" or SKIPPED: why the body is incomplete; "": it is complete
    allowed: int = 0  # requests that the server still accepts on this connection (Keep-Alive: max=); 0: not given
    allowed_s: int = 0  # seconds that the server waits for the next request (Keep-Alive: timeout=); 0: not given
    trailers: int = 0  # bytes of trailers and of the empty line at the end of `wire`; 0: it was not chunked
    hung_up: bool = False  # we closed the connection for further requests, whatever the server intended
    # Set by the connection:
    first_byte_s: float = 0.0  # from sending the request to the first byte
    total_s: float = 0.0  # from sending the request to the last byte
    own_s: float = (
        0.0  # what the response adds to the time of its connection; equals `total_s` if nothing else was under way
    )

    @property
    def codings(self) -> bytes:
        """Codings of the body, in the order of application: content codings, then transfer codings other than chunked.

        curl and browsers do not decode the latter, because servers must not send them without a request for them (RFC 9112,
        section 7); the page is then lost.
        """
        content, transfer = self.headers.get(b"content-encoding", b""), self.headers.get(b"transfer-encoding")
        if transfer is None or transfer == b"chunked":
            return content
        named = (coding.strip() for coding in transfer.lower().split(b","))
        return b", ".join([*([content] if content else []), *(name for name in named if name not in _NO_CODING)])

    def hang_up(self) -> None:
        """Mark the connection as unusable for further requests."""
        self.keep_alive, self.hung_up = False, True


def response_of(head: bytes, most_headers: int) -> Response | str:
    """Parse a head into a response without a body; return a kind of fetch/failure.py if it is invalid."""
    version = _VERSIONS.get(head[:9])
    status = head[9:12]
    if version is None or not status.isdigit() or status < b"100" or head[12:13] not in b" \t\r\n":
        return PROTOCOL
    headers = headers_of(head, most_headers)
    if headers is None:
        return TOO_LARGE
    response = Response(int(status), version, head, headers, _keeps_alive(version, headers))
    if b"keep-alive" in headers:
        _apply_keep_alive(response, headers[b"keep-alive"])
    return response


def headers_of(head: bytes, most: int) -> dict[bytes, bytes] | None:
    """Return headers by name, in lower case; None if there are more than `most` lines.

    >>> headers_of(b"HTTP/1.1 200 OK\\r\\nVary: a\\r\\nLink:  x,\\r\\n  y\\r\\nvary: b\\r\\n\\r\\n", 9)
    {b'vary': b'a, b', b'link': b'x, y'}
    """
    lines = head.split(b"\n")[1:-2]
    if len(lines) > most:
        return None
    headers = {}
    for line in lines:
        name, _, value = line.partition(b":")
        headers[_names[name]] = value.strip()
    # The slow way for rare cases: repeated names, which leave fewer entries than lines; folded lines; and blanks before a colon.
    if len(headers) < len(lines) or _ODD in headers:
        return _joined(_FOLD.sub(b" ", head))
    return headers


class _Names(dict[bytes, bytes]):
    """Names of headers in lower case, by how servers write them. _ODD stands for what begins with a blank or a control character, ends
    with a blank, or is empty."""

    def __missing__(self, name: bytes) -> bytes:
        found = _ODD if name[:1] <= b" " or name[-1:] in b" \t" else name.lower()
        if len(name) <= _LONGEST_NAME:
            if len(self) >= _MOST_NAMES:
                self.clear()  # else a server that invents names would spoil the table for the rest of the crawl
            self[name] = found
        return found


_names = _Names()


def _joined(head: bytes) -> dict[bytes, bytes]:
    headers: dict[bytes, bytes] = {}
    for line in head.split(b"\n")[1:-2]:
        name, _, value = line.partition(b":")
        name, value = name.rstrip(b" \t").lower(), value.strip()
        if name not in headers:
            headers[name] = value
        elif not (name in _ONE_VALUE and headers[name] == value):
            headers[name] += b", " + value
    return headers


def body_length(response: Response) -> int:
    """Return the length of the body, or a constant for how it ends, by RFC 9112, section 6.3, for responses to GET."""
    if response.status in (204, 304):
        return 0
    length = response.headers.get(b"content-length")
    coding = response.headers.get(b"transfer-encoding")
    if coding is not None and coding.lower() != b"identity":  # "identity" meant "none" in HTTP until 2014
        if coding[coding.rfind(b",") + 1 :].strip().lower() != b"chunked":
            return UNTIL_CLOSE
        if response.keep_alive and (length is not None or response.version == 10):
            response.hang_up()  # ambiguous: the server may mean something else
        return CHUNKED
    return UNTIL_CLOSE if length is None else _stated_length(length)


def _stated_length(value: bytes) -> int:
    """Parse a Content-Length. Repeated equal lengths count as one: servers behind careless proxies send them."""
    if not value.isdigit() and b"," in value:
        first, *others = (part.strip() for part in value.split(b","))
        if any(other != first for other in others):
            return UNCLEAR
        value = first
    return int(value) if value.isdigit() and len(value) <= _MOST_DIGITS else UNCLEAR


def _keeps_alive(version: int, headers: dict[bytes, bytes]) -> bool:
    connection = headers.get(b"connection")
    if connection is None:
        return version == 11
    if connection == b"keep-alive":
        return True
    options = [option.strip() for option in connection.lower().split(b",")]
    return b"close" not in options and (version == 11 or b"keep-alive" in options)


def _apply_keep_alive(response: Response, value: bytes) -> None:
    if requests := _ANNOUNCED_REQUESTS.search(value):
        response.allowed = int(requests[1])
        response.keep_alive = response.keep_alive and response.allowed > 0
    if seconds := _ANNOUNCED_SECONDS.search(value):
        response.allowed_s = int(seconds[1])
