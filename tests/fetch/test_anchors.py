"""Links with their anchor texts: the same links as the crawl's own, in the same order, for any bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fetch.test_page import HEADS, htmls
from trapline.fetch.html.anchors import MOST_TEXT, PageLink, read_anchors
from trapline.fetch.html.page import read_page

AGENT = "trapline"
CHARSETS = st.sampled_from([None, "utf-8", "utf-16", "shift_jis", "iso-2022-jp", "windows-1252", "x"])
LINKS = st.lists(
    st.sampled_from(
        [
            "<a href='/x?q=\u00e9'>\u00e9t\u00e9</a>", "<a href=/n rel='me nofollow'>n</a>", "<base href=/d/>", "<area href=' b '>",
            "<link rel=canonical href=c>", "<link rel='x canonical' href=d>", "<iframe src=f></iframe>", "<frame src=''>",
            "<meta http-equiv=refresh content='0; url=r'>", "<meta name=robots content=nofollow>", "<a href>", "<a href=''>", "<template>",
            "</template>", "<svg><a href=s>", "</svg>", "<a href=&#47;e&amp;f rel=&#110;ofollow>", "<a href='\0'>", "<script><a href=no>",
            "</script>", "<!-- <a href=no> -->", "<a href=1 HREF=2>",
        ]
    ),
    max_size=12,
).map("".join)  # fmt: skip


@given(st.one_of(st.binary(), htmls.map(str.encode), HEADS.map(str.encode), LINKS.map(str.encode)), CHARSETS)
def test_the_links_to_follow_are_those_of_the_crawl(body: bytes, charset: str | None) -> None:
    found = read_anchors(body, charset, AGENT)
    assert [link.href for link in found if not link.is_nofollow] == list(read_page(body, charset, AGENT).links)
    for link in found:
        "".join((link.href, link.rel, link.text)).encode()  # no lone surrogates, which no file format can hold
        assert "\0" not in link.text and "\n" not in link.text


@pytest.mark.parametrize(
    ("html", "texts"),
    [
        ("<a href=x>one</a>two", ["one"]),
        ("<a href=x>one<a href=y>two", ["one", "two"]),  # a link ends where the next one begins
        ("<a href=x> a\n <b>bo</b>ld &amp; <i>more</i></a>", ["a bold & more"]),
        ("<a href=x><script>no</script><img alt=no></a>", [""]),
        ("<a href=x>a<br>b<p>c</p></a>", ["a b c"]),
        ("<a href=x><abbr>HTML</abbr></a>", ["HTML"]),  # </abbr> is not </a>
        ("<area href=x>no", [""]),
    ],
)
def test_anchor_texts(html: str, texts: list[str]) -> None:
    assert [link.text for link in read_anchors(html.encode(), None, AGENT)] == texts


def test_element_and_rel_are_told_and_nofollow_links_are_kept() -> None:
    body = b"<a href=x rel=' Me\n NoFollow '>1</a><a href=y rel=next>2</a><link rel=canonical href=z>"
    assert read_anchors(body, None, AGENT) == [
        PageLink("a", "x", "Me NoFollow", "1", True),
        PageLink("a", "y", "next", "2", False),
        PageLink("link", "z", "canonical", "", False),
    ]


def test_texts_are_decoded_by_the_encoding_of_the_page() -> None:
    body = "<a href='/?q=ä'>Übung</a>".encode("windows-1252")
    assert read_anchors(body, "iso-8859-1", AGENT) == [PageLink("a", "/?q=%E4", "", "Übung", False)]


def test_huge_attributes_and_texts_are_bounded() -> None:
    huge = b"x" * 7_000_000
    body = b"<a href='" + huge + b"'>1</a><a title='" + huge + b"' href=y>" + huge[:5_000] + b"</a>"
    (link,) = read_anchors(body, None, AGENT)
    assert (link.href, link.text) == ("y", "x" * MOST_TEXT)
