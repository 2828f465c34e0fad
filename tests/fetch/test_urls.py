"""Canonical URLs: WHATWG to the letter, one text for one page, and no text that breaks it."""

import json
from pathlib import Path
from typing import Any

import pytest
from ada_url import URL
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from trapline.fetch.urls import MOST_URL, canonical, host_port, is_dynamic, origin, plain, target

PARTS = ("href", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash", "origin")
BASE = "http://example.org/dir/page?query"

urls = st.text(alphabet=st.sampled_from("aZ09:/?#[]@!$&'()*+,;=-._~%\\ \t\néß中İ\u200d\ud800\0"), max_size=60)
near_urls = st.builds(
    "{}{}{}".format, st.sampled_from(["", "http://", "https:", "//", "HTTP://a.b/", "ftp://"]), urls, urls
)
texts = st.one_of(st.text(), urls, near_urls)


def cases(shared_data: Path) -> list[dict[str, Any]]:
    found = json.loads((shared_data / "wpt" / "urltestdata.json").read_text(encoding="utf-8"))
    return [case for case in found if isinstance(case, dict)]


def scalar(text: str) -> str:
    """As the web turns strings into URLs: lone surrogates are replaced."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def parsed(case: dict[str, Any]) -> dict[str, str] | None:
    base = case["base"]
    try:
        url = URL(scalar(case["input"]), None if base is None else scalar(base))
    except ValueError:
        return None
    return {part: getattr(url, part) for part in PARTS if part in case}


def library_passes(case: dict[str, Any]) -> bool:
    return parsed(case) == (None if case.get("failure") else {part: case[part] for part in PARTS if part in case})


def canonical_passes(case: dict[str, Any]) -> bool:
    """The standard, less the fragment and credentials, of what can be crawled."""
    expected = None
    if not case.get("failure") and case["protocol"] in ("http:", "https:"):
        empty_query = "?" if case["href"].partition("#")[0].endswith("?") else ""
        expected = case["protocol"] + "//" + case["host"] + case["pathname"] + case["search"] + empty_query
    return canonical(case["input"], case["base"]) == expected


def test_the_library_passes_every_case_of_the_standard(shared_data: Path) -> None:
    found = cases(shared_data)
    assert len(found) == 891
    assert [case for case in found if not library_passes(case)] == []


def test_canonical_is_the_standard_less_fragment_and_credentials(shared_data: Path) -> None:
    assert [case for case in cases(shared_data) if not canonical_passes(case)] == []


@given(texts, st.one_of(st.none(), st.just(BASE), texts))
@example("http://" + "a" * 300 + "/", None)
@example("x" * 1_000_000, BASE)
@example("\ud800", "http://\udfff/")
@example("\0" * 99, BASE)
def test_any_text_gives_a_url_that_stays_as_it_is_or_none(text: str, base: str | None) -> None:
    url = canonical(text, base)
    if url is not None:
        assert url.isascii() and url.startswith(("http://", "https://")) and len(url) <= MOST_URL
        assert "#" not in url and "@" not in origin(url)
        assert canonical(url) == url == canonical(url, BASE)
        assert origin(url) + target(url) == url and target(url).startswith("/")


@given(near_urls)
def test_the_pieces_agree_with_the_library(text: str) -> None:
    url = canonical(text, BASE)
    if url is not None:
        whole = URL(url)
        scheme, host, port = host_port(origin(url))
        assert origin(url) == whole.origin
        assert scheme == whole.protocol[:-1] and host == whole.hostname.strip("[]")
        assert port == int(whole.port or {"http": 80, "https": 443}[scheme])
        assert is_dynamic(url) == ("?" in whole.href)


def test_what_a_server_may_tell_apart_stays_apart() -> None:
    apart = [
        "http://a/%7e",
        "http://a/%7E",
        "http://a/~",
        "http://a/?",
        "http://a/",
        "http://a//",
        "http://a/A",
        "http://a/a",
    ]
    assert [canonical(url) for url in apart] == apart
    assert canonical("http://a/?b=1&a=2&b=1") == "http://a/?b=1&a=2&b=1"


def test_a_url_may_have_so_many_characters_and_no_more() -> None:
    longest = "http://a/" + "b" * (MOST_URL - 9)
    assert canonical(longest) == longest == canonical(longest + "#" + "c" * 100)
    assert canonical(longest + "b") is None


@pytest.mark.parametrize(
    "text", ["ftp://a/", "mailto:a@b", "javascript:0", "data:text/html,x", "http://", "http:///", "//a", "x", ""]
)
def test_what_is_no_page_by_itself(text: str) -> None:
    assert canonical(text) is None


PIECES = [
    "/",
    "a",
    "b.html",
    "..",
    ".",
    "../",
    "./",
    "?",
    "x=1",
    "&",
    "#",
    "%7E",
    "%2e",
    "~",
    "//",
    ":",
    " ",
    "A",
    "-",
    "é",
    "\\",
    ";",
    "",
    "index",
    "@",
]


@given(st.lists(st.sampled_from(PIECES), max_size=7), st.lists(st.sampled_from(PIECES), max_size=4), st.booleans())
@settings(max_examples=800)
def test_a_plain_href_is_what_its_canonical_form_is(pieces: list[str], of_page: list[str], secure: bool) -> None:
    base = canonical(("https" if secure else "http") + "://a.org:81/" + "".join(of_page))
    assume(base is not None and origin(base) == ("https" if secure else "http") + "://a.org:81")
    path = target(base).partition("?")[0]
    href = "".join(pieces)
    found = plain(href, origin(base), path[: path.rfind("/") + 1])
    assert found is None or found == canonical(href, base)


def test_most_hrefs_are_plain() -> None:
    hrefs = ["/a/b.html", "b.html", "../x/y-1.html", "../../z", "/s?q=1&r=a%20b", "/", "/x#top"]
    assert [plain(href, "http://a.org", "/d/e/") for href in hrefs] == [
        canonical(href, "http://a.org/d/e/f") for href in hrefs
    ]
