"""Lists are searched in windows with bounded work: no search holds the interpreter for longer than one window takes."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.fetch.html import markup
from trapline.signals.published import feed_formats, files, sitemap
from trapline.signals.published.feed import CUT, UNREADABLE, read_feed
from trapline.signals.published.files import MOST_TOKEN_BYTES, WINDOW_BYTES
from trapline.signals.published.sitemap import TOO_MANY, read_sitemap

URL, NOW = "http://a.org/s.xml", 1e9
LONG = 10 * WINDOW_BYTES


class Watched:
    """A pattern that records how many bytes each search may look at."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self.pattern, self.spans = pattern, list[int]()

    def finditer(self, file: bytes, at: int = 0, end: int | None = None) -> Iterator[re.Match[bytes]]:
        end = len(file) if end is None else end
        self.spans.append(end - at)
        return self.pattern.finditer(file, at, end)


NOTHING_TO_FIND = [b"<", b"<u", b"<loc ", b"<!-- - ", b" ", b"x", b"\n", b"&", b"<item "]


@pytest.mark.parametrize("piece", NOTHING_TO_FIND, ids=repr)
def test_no_search_of_a_list_goes_beyond_a_window(monkeypatch: pytest.MonkeyPatch, piece: bytes) -> None:
    tokens, lines, tags = Watched(sitemap._tokens(b"")), Watched(sitemap._LINE), Watched(feed_formats._TOKEN)
    monkeypatch.setattr(sitemap, "_tokens", lambda prefix: tokens)
    monkeypatch.setattr(sitemap, "_LINE", lines)
    monkeypatch.setattr(feed_formats, "_TOKEN", tags)
    read_sitemap(b"<urlset>" + piece * (LONG // len(piece)), URL, True, NOW)
    read_sitemap(b"x" + piece * (LONG // len(piece)), URL, True, NOW)
    read_feed(b"<rss>" + piece * (LONG // len(piece)), URL, NOW)
    assert tokens.spans and tags.spans
    assert max(*tokens.spans, *lines.spans, *tags.spans) <= WINDOW_BYTES + MOST_TOKEN_BYTES


PIECES = [
    b"<url><loc>/a</loc><lastmod>2001-01-01</lastmod></url>",
    b"<url>\n",
    b"<loc>http://a.org/b</loc>",
    b"<!-- <url><loc>/hidden</loc> - -- -->",
    b"<!--",
    b"-->",
    b"<![CDATA[",
    b"]]>",
    b"<",
    b"<rss>",
    b"<item><link>/c</link>",
    b"<title><![CDATA[ <link>/d</link> ]]></title>",
    b"</item>",
    b"  \n http://a.org/e",
]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join), st.integers(1, 40))
def test_a_list_is_read_equally_in_windows_of_any_size(body: bytes, window: int) -> None:
    for before in (b"<urlset>", b"", b"<rss>"):
        whole = read_sitemap(before + body, URL, True, NOW), read_feed(before + body, URL, NOW)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(files, "WINDOW_BYTES", window)
            in_windows = read_sitemap(before + body, URL, True, NOW), read_feed(before + body, URL, NOW)
        assert repr(in_windows) == repr(whole)  # repr, in which nan equals nan


def test_a_list_is_searched_up_to_its_limit_of_tags(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sitemap, feed_formats):
        monkeypatch.setattr(module, "_MOST_MARKS", 2 * WINDOW_BYTES)
    hostile = b"<" * (3 * WINDOW_BYTES)
    found = read_sitemap(b"<urlset><url><loc>/a</loc></url>" + hostile + b"<url><loc>/b</loc></url>", URL, True, NOW)
    assert [entry.url for entry in found.entries] == ["http://a.org/a"] and found.problems[TOO_MANY] == 1
    feed = read_feed(b"<rss><item><link>/a</link></item>" + hostile + b"<item><link>/b</link></item>", URL, NOW)
    assert [entry.url for entry in feed.entries] == ["http://a.org/a"] and feed.problems[CUT] == 1


def test_a_list_is_searched_up_to_its_limit_of_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_MOST_PASSED_OVER", 10)
    row = b"<!-- --><url><loc>/%d</loc></url>"
    for comments, problems in ((10, {}), (11, {TOO_MANY: 1})):
        found = read_sitemap(b"<urlset>" + b"".join(row % at for at in range(comments)), URL, True, NOW)
        assert len(found.entries) == 10 and dict(found.problems) == problems


@pytest.mark.parametrize("field", [b"<loc>/%b</loc>", b"<loc>/</loc><lastmod>%b</lastmod>", b"<link>%b</link>"])
def test_the_character_references_of_a_list_are_limited(monkeypatch: pytest.MonkeyPatch, field: bytes) -> None:
    """Each takes microseconds, and a list of 48 MiB has room for ten million."""
    resolved = 0

    def character(reference: re.Match[str]) -> str:
        nonlocal resolved
        resolved += 1
        return "x"

    monkeypatch.setattr(markup, "_character", character)
    monkeypatch.setattr(sitemap, "_MOST_REFERENCES", 1_000)
    monkeypatch.setattr(feed_formats, "_MOST_REFERENCES", 1_000)
    row = field % (b"&#65;" * 50)
    found = read_sitemap(b"<urlset>" + (b"<url>" + row + b"</url>") * 100, URL, True, NOW)
    feed = read_feed(b"<rss>" + (b"<item>" + row + b"</item>") * 100, URL, NOW)
    assert 1_000 < resolved <= 1_050
    assert found.problems[TOO_MANY] + feed.problems[CUT] == 1


def test_the_parts_of_a_text_are_counted_once() -> None:
    parts = feed_formats._FeedXmlReading()
    parts.field = b"link"
    for _ in range(2 * feed_formats._MOST_TEXT):
        parts.text("x")
    assert parts._length == len(parts._parts) == feed_formats._MOST_TEXT


@pytest.mark.parametrize("values", [b"{},", b"1,", b"[]," * 3, b'{"a":1},'])
def test_json_of_more_values_than_any_feed_has_is_not_parsed(monkeypatch: pytest.MonkeyPatch, values: bytes) -> None:
    monkeypatch.setattr("json.loads", lambda text: pytest.fail("it was parsed"))
    body = b'{"version": "https://jsonfeed.org/version/1", "items": [' + values * 110_000 + b"{}]}"
    assert dict(read_feed(body, URL, NOW).problems) == {UNREADABLE: 1}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "gb18030", "iso-8859-7", "shift_jis"])
def test_another_encoding_is_decoded_piece_by_piece(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    monkeypatch.setattr(files, "_PIECE_BYTES", 7)  # within characters too
    name = "utf-8" if encoding.startswith("utf") else encoding
    body = f"<?xml version='1.0' encoding='{name}'?><urlset><url><loc>/α</loc></url>"
    assert files.unpacked(body.encode(encoding), 10_000) == body.encode()


def test_a_completely_damaged_file_is_read_up_to_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_MOST_DAMAGED", 1_000)
    declared = b"<?xml version='1.0' encoding='iso-8859-7'?>"
    read = files.unpacked(declared + b"\xff" * (10 * files._PIECE_BYTES), 1 << 20)
    assert read is not None and 1_000 < read.count("\ufffd".encode()) <= files._PIECE_BYTES
    longer = files.unpacked(declared + b"\xe1" * 100, 120)
    assert longer is not None and len(longer) == 120
