"""A response, and what its head says: status, headers, how the body ends, whether the connection lives on.

Pure functions of one head's bytes; where a head ends is http1.py's. Part of step 5 of the way of a URL.
As lenient as browsers where nothing is at stake, strict where a wrong guess would take one response for another.
"""

import re
from dataclasses import dataclass

from trapline.fetch.failure import PROTOCOL, TOO_LARGE

# 0.9 and 2.0 stand in status lines of servers that then speak 1.0 and 1.1; Node's parser takes both.
_VERSIONS = {b"HTTP/1.1 ": 11, b"HTTP/1.0 ": 10, b"HTTP/0.9 ": 10, b"HTTP/2.0 ": 11}
_FOLD = re.compile(rb"\r?\n[ \t]+")
_ANNOUNCED_REQUESTS = re.compile(rb"\bmax=(\d{1,9})", re.IGNORECASE)
_ANNOUNCED_SECONDS = re.compile(rb"\btimeout=(\d{1,9})", re.IGNORECASE)
# More digits than any length has, and few enough to be read at once.
_MOST_DIGITS = 18

# Headers that have one value: a server that sends the same one twice means it once.
_ONE_VALUE = frozenset({b"location", b"content-type"})
_NO_CODING = (b"chunked", b"identity", b"")  # of transfer codings

# How a body ends, if not after so many bytes; UNCLEAR: nobody can tell.
CHUNKED, UNTIL_CLOSE, UNCLEAR = -1, -2, -3


@dataclass(slots=True)
class Response:
    status: int
    version: int  # 10 or 11
    head: bytes  # as received, from the status line to the empty line; interim responses left out
    headers: dict[bytes, bytes]  # names in lower case; repeated ones joined by a comma
    keep_alive: bool  # another request may follow on this connection
    wire: bytes = b""  # the body as received
    body: bytes = b""  # without chunks; the same object as `wire` if there were none
    truncated: str = ""  # "", "length" or "time": why the body is not whole
    allowed: int = 0  # requests that the server still takes on this connection (Keep-Alive: max=); 0: it did not say
    allowed_s: int = 0  # for how long it waits for the next one (Keep-Alive: timeout=); 0: it did not say
    hung_up: bool = False  # it is our doing that no request may follow, whatever the server meant to do
    # Set by the connection:
    first_byte_s: float = 0.0  # since its request was sent
    total_s: float = 0.0  # since then
    own_s: float = (
        0.0  # what it adds to the time of its connection; the same as `total_s` if nothing else was under way
    )

    @property
    def codings(self) -> bytes:
        """What the body is coded with, in the order of application: its content codings, then its transfer codings but for chunks. curl
        and browsers leave the latter on, for nobody may send them unasked (RFC 9112, section 7); a page is lost then."""
        content, transfer = self.headers.get(b"content-encoding", b""), self.headers.get(b"transfer-encoding")
        if transfer is None or transfer == b"chunked":
            return content
        named = (coding.strip() for coding in transfer.lower().split(b","))
        return b", ".join([*([content] if content else []), *(name for name in named if name not in _NO_CODING)])

    def hang_up(self) -> None:
        """Whatever comes next is not wanted."""
        self.keep_alive, self.hung_up = False, True


def response_of(head: bytes, most_headers: int) -> Response | str:
    """What a head says, without its body; or a kind of failure.py."""
    version = _VERSIONS.get(head[:9])
    status = head[9:12]
    if version is None or not status.isdigit() or status < b"100" or head[12:13] not in b" \t\r\n":
        return PROTOCOL
    headers = headers_of(head, most_headers)
    if headers is None:
        return TOO_LARGE
    response = Response(int(status), version, head, headers, _lives_on(version, headers))
    if b"keep-alive" in headers:
        _heed_keep_alive(response, headers[b"keep-alive"])
    return response


def headers_of(head: bytes, most: int) -> dict[bytes, bytes] | None:
    """Headers by name; None if there are more than `most`.

    >>> headers_of(b"HTTP/1.1 200 OK\\r\\nVary: a\\r\\nLink:  x,\\r\\n  y\\r\\nvary: b\\r\\n\\r\\n", 9)
    {b'vary': b'a, b', b'link': b'x, y'}
    """
    lines = head.split(b"\n")[1:-2]
    if len(lines) > most:
        return None
    headers = {}
    for line in lines:
        name, _, value = line.partition(b":")
        headers[name.lower()] = value.strip()
    # Repeated names leave fewer entries than lines. Folded lines, and only those, begin with a space. Blanks may stand before a colon.
    if len(headers) < len(lines) or min(headers, default=b"a") < b"!" or b" :" in head or b"\t:" in head:
        return _joined(_FOLD.sub(b" ", head))
    return headers


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
    """RFC 9112, section 6.3, for answers to GET: the bytes of the body, or how it ends."""
    if response.status in (204, 304):
        return 0
    length = response.headers.get(b"content-length")
    coding = response.headers.get(b"transfer-encoding")
    if coding is not None and coding.lower() != b"identity":  # which is what HTTP had for "none" until 2014
        if coding[coding.rfind(b",") + 1 :].strip().lower() != b"chunked":
            return UNTIL_CLOSE
        if response.keep_alive and (length is not None or response.version == 10):
            response.hang_up()  # whoever sends this may mean something else by it
        return CHUNKED
    return UNTIL_CLOSE if length is None else _stated_length(length)


def _stated_length(value: bytes) -> int:
    """Equal lengths, repeated, are one: servers behind careless proxies send them."""
    if not value.isdigit() and b"," in value:
        first, *others = (part.strip() for part in value.split(b","))
        if any(other != first for other in others):
            return UNCLEAR
        value = first
    return int(value) if value.isdigit() and len(value) <= _MOST_DIGITS else UNCLEAR


def _lives_on(version: int, headers: dict[bytes, bytes]) -> bool:
    connection = headers.get(b"connection")
    if connection is None:
        return version == 11
    if connection == b"keep-alive":
        return True
    options = [option.strip() for option in connection.lower().split(b",")]
    return b"close" not in options and (version == 11 or b"keep-alive" in options)


def _heed_keep_alive(response: Response, value: bytes) -> None:
    if requests := _ANNOUNCED_REQUESTS.search(value):
        response.allowed = int(requests[1])
        response.keep_alive = response.keep_alive and response.allowed > 0
    if seconds := _ANNOUNCED_SECONDS.search(value):
        response.allowed_s = int(seconds[1])
