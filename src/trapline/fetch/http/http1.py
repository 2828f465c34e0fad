"""HTTP/1.x messages as bytes: writes requests and reads responses. Part of step 5 in docs/architecture.md.

No socket and no clock: bytes are fed in, complete responses come out, and failures are values. The reader keeps what a WARC record
needs: head and body exactly as received. response.py interprets a head, content.py removes content codings, connection.py keeps time.
Laws of the reader
- The result depends only on the bytes, not on how they are divided into pieces.
- The work is linear in the bytes, however small the pieces; memory is at most the limits and one piece. A body of very many chunks or
  trailers, each of which takes microseconds, is truncated like one that is too long.
- Lines end in LF, with or without CR; empty lines before a response are skipped. Lengths and chunk sizes must have exactly the form
  that the standard defines.
"""

import re
from collections.abc import Callable

from trapline.errors import ConfigError, InvariantError
from trapline.fetch.failure import PROTOCOL, TOO_LARGE
from trapline.fetch.http.response import CHUNKED, SKIPPED, UNCLEAR, UNTIL_CLOSE, body_length, response_of
from trapline.fetch.http.response import Response as Response
from trapline.fetch.limits import Limits

_HEX = b"0123456789abcdefABCDEF"
_LINE_ENDS = re.compile(rb"[\r\n]*+")
_MOST_HEX_DIGITS = 15
# Of the line with a chunk's size and extensions, or of a trailer. Real ones are short.
_LINE_BYTES = 4096
# Of a body that is not wanted. A longer one costs more than a new connection; this many bytes are on their way with the head.
SHORT_BODY = 16 * 1024
# Per body. Servers send a few, or one per line of a page that they generate while sending.
_MOST_CHUNKS = 32 * 1024


