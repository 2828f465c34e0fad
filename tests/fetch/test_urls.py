"""Canonical URLs follow the WHATWG standard to the letter, one page has one text, and no text raises an exception."""

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from ada_url import URL
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.effort import examples
from trapline.fetch import urls as urls_module
from trapline.fetch.urls import MOST_URL, canonical, host_port, is_dynamic, origin, plain, target

PARTS = ("href", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash", "origin")
BASE = "http://example.org/dir/page?query"

urls = st.text(alphabet=st.sampled_from("aZ09:/?#[]@!$&'()*+,;=-._~%\\ \t\néß中İ\u200d\ud800\0"), max_size=60)
near_urls = st.builds(
    "{}{}{}".format, st.sampled_from(["", "http://", "https:", "//", "HTTP://a.b/", "ftp://"]), urls, urls
)
texts = st.one_of(st.text(), urls, near_urls)


def cases(recorded_data: Path) -> list[dict[str, Any]]:
    found = json.loads((recorded_data / "wpt" / "urltestdata.json").read_text(encoding="utf-8"))
    return [case for case in found if isinstance(case, dict)]


def scalar(text: str) -> str:
    """Replace lone surrogates, as the web does when it turns strings into URLs."""
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
    """Whether our result is the standard's, less the fragment and credentials, for URLs that can be crawled."""
    expected = None
    if not case.get("failure") and case["protocol"] in ("http:", "https:"):
        empty_query = "?" if case["href"].partition("#")[0].endswith("?") else ""
        expected = case["protocol"] + "//" + case["host"] + case["pathname"] + case["search"] + empty_query
    return canonical(case["input"], case["base"]) == expected


def test_the_library_passes_every_case_of_the_standard(recorded_data: Path) -> None:
    found = cases(recorded_data)
    assert len(found) == 891
    assert [case for case in found if not library_passes(case)] == []


def test_canonical_is_the_standard_less_fragment_and_credentials(recorded_data: Path) -> None:
    assert [case for case in cases(recorded_data) if not canonical_passes(case)] == []


@given(texts, st.one_of(st.none(), st.just(BASE), texts))
@example("http://" + "a" * 300 + "/", None)
@example("x" * 1_000_000, BASE)
@example("\ud800", "http://\udfff/")
@example("\0" * 99, BASE)
def test_any_text_gives_no_url_or_one_that_is_its_own_canonical_form(text: str, base: str | None) -> None:
    url = canonical(text, base)
    if url is not None:
        assert url.isascii() and url.startswith(("http://", "https://")) and len(url) <= MOST_URL
        assert "#" not in url and "@" not in origin(url)
        assert canonical(url) == url == canonical(url, BASE)
        assert origin(url) + target(url) == url and target(url).startswith("/")


@given(near_urls)
def test_the_parts_of_a_url_agree_with_the_library(text: str) -> None:
    url = canonical(text, BASE)
    if url is not None:
        whole = URL(url)
        scheme, host, port = host_port(origin(url))
        assert origin(url) == whole.origin
        assert scheme == whole.protocol[:-1] and host == whole.hostname.strip("[]")
        assert port == int(whole.port or {"http": 80, "https": 443}[scheme])
        assert is_dynamic(url) == ("?" in whole.href)


def test_urls_that_a_server_may_distinguish_stay_different() -> None:
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


def test_the_length_of_a_url_is_limited() -> None:
    longest = "http://a/" + "b" * (MOST_URL - 9)
    assert canonical(longest) == longest == canonical(longest + "#" + "c" * 100)
    assert canonical(longest + "b") is None


MARKS = "\u0300\u0316"  # the normalisation must swap each pair of these marks
ENDLESS = {
    "marks": "http://a" + MARKS * 3_950 + "/",
    "just too many marks": "http://a" + MARKS * 40 + "/",
    "percent-encoded": "http://a" + "%CC%80%cc%96" * 300,
    "half percent-encoded": "http://a" + "\u0300%CC%96" * 300,
    "soft hyphens between": "//a" + "\u0300\xad\u0316" * 2_000,
    "line ends between": "ht\ntp:/\t/a" + "\u0300\r\u0316\n" * 1_000,
    "marks of a letter that is none": "https:a" + "\u0f73" * 900,
    "a port and a name before": "http://me:pw@a.a" + MARKS * 1_000 + ":80/",
    "backslashes": "  http:\\\\a" + MARKS * 1_000,
    "another scheme": "file://a" + MARKS * 3_950,
    "punycode in wide letters": "http://\uff58n--a-" + "vbba" * 900,
    "behind a dot that is none": "http://a\u3002" + MARKS * 1_000,
}


@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS)
def test_a_host_label_too_long_for_dns_is_not_parsed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser's time grows with the square of the number of marks."""
    parsed: list[str] = []
    monkeypatch.setattr(urls_module, "join_url", lambda base, url: parsed.append(url) or "http://a/")
    assert canonical(text, BASE) is None and not parsed


@pytest.mark.parametrize("path", ["/", "", "?", "#", "../", "/a/", "http:", "http:/", "http://a/", "//a?", "//a\\"])
def test_combining_marks_behind_the_host_are_unlimited(path: str) -> None:
    assert canonical(path + MARKS * 80, BASE) is not None


@pytest.mark.parametrize("letter", ["\u1f82", "\u1e96", "\u01d6", "\uac01", "\u4e2d", "\xdf"])
def test_the_longest_labels_of_dns_are_read_in_any_notation(letter: str) -> None:
    name = letter * 40
    forms = [name, unicodedata.normalize("NFD", name), unicodedata.normalize("NFD", name).upper(), "\xad".join(name)]
    found = [canonical(f"http://{form}.example/") for form in forms[: 2 if letter in "\xdf\u1f82" else 4]]
    assert found == [URL(f"http://{name}.example/").href] * len(found)


def test_every_host_name_of_the_suites_is_read_as_the_library_reads_it(recorded_data: Path) -> None:
    for suite in ("IdnaTestV2.json", "toascii.json"):
        for case in json.loads((recorded_data / "wpt" / suite).read_text(encoding="utf-8")):
            if isinstance(case, dict):
                text = f"http://{case['input']}/"
                whole = parsed({"input": text, "base": None, "href": ""})
                assert canonical(text) == (whole and urls_module._without_credentials(whole["href"].partition("#")[0]))


@pytest.mark.parametrize(
    "text", ["ftp://a/", "mailto:a@b", "javascript:0", "data:text/html,x", "http://", "http:///", "//a", "x", ""]
)
def test_a_text_that_is_not_an_absolute_http_url_is_refused(text: str) -> None:
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
@settings(max_examples=examples(800))
def test_a_plain_href_equals_its_canonical_form(pieces: list[str], of_page: list[str], secure: bool) -> None:
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
