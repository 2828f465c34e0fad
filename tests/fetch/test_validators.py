"""Whatever validators a server sends, a request repeats complete header lines of bounded size, or nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.fetch.http.headers import Validators, conditional, modified_at, validators_of
from trapline.fetch.http.http1 import request, request_headers
from trapline.fetch.http.response import headers_of

DATE = b"Sun, 12 Oct 2025 07:28:00 GMT"
NASTY = st.lists(
    st.sampled_from([b'"', b"W/", b"a", b"\r\n", b"\n", b" ", b",", b"*", b"\0", b"\xff", b":", b"x" * 600])
)
VALUES = st.one_of(st.binary(max_size=1500), NASTY.map(b"".join))
HEADERS = request_headers("a.example", {"User-Agent": "x"})
REQUEST = request("/a?b", HEADERS)


@given(VALUES, VALUES)
def test_no_value_can_add_a_header_line(etag: bytes, modified: bytes) -> None:
    """Also if the value did not come from `validators_of`."""
    lines = conditional(Validators(etag, modified)).split(b"\r\n")
    assert lines.pop() == b"" and len(lines) <= 2
    for line in lines:
        assert line.startswith((b"If-None-Match: ", b"If-Modified-Since: "))
        assert len(line) <= 1024 + 20 and b"\n" not in line and b"\r" not in line and b"\0" not in line


@given(VALUES, VALUES)
def test_a_conditional_request_is_the_request_plus_the_condition_lines(etag: bytes, modified: bytes) -> None:
    validators = validators_of({b"etag": etag, b"last-modified": modified})
    sent = request("/a?b", HEADERS, conditional(validators))
    assert sent.endswith(b"\r\n\r\n") and sent.count(b"\r\n\r\n") == 1 and sent.startswith(REQUEST[:-2])
    found = headers_of(sent.replace(b"GET /a?b HTTP/1.1", b"HTTP/1.1 200 OK"), 99) or {}
    assert found.get(b"if-none-match", b"") == validators.etag
    assert found.get(b"if-modified-since", b"") == validators.modified.strip()


@given(VALUES, VALUES)
def test_a_stored_validator_is_the_one_sent_or_nothing(etag: bytes, modified: bytes) -> None:
    found = validators_of({b"etag": etag, b"last-modified": modified})
    assert found.etag in (etag, b"") and found.modified in (modified, b"")


@pytest.mark.parametrize("etag", [b'"a"', b'W/"a"', b'""', b'"a,b"', b'"\xe9"', b"67ab-43", b"1a2b=="])
def test_valid_etags_are_stored(etag: bytes) -> None:
    assert validators_of({b"etag": etag}) == Validators(etag, b"")


@pytest.mark.parametrize("etag", [b"*", b'"a", "b"', b"a,b", b'"a', b'w/"a"', b'"a b"', b"", b'"' + b"x" * 1024 + b'"'])
def test_etags_that_would_change_their_meaning_in_a_request_are_not_stored(etag: bytes) -> None:
    """A star means every page, and a comma makes a list."""
    assert validators_of({b"etag": etag, b"last-modified": DATE}) == Validators(b"", DATE)


def test_without_validators_a_request_is_unchanged() -> None:
    assert conditional(Validators()) == b""
    assert validators_of({}) == Validators()


def test_a_304_answer_may_bring_a_new_etag() -> None:
    old = Validators(b'"1"', DATE)
    assert old.renewed({b"etag": b'"2"'}) == Validators(b'"2"', DATE)
    assert old.renewed({}) == old.renewed({b"etag": b"*"}) == old


@pytest.mark.parametrize(
    ("modified", "at"),
    [
        (DATE, 1_760_254_080.0),
        (b"Sunday, 12-Oct-25 07:28:00 GMT", 1_760_254_080.0),
        (b"Sun Oct 12 07:28:00 2025", 1_760_254_080.0),
        (b"Thu, 01 Jan 1970 00:00:00 GMT", None),
        (b"Tue, 12 Oct 2060 07:28:00 GMT", None),
        (b"yesterday", None),
        (b"", None),
    ],
)
def test_a_plausible_last_modified_date_is_believed(modified: bytes, at: float | None) -> None:
    assert modified_at(Validators(b"", modified), 1_770_000_000.0) == at


def test_a_last_modified_date_of_now_is_ignored() -> None:
    assert modified_at(Validators(b"", DATE), 1_760_254_082.0) is None