class ResponseReader:
    """Reader of the responses to GET requests that arrive one after the other on one connection.

    Call `feed` with bytes, then `next` until it returns None: then more bytes are needed, or `failure` says why none will help.
    `feed` fills `_data`; `next` consumes it by advancing `_at`.
    """

    __slots__ = (
        "_at",
        "_content",
        "_data",
        "_drops",
        "_interim_bytes",
        "_length",
        "_limits",
        "_lines_left",
        "_partial",
        "_read",
        "_skips",
        "_trailers_at",
        "failure",
    )

    def __init__(self, limits: Limits, skips: Callable[[Response], bool] | None = None) -> None:
        """`skips`: called for each head; returns whether the body is not wanted."""
        self.failure = ""
        self._skips, self._drops = skips, False
        self._limits = limits
        self._data: bytes | bytearray = b""
        self._at = 0  # start of the current head or body
        self._read = 0  # bytes from there that were scanned and need no second scan
        self._interim_bytes = 0
        self._partial: Response | None = None  # the response whose head is complete and whose body is not
        self._length = 0  # length of that body, or a constant for how it ends
        self._content = bytearray()  # content of its chunks
        self._trailers_at = 0  # start of the trailers, counted from `_at`; 0: not all chunks were read
        self._lines_left = _MOST_CHUNKS  # chunks or trailers that may still follow; below 0: too many

    def feed(self, data: bytes) -> None:
        if self._at == len(self._data):
            self._data = data  # the usual case: no bytes are left, and nothing is copied
        else:
            if isinstance(self._data, bytes):
                self._data = bytearray(self._data[self._at :])
            else:
                del self._data[: self._at]
            self._data += data
        self._at = 0

    def next(self) -> Response | None:
        if self._partial is None and (self._at == len(self._data) or not self._read_head()):
            return None
        available = len(self._data) - self._at
        if self._length >= 0:
            return self._finished(self._at + self._length) if available >= self._length else None
        if self._length == CHUNKED:
            return self._read_chunks()
        most = self._limits.body_bytes
        return self._cut_at(most, "length") if available >= most else None

    def eof(self) -> Response | None:
        """Return the last response after the server closed the connection, if closing was the end of its body."""
        if self._partial is None or self._length != UNTIL_CLOSE:
            return None
        self._partial.keep_alive = False
        return self._finished(len(self._data))

    def cut(self, why: str) -> Response | None:
        """Return the current response with a truncated body, if its head is complete. Nothing can be read afterwards."""
        return None if self._partial is None else self._cut_at(len(self._data) - self._at, why)

    def has_more(self) -> bool:
        """Return whether there are bytes of a further response, other than empty lines that may precede one."""
        if self._partial is not None:
            return True
        self._skip_empty_lines()
        return self._at < len(self._data)

    def _finished(self, end: int) -> Response:
        response = self._partial
        assert response is not None
        response.wire = response.body = self._bytes_to(end)
        if self._length == CHUNKED:
            response.body = bytes(self._content)
            if self._trailers_at:
                response.trailers = end - self._at - self._trailers_at
            self._content, self._trailers_at, self._lines_left = bytearray(), 0, _MOST_CHUNKS
        if self._drops:
            response.wire = response.body = b""
            self._drops = False
        self._partial = None
        self._at, self._read = end, 0
        return response

    def _cut_at(self, length: int, why: str) -> Response:
        end = self._at + length
        if self._length == CHUNKED:
            self._take_part_of_a_chunk(end)
        response = self._finished(end)
        response.truncated = why
        response.hang_up()
        return response

    def _bytes_to(self, end: int) -> bytes:
        if isinstance(self._data, bytes):
            return self._data[self._at : end]
        return bytes(memoryview(self._data)[self._at : end])

    def _fail(self, failure: str) -> None:
        self.failure = failure
        self._partial = None

    # Heads

    def _read_head(self) -> bool:
        """Read the next head, skipping interim ones. If it is complete, return True, and set `_partial` and `_length`."""
        while (end := self._head_end()) >= 0:
            response = response_of(self._bytes_to(end), self._limits.headers)
            if isinstance(response, str) or response.status == 101:  # no request asked to switch protocols
                self._fail(response if isinstance(response, str) else PROTOCOL)
                return False
            before, self._at, self._read = self._at, end, 0
            if response.status >= 200:
                self._interim_bytes = 0
                return self._begin(response)
            self._interim_bytes += end - before
        return False

    def _begin(self, response: Response) -> bool:
        self._partial = response
        self._length = length = body_length(response)
        if length == UNCLEAR:
            self._fail(PROTOCOL)
        elif self._skips is not None and self._skips(response) and length != 0:
            self._skip(response)
        elif length == UNTIL_CLOSE:
            response.keep_alive = False
        elif length > self._limits.body_bytes:
            self._length = self._limits.body_bytes
            response.truncated = "length"
            response.hang_up()
        return length != UNCLEAR

    def _skip(self, response: Response) -> None:
        """Do not keep the body. A short one is read to its end, so that the connection can be used again."""
        response.truncated = SKIPPED
        if 0 < self._length <= SHORT_BODY:
            self._drops = True
        else:
            self._length = 0
            response.hang_up()

    def _skip_empty_lines(self) -> None:
        """Skip empty lines before a head; they count towards its size."""
        if self._data[self._at : self._at + 1] in (b"\r", b"\n"):
            before, self._at = self._at, _LINE_ENDS.match(self._data, self._at).end()  # type: ignore[union-attr]  # always matches
            self._interim_bytes += self._at - before

    def _head_end(self) -> int:
        if self.failure:
            return -1
        self._skip_empty_lines()
        data = self._data
        most = self._at + self._limits.header_bytes - self._interim_bytes
        end = empty_line_end(data, self._at + self._read, most)
        if end < 0:
            self._read = max(0, len(data) - self._at - 2)  # the last two bytes may be the start of an empty line
            if not b"HTTP/".startswith(data[self._at : max(self._at, min(self._at + 5, most))]):
                self._fail(PROTOCOL)  # not HTTP: do not wait for the end of the head
            elif len(data) >= most:
                self._fail(TOO_LARGE)
        return end

    # Chunks: `_read` is the length of the complete chunks

    def _read_chunks(self) -> Response | None:
        most = self._at + self._limits.body_bytes
        end = self._chunks_end(min(len(self._data), most))
        if end >= 0:
            return self._finished(end)
        if self._lines_left < 0:
            return self._cut_at(self._read, "length")
        if self.failure or len(self._data) < most:
            return None
        return self._cut_at(self._limits.body_bytes, "length")

    def _chunks_end(self, stop: int) -> int:
        """Read the complete chunks before `stop`; return the end of the last chunk and its trailers, or -1 if it is not there yet.

        If there are too many chunks, stops one after the limit.
        """
        data, at = self._data, self._at + self._read
        while (newline := data.find(b"\n", at, min(stop, at + _LINE_BYTES))) >= 0:
            start = newline + 1
            if self._trailers_at:
                if data[at:newline] in (b"\r", b""):
                    return start
                after = start
            else:
                after = self._chunk_end(at, start, stop)
                if after < 0:
                    return -1
            at = after
            self._read = at - self._at
            self._lines_left -= 1
            if self._lines_left < 0:
                return -1
        if stop - at >= _LINE_BYTES:
            self._fail(PROTOCOL)
        return -1

    def _chunk_end(self, at: int, start: int, stop: int) -> int:
        """Read one chunk, whose size is in [at, start); return its end, or -1 if it is incomplete or wrong."""
        data = self._data
        size = _chunk_size(data[at : start - 1])
        if size == 0:
            self._trailers_at, self._lines_left = start - self._at, self._limits.headers + 1  # this line is counted too
            return start
        end = start + size
        after = end + (2 if data[end : end + 1] == b"\r" else 1)
        if size < 0 or (after <= stop and data[after - 1] != 10):
            self._fail(PROTOCOL)
        if self.failure or after > stop:
            return -1
        self._content += data[start:end]
        return after

    def _take_part_of_a_chunk(self, end: int) -> None:
        at = self._at + self._read
        newline = self._data.find(b"\n", at, end)
        if newline >= 0 and not self._trailers_at:
            size = max(0, _chunk_size(self._data[at:newline]))
            self._content += self._data[newline + 1 : min(newline + 1 + size, end)]


