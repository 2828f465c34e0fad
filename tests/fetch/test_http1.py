"""The reader of HTTP responses: an example for each rule, laws over generated streams, and Node's parser as a second opinion."""

import json
import re
import tarfile
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.errors import ConfigError, InvariantError
from trapline.fetch.failure import PROTOCOL, TOO_LARGE
from trapline.fetch.http import response as response_module
from trapline.fetch.http.http1 import Response, ResponseReader, request, request_headers
from trapline.fetch.http.response import headers_of
from trapline.fetch.limits import Limits

SMALL = Limits(header_bytes=400, headers=8, body_bytes=1_000)


def read(pieces: Iterable[bytes], limits: Limits = SMALL, ended: bool = True) -> tuple[list[Response], str]:
    """All responses of a stream, and the failure that ended it."""
    reader = ResponseReader(limits)
    responses = []
    for piece in pieces:
        reader.feed(piece)
        while (response := reader.next()) is not None:
            responses.append(response)
            if not response.keep_alive:
                return responses, ""
    if ended and (last := reader.eof()) is not None:
        responses.append(last)
    return responses, reader.failure


def read_one(data: bytes, limits: Limits = SMALL) -> Response:
    (response,), failure = read([data], limits)
    assert failure == ""
    return response


def failure_of(data: bytes, limits: Limits = SMALL) -> str:
    responses, failure = read([data], limits)
    assert responses == []
    return failure


# Heads


def test_a_response_is_kept_as_it_came() -> None:
    head, body = b"HTTP/1.1 200 Fine\r\nX:  a \r\nContent-LENGTH: 5\r\nx: b\r\n\r\n", b"hello"
    response = read_one(head + body)
    assert (response.status, response.version, response.keep_alive, response.truncated) == (200, 11, True, "")
    assert (response.head, response.wire) == (head, body)
    assert response.body is response.wire
    assert response.headers == {b"x": b"a, b", b"content-length": b"5"}


@pytest.mark.parametrize("line", [b"HTTP/1.1 200", b"HTTP/1.1 200 ", b"HTTP/1.1 200 \xe9t\xe9", b"HTTP/2.0 200 OK"])
def test_status_lines_that_servers_send(line: bytes) -> None:
    assert read_one(line + b"\r\nContent-Length: 0\r\n\r\n").status == 200


@pytest.mark.parametrize(
    "line",
    [
        *(b"<html>", b"HTTP/1.1", b"HTTP/1.1 ", b"HTTP/1.1 20 OK", b"HTTP/1.1 2000", b"HTTP/1.1 099 No"),
        *(b"HTTP/1.1 +20 OK", b" HTTP/1.1 200 OK", b"HTTP/1.1200 OK", b"ICY 200 OK", b"HTTP/3.1 200 OK"),
    ],
)
def test_an_invalid_status_line_is_a_failure(line: bytes) -> None:
    assert failure_of(line + b"\r\n\r\n") == PROTOCOL


def test_bytes_that_cannot_be_a_response_fail_at_once() -> None:
    assert failure_of(b"<!doctype html><p>served raw") == PROTOCOL
    assert read([b"HT"]) == ([], "")


@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
@pytest.mark.parametrize("last", [b"\r\n", b"\n"])
def test_lines_end_in_lf_with_or_without_cr(end: bytes, last: bytes) -> None:
    response = read_one(b"HTTP/1.1 200 OK" + end + b"A: b" + end + b"Content-Length: 6" + end + last + b"1\r\n\r\n2")
    assert (response.headers[b"a"], response.body) == (b"b", b"1\r\n\r\n2")


def test_folded_lines_are_joined() -> None:
    response = read_one(b"HTTP/1.1 200 OK\r\nLink: <a>;\r\n\t rel=next\r\nContent-Length: 0\r\n\r\n")
    assert response.headers == {b"link": b"<a>; rel=next", b"content-length": b"0"}


def test_blanks_before_a_colon_are_not_part_of_the_name() -> None:
    response = read_one(b"HTTP/1.1 200 OK\r\nX-Robots-Tag : nofollow\r\nContent-Length \t: 2\r\n\r\nok")
    assert response.headers == {b"x-robots-tag": b"nofollow", b"content-length": b"2"} and response.body == b"ok"
    assert read_one(b"HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n").body == b"ok"


