"""Cookies of any form, from servers and in files: nothing raises, what is sent is one line, and no value is recorded."""

import math
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from trapline.errors import ConfigError
from trapline.fetch.http.cookies import MOST_BYTES, MOST_OF_HOST, CookieJar, read_cookies
from trapline.fetch.http.http1 import ResponseReader
from trapline.fetch.http.private_headers import PrivateHeaders
from trapline.fetch.http.response import Response, headers_of
from trapline.fetch.limits import Limits

NUMBERS = ("5", "-5", "--5", "-", "²", "٥", "1_0", "+1", "0x1", " 7", "9" * 30, "-" + "9" * 5_000, "1e9", "nan", "inf")
DATES = ("Wed, 21-Oct-2026 07:28:00 GMT", "Wed, 21 Oct 99999 07:28:00 GMT", "1 Jan 0 0:0:0 +9999999", "²-Oct-2026", "0")
NAMES = ("Set-Cookie", "set-cookie2", "SET-COOKIE ", "Set-Cookie\r\n ", "X-A", " Set-Cookie", "")
PARTS = (
    "a=b",
    "=",
    "a",
    ";",
    "; Max-Age=",
    "; Expires=",
    "; Path=",
    "; Secure",
    "/",
    "\r",
    "\r\r",
    "\n ",
    "\r\n\t",
    "\0",
    "\t",
    ":",
    "é",
)
garbage = st.lists(st.sampled_from((*PARTS, *NUMBERS, *DATES)) | st.text(max_size=5), max_size=8).map("".join)
ages = st.builds("a=b; Max-Age={}".format, st.sampled_from(NUMBERS))
expiries = st.builds("a=b; Expires={}".format, st.sampled_from(DATES))
values = garbage | ages | expiries
fields = st.builds("{}:{}".format, st.sampled_from(NAMES), values)
line_ends = st.sampled_from(["\r\n", "\n"])


def answer(fields: list[str], trailers: list[str], end: str) -> Response | None:
    lines = ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked", *fields, "", "2", "ab", "0", *trailers, "", ""]
    reader = ResponseReader(Limits())
    reader.feed(end.join(lines).encode())
    return reader.next() or reader.cut("time")


def set_cookies(head: bytes) -> set[bytes]:
    found = headers_of(head, 10_000) or {}
    of_both = [found[name] for name in (b"set-cookie", b"set-cookie2") if name in found]
    return {value.strip() for values in of_both for value in values.split(b",")}


def is_one_line(sent: bytes) -> bool:
    return not sent or (
        sent.startswith(b"Cookie: ") and sent.endswith(b"\r\n") and not any(byte < 32 for byte in sent[:-2])
    )


@settings(max_examples=examples(600))
@given(st.lists(fields, max_size=6), st.lists(fields, max_size=3), line_ends, st.booleans())
def test_any_answer_is_taken_and_no_cookie_of_it_recorded(
    fields: list[str], trailers: list[str], end: str, is_secure: bool
) -> None:
    response = answer(fields, trailers, end)
    if response is None:
        return
    jar, body, before = CookieJar(), response.body, headers_of(response.head, 10_000) or {}
    origin = "https://a.org" if is_secure else "http://a.org"
    private = PrivateHeaders(origin, b"", jar, True)
    private.received("/deep/page?x", response, 100.0)
    assert is_one_line(jar.line("a.org", "/deep/page", is_secure, 100.0))
    assert private.sent(b"GET / HTTP/1.1\r\n\r\n", "/", 100.0).count(b"\r\n\r\n") == 1
    after = headers_of(response.head, 10_000) or {}
    trailing = b"\n" + response.wire[len(response.wire) - response.trailers :] + b"\r\n\r\n"
    assert set_cookies(response.head) | set_cookies(trailing) <= {b"(not recorded)", b""}
    kept = {name: value for name, value in before.items() if not name.startswith(b"set-cookie")}
    assert {name: after.get(name) for name in kept} == kept and response.body == body


@settings(max_examples=examples(200))
@given(st.lists(st.tuples(st.sampled_from(["a.org", "b.org", "c.org"]), values), max_size=60))
def test_a_jar_counts_its_bytes_and_stays_within_its_bounds(answers: list[tuple[str, str]]) -> None:
    jar = CookieJar()
    for now, (host, value) in enumerate(answers):
        jar.keep(host, "/", False, f"HTTP/1.1 200 OK\r\nSet-Cookie: {value}\r\n\r\n".encode(), float(now))
    held = [cookie for own in jar._set.values() for cookie in own.values()]
    assert all(0 < len(own) <= MOST_OF_HOST for own in jar._set.values())
    assert all(len(cookie.pair) <= MOST_BYTES and not math.isnan(cookie.expires) for cookie in held)
    assert jar._set_bytes == sum(400 + 2 * len(cookie.pair) + len(cookie.path) for cookie in held)


cells = st.sampled_from(("a.org", ".a.org", "TRUE", "FALSE", "/", "name", "", "#HttpOnly_a.org", *NUMBERS)) | garbage
times = st.builds("a.org\tFALSE\t/\tFALSE\t{}\tname\tvalue".format, st.sampled_from(NUMBERS))
names = st.builds("a.org\tFALSE\t/\tFALSE\t5\t{}\t{}".format, garbage, garbage)
rows = st.lists(cells, max_size=8).map("\t".join) | times | names


@settings(max_examples=examples(200))
@given(st.lists(rows, max_size=3))
def test_a_file_of_any_text_is_read_or_refused_in_one_line(rows: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cookies.txt"
        file.write_text("\n".join(rows), encoding="utf-8", newline="")
        try:
            jar = read_cookies(file)
        except ConfigError as error:
            assert "\n" not in str(error)
            return
    assert is_one_line(jar.line("a.org", "/", True, 0.0))
