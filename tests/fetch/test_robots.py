"""robots.txt: Google's conformance cases, the examples of the RFC, and matching against a slow twin."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.fetch import failure
from trapline.fetch.robots.answer import FIRST_RETRY_S, GIVEN_UP_AFTER_S, LONGEST_S, SHORTEST_S, lifetime_s, read_answer
from trapline.fetch.robots.parser import (
    ALLOW_ALL,
    DISALLOW_ALL,
    LIMIT_BYTES,
    MOST_WORK,
    Robots,
    RuleLine,
    parse,
    product_token,
    written,
)

# Where the cases (of 2020, for a draft) and RFC 9309 (of 2022) differ, we follow the RFC.
AGAINST_THE_RFC = {
    # 2.2.2: a percent-encoded unreserved octet is decoded before comparison; its table has this very path.
    ("Allow: /foo/bar/%62%61%7A", "http://foo.bar/foo/bar/baz", "FooBot"),
    # 2.2.2: the /robots.txt URI is implicitly allowed.
    ("User-agent: asdfbot", "http://m.example.com/robots.txt", "asdfbot"),
    ("User-agent: BarBot", "http://example.com/robots.txt", "BarBot"),
    ("User-agent: AB42bot", "http://example.com/robots.txt", "AB"),
    ("User-agent: XYZ123bot", "http://example.com/robots.txt", "XYZ"),
}


def rules(*lines: str, agent: str = "trapline") -> Robots:
    return parse("\n".join(lines).encode(), agent)


def target_of(url: str) -> str:
    return re.sub(r"^[a-z]+://[^/?]*", "", url.split("#")[0]) or "/"


def conformance_cases(recorded_data: Path) -> list[tuple[str, dict[str, Any]]]:
    files = json.loads((recorded_data / "robots-google-ctc" / "ctc.json").read_text())
    return [(file["robotstxt_latin1"], expected) for file in files for expected in file["expectations"]]


def answers_as_google(text: str, expected: dict[str, Any]) -> bool:
    robots = parse(text.encode("latin-1"), expected["agent"])
    return robots.allows(target_of(expected["url"])) == expected["allowed"]


def test_google_conformance(recorded_data: Path) -> None:
    cases = conformance_cases(recorded_data)
    wrong = [(text, expected) for text, expected in cases if not answers_as_google(text, expected)]
    assert len(cases) == 400
    explained = {
        (line, url, agent)
        for line, url, agent in AGAINST_THE_RFC
        for text, expected in wrong
        if line in text and (expected["url"], expected["agent"]) == (url, agent)
    }
    assert explained == AGAINST_THE_RFC
    assert len(wrong) == len(AGAINST_THE_RFC)


# --- matching


@cache
def matches_slowly(pattern: str, target: str) -> bool:
    """Matching by the words of RFC 9309, 2.2.3. Exponential without the cache."""
    if pattern in ("", "$"):
        return pattern == "" or target == ""
    if pattern[0] == "*":
        return any(matches_slowly(pattern[1:], target[skipped:]) for skipped in range(len(target) + 1))
    return target[:1] == pattern[0] and matches_slowly(pattern[1:], target[1:])


def allows_slowly(lines: list[RuleLine], target: str) -> bool:
    matching = [(len(line.pattern), line.allow) for line in lines if matches_slowly(line.pattern, target)]
    return max(matching, default=(0, True))[1]


PATTERNS = st.builds(lambda text, end: "/" + text + end, st.text("ab/*", max_size=7), st.sampled_from(["", "$", "*"]))
TARGETS = st.text("ab/", max_size=9).map(lambda text: "/" + text)


@given(st.lists(st.builds(RuleLine, st.booleans(), PATTERNS), max_size=6), TARGETS)
def test_the_longest_matching_rule_decides(lines: list[RuleLine], target: str) -> None:
    assert Robots(lines).allows(target) == allows_slowly(lines, target)


@given(
    st.lists(st.builds(RuleLine, st.booleans(), PATTERNS | st.text("ab/*$ %2f#\xe4:", max_size=9)), max_size=6),
    st.none() | st.floats(0.0, 9e4),
    st.lists(TARGETS, min_size=1, max_size=9),
)
def test_serialised_rules_decide_the_same(lines: list[RuleLine], delay_s: float | None, targets: list[str]) -> None:
    text = [f"{'Allow' if line.allow else 'Disallow'}: {line.pattern}" for line in lines]
    text += [] if delay_s is None else [f"Crawl-delay: {delay_s:f}"]
    once = rules("User-agent: *", *text)
    again = parse(written(once), "trapline")
    assert again.crawl_delay_s == once.crawl_delay_s
    assert [again.allows(target) for target in targets] == [once.allows(target) for target in targets]


@given(st.binary(max_size=300), st.text(max_size=40))
def test_any_bytes_are_a_robots_txt(body: bytes, target: str) -> None:
    assert parse(b"User-agent: *\nDisallow: " + body, "trapline").allows(target) in (True, False)


@pytest.mark.parametrize(
    ("pattern", "target"),
    [
        ("/foo/bar/\u30c4", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%e3%83%84", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%E3%83%84", "/foo/bar/%e3%83%84"),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
        ("/~joe/", "/%7Ejoe/page"),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html"),
        ("/path/foo-%24", "/path/foo-$"),
        ("/a$b", "/a$b"),
        ("/two words", "/two%20words"),
        ('/*?q="x"', "/s?q=%22x%22"),
        ("/*?q={x}", "/s?q={x}"),
    ],
)
def test_paths_are_compared_in_one_form(pattern: str, target: str) -> None:
    assert not rules("User-agent: *", f"Disallow: {pattern}").allows(target)


@pytest.mark.parametrize(
    ("pattern", "target"), [("/a%2Fb", "/a/b"), ("/a/b", "/a%2Fb"), ("/A", "/a"), ("/a%2A", "/ax")]
)
def test_reserved_characters_and_case_differ(pattern: str, target: str) -> None:
    assert rules("User-agent: *", f"Disallow: {pattern}").allows(target)


def test_only_robots_txt_itself_is_always_allowed() -> None:
    assert DISALLOW_ALL.allows("/robots.txt")
    assert not DISALLOW_ALL.allows("/robots.txt.bak")


def test_a_file_that_is_too_costly_to_match_allows_nothing() -> None:
    """Every further piece needs one more search. A hostile file could take a tenth of a second for every page."""
    target = "/" + "a" * 1_999
    lines = [RuleLine(False, "/" + "*a" * count + "*b") for count in range(100)]
    assert sum(3 + count for count in range(100)) * len(target) > MOST_WORK
    assert not Robots(lines).allows(target)
    assert Robots(lines[:10]).allows(target)


# --- groups


def test_a_rule_that_is_repeated_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[RuleLine] = []
    add = Robots._add

    def counted(robots: Robots, line: RuleLine, *wild: Any) -> None:
        added.append(line)
        add(robots, line, *wild)

    monkeypatch.setattr(Robots, "_add", counted)
    rules = parse(b"User-agent: *\n" + b"Allow:/\nDisallow: /a\n" * 20_000 + b"Allow: /a/index.html\n" * 2, "trapline")
    assert len(added) == 4 and rules.allows("/b") and rules.allows("/a/") and not rules.allows("/a/b")


def test_groups_that_name_us_are_merged_and_others_are_ignored() -> None:
    found = rules(
        *("User-agent: other", "User-agent: TrapLine/2.0", "Disallow: /a", "Sitemap: https://x.org/s", "Disallow: /b"),
        *("User-agent: *", "Disallow: /c", "User-agent: trapline", "Disallow: /d"),
    )
    assert [found.allows(path) for path in ("/a", "/b", "/c", "/d")] == [False, False, True, False]


def test_our_group_without_rules_overrides_the_group_for_all() -> None:
    assert rules("User-agent: *", "Disallow: /", "User-agent: trapline", "Disallow:").allows("/")


@pytest.mark.parametrize("name", ["trap", "traplines", "trapline-x", "**", "x trapline"])
def test_other_names_are_not_ours(name: str) -> None:
    assert rules(f"User-agent: {name}", "Disallow: /").allows("/")


def test_records_that_are_not_rules_do_not_end_a_group() -> None:
    """RFC 9309, 2.2.4."""
    found = rules("User-agent: trapline", "Crawl-delay: 3", "Sitemap: /s", "User-agent: other", "Disallow: /a")
    assert (found.allows("/a"), found.crawl_delay_s) == (False, 3.0)


@pytest.mark.parametrize("name", ["Disalow", "dissallow", "DISALLOW ", "disallow\t"])
def test_misspellings_that_google_accepts(name: str) -> None:
    assert not rules("useragent: *", f"{name}: /").allows("/")


def test_product_token() -> None:
    assert [product_token(agent) for agent in ("trapline/0.1 (+x)", "my_bot-x", "2bot", "")] == [
        "trapline",
        "my_bot-x",
        "",
        "",
    ]


# --- other records of the file


@pytest.mark.parametrize(
    ("value", "delay_s"),
    [("10", 10.0), ("0.5", 0.5), (".25 # s", 0.25), ("2s", 2.0), ("1e9", 1.0), ("9" * 400, 86_400.0), ("0", 0.0)]
    + [(value, None) for value in ("-5", "nan", "inf", "soon", "")],
)
def test_crawl_delay(value: str, delay_s: float | None) -> None:
    assert rules("User-agent: *", f"Crawl-delay: {value}").crawl_delay_s == delay_s


def test_the_delay_is_that_of_our_group_and_the_longest_of_several() -> None:
    lines = (
        "User-agent: *",
        "Crawl-delay: 50",
        "Disallow:",
        "User-agent: trapline",
        "Crawl-delay: 5",
        "Crawl-delay: 2",
    )
    assert rules(*lines).crawl_delay_s == 5.0
    assert rules(*lines, agent="other").crawl_delay_s == 50.0


def test_sitemaps_belong_to_no_group_and_are_listed_once() -> None:
    lines = (
        "Sitemap: https://x.org/1.xml",
        "User-agent: other",
        "site-map: https://x.org/2.xml",
        "Sitemap: https://x.org/1.xml",
    )
    assert rules(*lines).sitemaps == ("https://x.org/1.xml", "https://x.org/2.xml")


def test_a_file_without_rules_for_us_gives_the_shared_object() -> None:
    for body in (b"", b"<html><body>not found</body></html>", b"User-agent: other\nDisallow: /", b"\x00\xff\xfe"):
        assert parse(body, "trapline") is ALLOW_ALL


@pytest.mark.parametrize("coding", ["utf-16-le", "utf-16-be"])
def test_a_file_with_a_utf_16_byte_order_mark_is_read_as_utf_16(coding: str) -> None:
    said = "\ufeffUser-agent: *\r\nDisallow: /priv\u00e9\r\n\r\nSitemap: http://a.org/\u0d0a"
    robots = parse(said.encode(coding), "trapline")
    assert not robots.allows("/priv%C3%A9/x") and robots.allows("/priv") and len(robots.sitemaps) == 1
    cut = parse(said.encode(coding)[:-1], "trapline")
    assert not cut.allows("/priv%C3%A9/x")


def test_utf_16_without_a_byte_order_mark_has_no_known_rule() -> None:
    assert parse("User-agent: *\nDisallow: /".encode("utf-16-le"), "trapline") is ALLOW_ALL


def test_the_line_that_the_limit_cuts_is_dropped_in_utf_16_too() -> None:
    begin, cut = "\ufeffUser-agent: *\nDisallow: /a\n", "Disallow: /b"
    filling = "#" * (LIMIT_BYTES // 2 - len(begin) - len(cut) - 1) + "\n"
    body = (begin + filling + cut + "cd").encode("utf-16-le")
    robots = parse(body, "trapline")
    assert len(body) > LIMIT_BYTES and not robots.allows("/a") and robots.allows("/b")


@pytest.mark.parametrize("space", ["\u00a0", "\u2003", "\u3000", "\u200b", "\ufeff"])
def test_a_space_that_is_not_ascii_belongs_to_the_path(space: str) -> None:
    """RFC 9309, 2.2: white space is SP and HTAB. A path may have any other character that is not a control character."""
    robots = rules("User-agent: *", f"Disallow: /a{space}", f"Disallow: /b{space} \t")
    for path in ("/a", "/b"):
        assert robots.allows(path) and robots.allows(f"{path}/x")
        assert not robots.allows(path + quote(space)) and not robots.allows(f"{path}{quote(space)}/x")


def test_bytes_behind_the_limit_and_the_line_that_it_cuts_are_ignored() -> None:
    begin, cut = b"User-agent: *\nDisallow: /first\n", b"Disallow: /private"
    filling = b"#" * (LIMIT_BYTES - len(begin) - len(cut)) + b"\n"
    found = parse(begin + filling + cut + b"\nDisallow: /last\n", "trapline")
    assert [found.allows(path) for path in ("/first", "/", "/private", "/last")] == [False, True, True, True]
    # With two octets less before it, the line and its end fit.
    found = parse(begin + filling[2:] + cut + b"\nDisallow: /last\n", "trapline")
    assert [found.allows(path) for path in ("/private", "/last")] == [False, True]


# --- the meaning of an answer

FILE = b"User-agent: *\nDisallow: /private\n"


@pytest.mark.parametrize(
    ("status", "kind", "public", "private"),
    [(200, "", True, False), (203, "", True, False), (302, "", True, True), (404, failure.HTTP, True, True)]
    + [(401, "", True, True), (403, failure.CLOSED, True, True), (410, "", True, True), (429, "", False, False)]
    + [(500, failure.HTTP, False, False), (503, "", False, False), (999, "", False, False), (100, "", False, False)]
    + [(200, failure.ENCODING, False, False), (200, failure.TIMEOUT, False, False)]
    + [(0, kind, False, False) for kind in failure.KINDS],
)
def test_what_a_status_allows(status: int, kind: str, public: bool, private: bool) -> None:
    verdict = read_answer(status, kind, FILE, "trapline")
    assert (verdict.robots.allows("/"), verdict.robots.allows("/private")) == (public, private)
    assert verdict.reason


@pytest.mark.parametrize(
    ("max_age_s", "kept_s"), [(0.0, SHORTEST_S), (5.0, SHORTEST_S), (7_200.0, 7_200.0), (1e9, LONGEST_S)]
)
def test_cache_control_is_respected_between_an_hour_and_a_day(max_age_s: float, kept_s: float) -> None:
    assert lifetime_s(max_age_s) == kept_s


@pytest.mark.parametrize("status", [200, 301, 404])
@pytest.mark.parametrize(("left_s", "expires_in_s"), [(None, LONGEST_S), (0.5, 0.5), (7_200, 7_200), (1e9, LONGEST_S)])
def test_an_answer_is_valid_for_its_remaining_time_and_at_most_a_day(
    status: int, left_s: float | None, expires_in_s: float
) -> None:
    assert read_answer(status, "", FILE, "trapline", max_age_s=left_s).expires_in_s == expires_in_s


@pytest.mark.parametrize("status", [0, 429, 503])
@pytest.mark.parametrize(
    ("lasted_s", "robots"),
    [(0.0, DISALLOW_ALL), (GIVEN_UP_AFTER_S - 1.0, DISALLOW_ALL), (GIVEN_UP_AFTER_S, ALLOW_ALL)],
)
def test_a_file_unreachable_for_thirty_days_counts_as_missing(status: int, lasted_s: float, robots: Robots) -> None:
    verdict = read_answer(status, "", b"", "trapline", unreachable_for_s=lasted_s)
    assert verdict.robots is robots
    assert verdict.expires_in_s == (FIRST_RETRY_S if robots is DISALLOW_ALL else LONGEST_S)


def test_retry_after_is_respected() -> None:
    assert read_answer(503, failure.HTTP, b"", "trapline", retry_after_s=900).expires_in_s == 900