def test_a_repeated_location_is_accepted_if_equal() -> None:
    head = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /a, b\r\n"
    for more, location in [(b"location: /a, b\r\n" * 2, b"/a, b"), (b"Location: /c\r\n", b"/a, b, /c")]:
        assert read_one(head + more + b"\r\n").headers[b"location"] == location


def test_malformed_header_lines_are_ignored() -> None:
    assert read_one(b"HTTP/1.1 200 OK\r\nnonsense\r\n: x\r\nContent-Length: 2\r\n\r\nok").body == b"ok"


NAMES = st.sampled_from(
    [b"A", b"a", b"Link", b"location", b"X-Y", b"", b" A", b"\tb", b"A ", b"b\t", b"\x01", b"A:b", b"x" * 70]
)
LINES = st.tuples(
    NAMES, st.sampled_from([b":", b": ", b":\t", b" :", b""]), st.sampled_from([b"1", b" 2 ", b"", b"a: b", b" :"])
)


def headers_line_by_line(head: bytes) -> dict[bytes, bytes]:
    """The headers of a head, without any shortcut."""
    headers: dict[bytes, bytes] = {}
    for line in re.sub(rb"\r?\n[ \t]+", b" ", head).split(b"\n")[1:-2]:
        name, _, value = line.partition(b":")
        name, value = name.rstrip(b" \t").lower(), value.strip()
        if name in headers and not (name in (b"location", b"content-type") and headers[name] == value):
            value = headers[name] + b", " + value
        headers[name] = value
    return headers


@given(st.lists(LINES, max_size=8), st.sampled_from([b"\r\n", b"\n"]))
def test_headers_are_those_of_the_lines_one_by_one(lines: list[tuple[bytes, bytes, bytes]], end: bytes) -> None:
    head = b"HTTP/1.1 200 OK" + end + b"".join(b"".join(line) + end for line in lines) + end
    assert headers_of(head, 99) == headers_line_by_line(head)


def test_the_names_that_servers_invent_are_not_all_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    names = response_module._Names()
    monkeypatch.setattr(response_module, "_names", names)
    for number in range(3_000):
        name = b"X-%d" % number
        assert headers_of(b"HTTP/1.1 200 OK\r\n%s: 1\r\n\r\n" % name, 9) == {name.lower(): b"1"}
        assert names[name] == name.lower() and len(names) <= 1024
    assert b"X-2999" in names and b"X-0" not in names, "the last ones are remembered"


def test_interim_responses_and_empty_lines_are_skipped() -> None:
    hints = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    response = read_one(b"\r\n" + hints + b"\nHTTP/1.1 204 None\r\nA: b\r\n\r\n")
    assert (response.status, response.headers, response.body) == (204, {b"a": b"b"}, b"")
    assert response.head.startswith(b"HTTP/1.1 204")