def empty_line_end(data: bytes | bytearray, start: int, stop: int) -> int:
    """Return the end of the first empty line, which is the end of a head; -1 if there is none."""
    with_cr = data.find(b"\n\r\n", start, stop)
    without = data.find(b"\n\n", start, stop if with_cr < 0 else with_cr + 1)
    if without >= 0:
        return without + 2
    return with_cr + 3 if with_cr >= 0 else -1


def _chunk_size(line: bytes | bytearray) -> int:
    """Return the size of a chunk; -1 if it is invalid. `int` alone would also accept 0x1F, +1 and 1_0."""
    digits = line.partition(b";")[0].strip()
    if not digits or len(digits) > _MOST_HEX_DIGITS or digits.strip(_HEX):
        return -1
    return int(digits, 16)


def request_headers(host: str, headers: dict[str, str], keep_alive: bool = True) -> bytes:
    """Return the part that all requests to a site share: everything after the target. For use with `request`."""
    fields = {"Host": host, **headers, "Connection": "keep-alive" if keep_alive else "close"}
    for name, value in fields.items():
        if not (value.isascii() and value.isprintable()):
            raise ConfigError(f"the header {name} must contain only printable ASCII characters, not {value!r}")
    return "".join([" HTTP/1.1\r\n", *(f"{name}: {value}\r\n" for name, value in fields.items()), "\r\n"]).encode()


def request(target: str, rest: bytes, more: bytes = b"") -> bytes:
    """Return a GET request for a path with query. `more`: complete header lines for this request only.

    >>> request("/a?b", request_headers("example.com", {"User-Agent": "x"}))
    b'GET /a?b HTTP/1.1\\r\\nHost: example.com\\r\\nUser-Agent: x\\r\\nConnection: keep-alive\\r\\n\\r\\n'
    """
    if not (target.isascii() and target.isprintable()) or " " in target or target[:1] != "/":
        raise InvariantError(f"{target!r} is not the path of a canonical URL")
    if more:
        return b"GET " + target.encode() + rest[:-2] + more + b"\r\n"
    return b"GET " + target.encode() + rest
