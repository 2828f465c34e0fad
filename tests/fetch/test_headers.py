"""Headers are read as their standards say, and any bytes are read without an exception."""

import json
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.fetch.html.encoding import named
from trapline.fetch.html.page import NOARCHIVE, NOFOLLOW, NOINDEX
from trapline.fetch.http.headers import MOST_RETRY_S, content_type, link_targets, retry_after_s, robots_marks

garbage = st.one_of(
    st.binary(), st.text(alphabet=' \t,;:="\\<>/-+0129MonJanGMTrelcharset', max_size=50).map(str.encode)
)


MIME_FILES = ("mime-types.json", "generated-mime-types.json")


def mime_cases(recorded_data: Path, name: str) -> list[dict[str, Any]]:
    found = json.loads((recorded_data / "wpt" / name).read_text(encoding="utf-8"))
    # A value with a character beyond one byte cannot be received.
    return [case for case in found if not isinstance(case, str) and all(ord(char) < 256 for char in case["input"])]


def read_as_the_standard(case: dict[str, Any]) -> bool:
    mime, charset = content_type(case["input"].encode("latin-1"))
    encoding = (charset and named(charset)) if "encoding" in case else None
    return (mime, encoding) == (
        (case["output"] or "").partition(";")[0],
        case.get("encoding") and case["encoding"].lower(),
    )


@pytest.mark.parametrize("name", MIME_FILES)
def test_mime_types_are_read_as_the_standard_says(recorded_data: Path, name: str) -> None:
    assert [case for case in mime_cases(recorded_data, name) if not read_as_the_standard(case)] == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'<a>; rel=next, <b>;rel="prev" ; title="x, <y>; rel=no"', [("a", "next"), ("b", "prev")]),
        (b"< /a > ; REL=Canonical", [("/a", "canonical")]),
        (b'<a>; rel="alternate NoFollow", <b>; rel="preload"; as=font, <c>; rel=stylesheet', []),
        (b'<a>; rel="https://api.w.org/", <b>; rel=next; anchor="#x", <c>', []),
        (b"<a>; rel=alternate; type=application/json, <b>; rel=alternate; type=text/html", [("b", "alternate")]),
        (b"<a>; rel=next; rel=preload", [("a", "next")]),  # the first value counts, RFC 8288 section 3.3
        (b'<a>; rel="ne\\xt"', [("a", "next")]),
        (b"<a,b;c>;rel=next", [("a,b;c", "next")]),
    ],
)
def test_link_headers(value: bytes, expected: list[tuple[str, str]]) -> None:
    assert link_targets(value) == expected


@pytest.mark.parametrize(
    ("value", "marks"),
    [
        (b"noindex", NOINDEX),
        (b"NONE", NOINDEX | NOFOLLOW),
        (b"trapline: noindex, nofollow", NOINDEX | NOFOLLOW),
        (b"otherbot: noindex, nofollow", 0),
        (b"otherbot: none, TrapLine : noarchive", NOARCHIVE),
        (b"unavailable_after: Wed, 03 Dec 2025 13:09:53 GMT, noindex", NOINDEX),
        (b"max-snippet: 5, nofollow", NOFOLLOW),
        (b"all, index", 0),
        (b"", 0),
    ],
)
def test_robots_tags(value: bytes, marks: int) -> None:
    assert robots_marks(value, "trapline") == marks


@given(st.integers(0, 4 * 10**9), st.floats(0, 4e9))
def test_retry_after_as_a_date_equals_retry_after_in_seconds(at: int, now_wall: float) -> None:
    by_date = retry_after_s(formatdate(at, usegmt=True).encode(), now_wall)
    assert by_date == min(max(at - now_wall, 0.0), MOST_RETRY_S)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (b" 7 ", 7.0),
        (b"1.5", 1.5),
        (b"-3", 0.0),
        (b"9" * 5_000, MOST_RETRY_S),
        (b"Sunday, 06-Nov-94 08:49:37 GMT", 0.0),
        (b"Sun Nov  6 08:49:37 1994", 0.0),
        (b"", None),
        (b"nan", None),
        (b"1e3", None),
        (b"tomorrow", None),
        (b"Wed, 21 Oct 99999999999 07:28:00 GMT", None),
    ],
)
def test_forms_of_retry_after(value: bytes, seconds: float | None) -> None:
    assert retry_after_s(value, 1.7e9) == seconds


@given(garbage)
def test_any_bytes_are_read(value: bytes) -> None:
    mime, _ = content_type(value)
    assert mime == mime.lower()
    assert all(rel for _, rel in link_targets(value))
    assert 0 <= robots_marks(value, "trapline") <= NOINDEX | NOFOLLOW | NOARCHIVE
    assert 0 <= (retry_after_s(value, 1.7e9) or 0) <= MOST_RETRY_S


def test_only_the_first_of_very_many_links_and_parameters_are_read() -> None:
    many = b", ".join(b"</%d>; rel=next" % i for i in range(3_000))
    assert link_targets(many) == [(f"/{i}", "next") for i in range(1_024)]
    assert link_targets(b"</a>" + b";a" * 31 + b"; rel=next") == [("/a", "next")]
    assert link_targets(b"</a>" + b";a" * 28_000 + b"; rel=next, </b>; rel=next") == [("/b", "next")]