def test_a_protocol_switch_is_refused() -> None:
    assert failure_of(b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\n\r\n") == PROTOCOL


# Bodies


@pytest.mark.parametrize("status", [204, 304])
def test_answers_without_a_body(status: int) -> None:
    bare = b"HTTP/1.1 %d X\r\nContent-Length: 10\r\nTransfer-Encoding: chunked\r\n\r\n" % status
    responses, _ = read([bare + bare])
    assert [response.body for response in responses] == [b"", b""]


@pytest.mark.parametrize(
    ("length", "expected"),
    [(b"3", b"abc"), (b"3, 3", b"abc"), (b" 03 ", b"abc"), (b"0", b"")],
)
def test_stated_lengths(length: bytes, expected: bytes) -> None:
    (first, *_), _ = read([b"HTTP/1.1 200 OK\r\nContent-Length: " + length + b"\r\n\r\nabc"])
    assert (first.body, first.keep_alive) == (expected, True)


@pytest.mark.parametrize("length", [b"", b"-1", b"+3", b"3.0", b"0x3", b"3 3", b"3, 4", b"3,", b"9" * 5_000, b"\xb2"])
def test_invalid_lengths_are_refused(length: bytes) -> None:
    assert failure_of(b"HTTP/1.1 200 OK\r\nContent-Length: " + length + b"\r\n\r\nabc", Limits()) == PROTOCOL


def test_repeated_lengths_are_accepted_if_equal() -> None:
    two = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: %d\r\n\r\nabc"
    assert read_one(two % 3).body == b"abc"
    assert failure_of(two % 2) == PROTOCOL


def chunked(chunks: bytes, more: bytes = b"") -> bytes:
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + more + b"\r\n" + chunks


def test_chunks_are_decoded_in_the_body_and_kept_in_the_wire_bytes() -> None:
    wire = b'5\r\nhello\r\n7;a=b;c="d"\r\n, world\r\n00\r\nX-Sum: 1\r\n\r\n'
    response = read_one(chunked(wire))
    assert (response.wire, response.body, response.keep_alive) == (wire, b"hello, world", True)


def test_chunk_lines_are_read_as_leniently_as_header_lines() -> None:
    assert read_one(chunked(b"2 \nab\n 1\r\nc\r\n0\n\n")).body == b"abc"


@pytest.mark.parametrize(
    "wire",
    [
        *(b"x\r\n", b"0x1\r\na\r\n", b"+1\r\na\r\n", b"1_0\r\n", b"\r\n", b";a\r\n", b"1 a\r\n", b"-1\r\n"),
        *(b"1\r\nab\r\n", b"f" * 16 + b"\r\n", b"1;" + b"a" * 5_000),
    ],
)
def test_invalid_chunks_are_a_failure(wire: bytes) -> None:
    assert failure_of(chunked(wire), Limits()) == PROTOCOL


def test_chunked_coding_wins_over_a_length_and_ends_the_connection() -> None:
    response = read_one(chunked(b"2\r\nab\r\n0\r\n\r\n", more=b"Content-Length: 99\r\n"))
    assert (response.body, response.keep_alive, response.hung_up) == (b"ab", False, True)


def test_chunked_coding_in_http_10_ends_the_connection() -> None:
    old = b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"
    for data, hung_up in [(old, True), (old.replace(b"keep-alive", b"close"), False)]:
        response = read_one(data)
        assert (response.body, response.keep_alive, response.hung_up) == (b"a", False, hung_up)


@pytest.mark.parametrize(
    "headers",
    [
        *(b"", b"Transfer-Encoding: gzip\r\n", b"Transfer-Encoding: chunked, gzip\r\n"),
        b"Transfer-Encoding: gzip\r\nContent-Length: 1\r\n",
    ],
)
def test_other_bodies_last_until_the_connection_ends(headers: bytes) -> None:
    data = b"HTTP/1.1 200 OK\r\n" + headers + b"\r\nHTTP/1.1 200 OK\r\n\r\n"
    assert read([data], ended=False) == ([], "")
    response = read_one(data)
    assert (response.body, response.keep_alive, response.truncated) == (b"HTTP/1.1 200 OK\r\n\r\n", False, "")
    assert not response.hung_up


@pytest.mark.parametrize(
    ("headers", "codings"),
    [
        (b"Transfer-Encoding: chunked\r\n", b""),
        (b"Transfer-Encoding: gzip, chunked\r\n", b"gzip"),
        (b"Transfer-Encoding: gzip\r\nTransfer-Encoding: Chunked\r\n", b"gzip"),
        (b"Content-Encoding: br\r\nTransfer-Encoding: GZIP, chunked\r\n", b"br, gzip"),
        (b"Content-Encoding: br\r\nTransfer-Encoding: chunked\r\n", b"br"),
    ],
)
def test_transfer_codings_are_reported_behind_content_codings(headers: bytes, codings: bytes) -> None:
    response = read_one(b"HTTP/1.1 200 OK\r\n" + headers + b"\r\n2\r\nab\r\n0\r\n\r\n")
    assert (response.body, response.codings) == (b"ab", codings)


def test_identity_is_not_a_coding() -> None:
    assert read_one(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 1\r\n\r\na").body == b"a"


# The connection


@pytest.mark.parametrize(
    ("version", "connection", "lives_on"),
    [
        (b"1.1", b"", True),
        (b"1.1", b"Connection: close\r\n", False),
        (b"1.1", b"Connection: Upgrade, Close\r\n", False),
        (b"1.1", b"Connection: closely\r\n", True),
        (b"1.1", b"Connection: keep-alive\r\nConnection: close\r\n", False),
        (b"1.0", b"", False),
        (b"1.0", b"Connection: Keep-Alive\r\n", True),
        (b"1.0", b"Connection: close, keep-alive\r\n", False),
        (b"1.1", b"Keep-Alive: timeout=5, max=0\r\n", False),
    ],
)
def test_whether_the_connection_stays_open(version: bytes, connection: bytes, lives_on: bool) -> None:
    data = b"HTTP/" + version + b" 200 OK\r\nContent-Length: 0\r\n" + connection + b"\r\n"
    assert read_one(data).keep_alive is lives_on and not read_one(data).hung_up


def test_keep_alive_limits_announced_by_the_server() -> None:
    response = read_one(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nKeep-Alive: Timeout=7, max=96\r\n\r\n")
    assert (response.allowed, response.allowed_s) == (96, 7)


# Limits


def test_a_head_is_limited_in_bytes_and_lines() -> None:
    assert failure_of(b"HTTP/1.1 200 OK\r\nA: " + b"b" * 500) == TOO_LARGE
    assert failure_of(b"HTTP/1.1 200 OK\r\n" + b"A:b\r\n" * 9 + b"\r\n") == TOO_LARGE
    assert read([b"HTTP/1.1 200 OK\r\n" + b"A:b\r\n" * 8 + b"\r\n"])[1] == ""


def test_interim_responses_count_towards_the_limit_of_the_head() -> None:
    assert failure_of(b"HTTP/1.1 100 Continue\r\n\r\n" * 20) == TOO_LARGE
    plain = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 None\r\n\r\n"
    assert len(read([plain * 20])[0]) == 20


def test_trailers_count_as_body() -> None:
    response = read_one(chunked(b"1\r\na\r\n0\r\n" + b"A: b\r\n" * 500), Limits(headers=500, body_bytes=1_000))
    assert (len(response.wire), response.body, response.truncated) == (1_000, b"a", "length")
    assert failure_of(chunked(b"0\r\nA: " + b"b" * 5_000), Limits()) == PROTOCOL


@pytest.mark.parametrize("head", [b"Content-Length: 2000\r\n", b""])
def test_a_long_body_is_cut(head: bytes) -> None:
    responses, failure = read([b"HTTP/1.1 200 OK\r\n" + head + b"\r\n" + b"a" * 2_000], ended=False)
    (response,) = responses
    assert (len(response.body), response.truncated, response.keep_alive, failure) == (1_000, "length", False, "")
    assert response.hung_up


def test_a_body_of_exactly_the_limit_is_complete() -> None:
    assert read_one(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"a" * 1_000).truncated == ""
    exact = b"3dc\r\n" + b"a" * 988 + b"\r\n0\r\n\r\n"
    assert len(exact) == 1_000
    assert read_one(chunked(exact)).truncated == ""


def test_chunked_bodies_are_cut_by_their_bytes_on_the_wire() -> None:
    for wire in (b"7d0\r\n" + b"a" * 3_000, b"1\r\na\r\n" * 500):
        response = read_one(chunked(wire))
        assert (response.wire, response.truncated) == (wire[:1_000], "length")
        assert set(response.body) == {ord("a")}
    assert len(response.body) == 167  # 166 complete chunks of six bytes, and the first content byte of the next one


MANY = 32 * 1024  # the limit of chunks of a body


@pytest.mark.parametrize("at_once", [1, 7, 100_000, 10_000_000])
def test_a_body_of_very_many_chunks_is_cut(at_once: int) -> None:
    stream = chunked(b"1\na\n" * (MANY + 5_000))
    responses, failure = read([stream[at : at + at_once] for at in range(0, len(stream), at_once)], Limits())
    (response,) = responses
    assert (response.body, response.wire, failure) == (b"a" * (MANY + 1), b"1\na\n" * (MANY + 1), "")
    assert response.truncated == "length" and response.hung_up


def test_a_body_with_exactly_the_limit_of_chunks_is_complete() -> None:
    whole = chunked(b"1\r\na\r\n" * MANY + b"0\r\nA: b\r\n\r\n")
    responses, failure = read([whole * 2], Limits())
    assert [(len(response.body), response.truncated) for response in responses] == [(MANY, "")] * 2 and failure == ""


@pytest.mark.parametrize("at_once", [1, 7, 100_000])
def test_a_body_may_have_as_many_trailers_as_a_head_has_lines(at_once: int) -> None:
    for trailers, truncated in [(8, ""), (9, "length"), (100, "length")]:
        stream = chunked(b"1\r\na\r\n0\r\n" + b"A:b\n" * trailers + b"\r\n")
        responses, failure = read([stream[at : at + at_once] for at in range(0, len(stream), at_once)])
        assert [(response.body, response.truncated) for response in responses] == [(b"a", truncated)] and failure == ""
        assert len(responses[0].wire) == 9 + 4 * min(trailers, 9) + (0 if truncated else 2)


def test_a_body_cut_by_a_timeout_keeps_what_arrived() -> None:
    for head, wire, body in [
        (b"Content-Length: 9\r\n", b"half", b"half"),
        (b"", b"half", b"half"),
        (b"Transfer-Encoding: chunked\r\n", b"2\r\nha\r\n9\r\nlf", b"half"),
        (b"Transfer-Encoding: chunked\r\n", b"2\r\nha\r\n2", b"ha"),
    ]:
        reader = ResponseReader(SMALL)
        reader.feed(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n" + wire)
        assert reader.next() is None
        response = reader.cut("time")
        assert response is not None
        assert (response.wire, response.body, response.truncated, response.keep_alive) == (wire, body, "time", False)
        assert response.hung_up
    assert ResponseReader(SMALL).cut("time") is None


def test_bytes_behind_the_response_are_reported() -> None:
    for rest, more in [(b"", False), (b"\r\n\n", False), (b"\r\nx", True)]:
        reader = ResponseReader(SMALL)
        reader.feed(b"HTTP/1.1 204 None\r\n\r\n" + rest)
        assert reader.next() is not None
        assert reader.has_more() is more


# Laws


HEADS = st.sampled_from(
    [b"", b"Server: x\r\n", b"Connection: keep-alive\r\nKeep-Alive: max=9\r\n", b"A: b\r\na: c\r\n", b"F: o\r\n ld\r\n"]
)
BODIES = st.binary(max_size=40) | st.sampled_from([b"\r\n\r\n", b"0\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"])


class Written(NamedTuple):
    stream: bytes  # includes bytes that may precede a response
    head: bytes
    wire: bytes
    body: bytes


@st.composite
def written(draw: st.DrawFn) -> Written:
    before = draw(st.sampled_from([b"", b"", b"\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"]))
    head = b"HTTP/1.1 %d Reason\r\n" % draw(st.sampled_from([200, 404, 301])) + draw(HEADS)
    if draw(st.booleans()):
        body = wire = draw(BODIES)
        head += b"Content-Length: %d\r\n\r\n" % len(body)
    else:
        parts = [part for part in draw(st.lists(BODIES, max_size=4)) if part]
        chunks = [b"%x%s\r\n%s\r\n" % (len(p), draw(st.sampled_from([b"", b";e=1"])), p) for p in parts]
        wire = b"".join(chunks) + b"0\r\n" + draw(st.sampled_from([b"", b"T: x\r\n"])) + b"\r\n"
        body = b"".join(parts)
        head += b"Transfer-Encoding: chunked\r\n\r\n"
    return Written(before + head + wire, head, wire, body)


@st.composite
def cut_up(draw: st.DrawFn, data: bytes) -> list[bytes]:
    if draw(st.booleans()):
        return [data[i : i + 1] for i in range(len(data))]
    cuts = sorted({0, len(data), *draw(st.lists(st.integers(0, len(data)), max_size=8))})
    return [data[a:b] for a, b in pairwise(cuts)]


@given(st.lists(written(), max_size=5), st.data())
def test_written_responses_are_read_back(responses: list[Written], data: st.DataObject) -> None:
    pieces = data.draw(cut_up(b"".join(response.stream for response in responses)))
    found, failure = read(pieces)
    assert [(r.head, r.wire, r.body) for r in found] == [(r.head, r.wire, r.body) for r in responses]
    assert failure == ""


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    stream = bytearray(b"".join(response.stream for response in draw(st.lists(written(), min_size=1, max_size=3))))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(stream)))
        piece = draw(
            st.binary(max_size=2)
            | st.sampled_from([b"\r\n", b"\n", b" ", b":", b"\x00", b"chunked", b"0", b"HTTP/1.0"])
        )
        stream[at : at + draw(st.integers(0, 3))] = piece
    return bytes(stream)


@given(damaged(), st.data(), st.sampled_from([SMALL, Limits(header_bytes=60, headers=2, body_bytes=20)]))
def test_the_cut_into_pieces_does_not_matter_and_no_bytes_are_invented(
    stream: bytes, data: st.DataObject, limits: Limits
) -> None:
    whole, pieces = read([stream], limits), read(data.draw(cut_up(stream)), limits)
    assert whole == pieces
    at = 0
    for response in whole[0]:
        at = stream.index(response.head + response.wire, at) + len(response.head + response.wire)


# A second opinion


class SecondOpinion:
    """How httptools reads a stream: complete responses, and the beginning of one more."""

    def __init__(self, data: bytes) -> None:
        self.responses: list[tuple[int, dict[bytes, bytes], bytes]] = []
        self.whole = 0
        self.parser = httptools.HttpResponseParser(self)
        self.upgraded = self.failed = False
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.upgraded = True
        except httptools.HttpParserError:
            self.failed = True

    def on_message_begin(self) -> None:
        self.headers: dict[bytes, bytes] = {}
        self.body = b""
        self.in_body = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.in_body:  # otherwise a trailer
            name, value = name.lower(), value.strip()
            self.headers[name] = self.headers[name] + b", " + value if name in self.headers else value

    def on_headers_complete(self) -> None:
        self.in_body = True
        self.status = self.parser.get_status_code()

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        if self.status >= 200:
            self.responses.append((self.status, self.headers, self.body))


def opinion_of_us(data: bytes) -> list[tuple[int, dict[bytes, bytes], bytes]]:
    found, _ = read([data], Limits(), ended=False)
    return [(response.status, response.headers, response.body) for response in found]


@given(damaged())
def test_responses_that_nodes_parser_reads_are_read_equally(stream: bytes) -> None:
    second = SecondOpinion(stream)
    ours = opinion_of_us(stream)
    assert ours[: len(second.responses)] == second.responses
    if not second.failed:
        assert len(ours) == len(second.responses)


# The cases of Node's parser, where present: github.com/nodejs/llhttp, test/response


class Case(NamedTuple):
    title: str
    kind: str
    stream: bytes
    log: str


def cases_in(text: str) -> Iterator[Case]:
    """A heading, a comment with the kind, the stream, and what the parser reports about it. The escapes are those of that suite."""
    pattern = r"^##+ (.*?)$.*?<!-- meta=(.*?) -->\n```http\n(.*?)```.*?```log\n(.*?)```"
    for title, meta, stream, log in re.findall(pattern, text, re.DOTALL | re.MULTILINE):
        stream = stream.removesuffix("\n").replace("\\\n", "").replace("\n", "\r\n")
        for escape, character in (("\\r", "\r"), ("\\n", "\n"), ("\\t", "\t")):
            stream = stream.replace(escape, character)
        kinds = json.loads(meta)
        if "pause" not in kinds and "skipBody" not in kinds:  # our reader is never paused, and we never send HEAD
            yield Case(title, kinds["type"], stream.encode(), log)


def reported(log: str) -> list[tuple[int, int]]:
    """Status and body bytes of each response that the parser began, without interim responses."""
    found: list[tuple[int, int]] = []
    for line in log.splitlines():
        if headers := re.search(r"headers complete status=(\d+)", line):
            found.append((int(headers[1]), 0))
        elif body := re.search(r"len=(\d+) span\[body\]", line):
            found[-1] = (found[-1][0], found[-1][1] + int(body[1]))
    return [(status, length) for status, length in found if status >= 200]


# Node refuses these, and we read them as browsers do. All other refused cases must be refused here too.
READ_NEVERTHELESS = {
    "HTTP/1.1 with keep-alive disabled and 204 status",  # the connection checks what follows a last response
    "HTTP/1.1 with keep-alive disabled, content-length",
    "Headers separated by CR",
    "Bare CR after response line",
    "Bare CR followed by CR after response line",
    "Invalid space after start line",
    "Only LFs present and no body",
    "Only LFs present",
    "No carriage ret",
    "Spaces in header name",
    "Trailing space on chunked body",
    "No extension after semicolon",
    "Unbalanced chunk extensions quoting",
}
# Node reads these, and we refuse them: other protocols, and input that only a lenient mode accepts.
REFUSED_HERE = {"RTSP response", "ICE response", "Invalid HTTP version (lenient)"}


def nodes_cases(archive: Path) -> list[Case]:
    with tarfile.open(archive) as files:
        names = [name for name in sorted(files.getnames()) if "/response/" in name and name.endswith(".md")]
        return [case for name in names for case in cases_in(files.extractfile(name).read().decode())]  # type: ignore[union-attr]


def as_node_reads(case: Case) -> bool:
    """Whether both readers refuse the stream, or both find the same responses."""
    reader = ResponseReader(Limits())
    reader.feed(case.stream)
    found = []
    while (response := reader.next()) or (response := reader.cut("time")):
        found.append((response.status, len(response.body)))
        if not response.keep_alive:
            break
    if " error " in case.log:
        return reader.failure == PROTOCOL
    return (reader.failure, found) == ("", reported(case.log))


def test_the_cases_of_nodes_parser(recorded_data: Path) -> None:
    archive = recorded_data / "llhttp-tests" / "llhttp-md.tar.xz"
    if not archive.exists():
        pytest.skip("the cases of llhttp (llhttp-tests in TRAPLINE_DATA) are missing")
    cases = nodes_cases(archive)
    assert len(cases) >= 70
    for case in cases:
        differs = case.title in REFUSED_HERE or (case.title in READ_NEVERTHELESS and " error " in case.log)
        assert as_node_reads(case) is not differs, case


# Work and memory


def test_a_megabyte_fed_byte_by_byte_takes_linear_time() -> None:
    """A quadratic reader would take hours here."""
    body = bytes(200_000)
    chunks = b"10\r\n0123456789abcdef\r\n" * 8_000 + b"0\r\n\r\n"
    streams = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + body,
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 10_000 + b"\r\n",
        chunked(chunks),
        chunked(b"30d40\r\n" + body + b"\r\n0\r\n\r\n"),
        chunked(b"1;" + b"e" * 4_000 + b"\r\nx\r\n") + b"0\r\n" + b"T: x\r\n" * 9_000 + b"\r\n",
        b"\r\n" * 30_000 + b"HTTP/1.1 200 OK\r\n\r\n" + body,
    ]
    for stream in streams:
        (response,), failure = read([stream[i : i + 1] for i in range(len(stream))], Limits(headers=20_000))
        assert (stream.endswith(response.head + response.wire), failure) == (True, "")


def test_memory_of_read_responses_is_released() -> None:
    reader = ResponseReader(Limits())
    one = b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n" + bytes(50_000)
    stream = one * 40
    for at in range(0, len(stream), 30_000):
        reader.feed(stream[at : at + 30_000])
        while reader.next() is not None:
            pass
        assert len(reader._data) < 2 * len(one)


# Requests


def test_a_request_is_what_a_server_expects() -> None:
    rest = request_headers("example.com:81", {"User-Agent": "trapline (+http://example.com/)", "Accept": "*/*"})
    lines = request("/a?b=c%20d", rest).split(b"\r\n")
    assert lines == [
        b"GET /a?b=c%20d HTTP/1.1",
        b"Host: example.com:81",
        b"User-Agent: trapline (+http://example.com/)",
        b"Accept: */*",
        b"Connection: keep-alive",
        b"",
        b"",
    ]
    assert b"Connection: close" in request_headers("a", {}, keep_alive=False)


@pytest.mark.parametrize("target", ["", "a", "/a b", "/a\r\nX: y", "/\xe9", "/\t"])
def test_a_target_with_a_line_break_is_an_invariant_error(target: str) -> None:
    with pytest.raises(InvariantError):
        request(target, b"")


@pytest.mark.parametrize("agent", ["a\r\nX: y", "tr\xe4pline"])
def test_headers_cannot_smuggle_lines(agent: str) -> None:
    with pytest.raises(ConfigError, match="User-Agent"):
        request_headers("example.com", {"User-Agent": agent})


@pytest.mark.parametrize("at_once", [1, 7, 10_000])
def test_empty_lines_before_a_head_count_as_part_of_it(at_once: int) -> None:
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    def pieces(data: bytes) -> list[bytes]:
        return [data[at : at + at_once] for at in range(0, len(data), at_once)]

    assert [response.body for response in read(pieces(50 * b"\r\n" + whole + 50 * b"\n" + whole))[0]] == [b"ok", b"ok"]
    assert read(pieces(300 * b"\r\n" + whole)) == ([], TOO_LARGE)
    assert read(pieces(300 * b"\r\n"), ended=False) == ([], TOO_LARGE)


@pytest.mark.parametrize("before", [b"", b"HTTP/1.1 103 Early\r\n\r\n"])
@pytest.mark.parametrize("lines", [150, 190, 199, 200, 201, 400])
@pytest.mark.parametrize("what", [b"s", b"HTTP", b"HTTPS", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"])
def test_endless_empty_lines_fail_equally_however_they_are_cut(before: bytes, lines: int, what: bytes) -> None:
    data = before + b"\r\n" * lines + what
    whole = read([data])
    for size in (1, 2, 7, 300):
        assert read([data[at : at + size] for at in range(0, len(data), size)]) == whole
