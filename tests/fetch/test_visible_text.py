"""The text of a page: what a reader sees, whatever the bytes, in time linear in their length."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from tests.fetch.test_page import htmls
from trapline.fetch.html.visible_text import VisibleText, title_of, visible_text

INLINE = st.sampled_from(
    ["one", " two", "<b>three</b>", "&amp;", "&eacute;", "<!-- no -->", "<i>", "</i>", "<img alt=no>", "\n"]
)
BLOCKS = st.sampled_from(
    ["p", "div", "li", "h1", "section", "td", "script", "style", "template", "textarea", "noscript", "span"]
)
PAGES = st.lists(st.tuples(BLOCKS, st.lists(INLINE, max_size=5).map("".join)), max_size=8)


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("a<br>b", "a\nb"),
        ("<p>one</p>\n\n<p> two  words </p>", "one\ntwo words"),
        ("wo<b>rd</b>", "word"),
        ("<table><tr><td>1<td>2<tr><th>3", "1 2\n3"),
        ("x<script>if (a<b) '</b>'</script>y", "xy"),
        ("x<style>p{}</style>y<noscript>z</noscript>", "xyz"),
        ("a<template>b<template>c</template>d</template>e", "ae"),
        ("<svg><style/>seen</svg><script/>not seen", "seen"),  # a slash ends elements of SVG alone
        ("a < b &lt;i&gt; &copy; &#x41;&nosuch; &#99999999;", "a < b <i> © A&nosuch; \ufffd"),
        ("a\0b&#0;c", "ab\ufffdc"),
        ("a<!-- > -->b<!doctype html>c<?php > ?>d", "abc ?>d"),
        ("a<!--> b <!-- c", "a b"),
        ("a<p title='>'>b<p title='", "a\nb"),
        ("a\r\nb\u2028c\x85d", "a b c d"),
    ],
)
def test_text(html: str, expected: str) -> None:
    assert visible_text(html).text == expected


def test_the_first_title_counts_and_is_not_part_of_the_text() -> None:
    assert visible_text("<title> A\n&amp; <b> </title><title>2</title>x") == VisibleText("A & <b>", "x")
    assert visible_text("<title>open") == VisibleText("open", "")


@given(PAGES)
def test_the_words_are_those_of_a_tree(blocks: list[tuple[str, str]]) -> None:
    """Lexbor is the oracle, for the words without blanks between them: the two divide lines in different ways."""
    html = "<body>" + "".join(f"<{name}>{inner}</{name}>" for name, inner in blocks)
    tree = LexborHTMLParser(html)
    tree.strip_tags(["script", "style", "template", "textarea"])
    assert re.sub(r"\s", "", visible_text(html).text) == re.sub(r"\s", "", tree.body.text() if tree.body else "")


@given(st.one_of(st.text(), htmls))
def test_any_text_is_read(html: str) -> None:
    found = visible_text(html)
    assert title_of(html) == found.title
    assert "\0" not in found.title + found.text
    assert found.title == found.title.strip(" ") and "\n\n" not in found.text
    if not re.search("[\ud800-\udfff]", html):
        (found.title + found.text).encode()  # character references add no surrogates


@pytest.mark.parametrize(
    "piece",
    ["<", "<a ", "<a x='", "<!--", "</script", "<script>", "<template>", "<title>", "&#9", "&", "<p>", "<svg/>"],
)
def test_the_time_is_linear(piece: str) -> None:
    def seconds(length: int) -> float:
        html = piece * (length // len(piece))
        began = time.process_time()
        visible_text(html)
        return time.process_time() - began

    seconds(1_000)
    # Quadratic time would make it 64 times as long for 8 times the length.
    assert seconds(800_000) < 24 * max(seconds(100_000), 0.002)


def test_references_of_thousands_of_digits_are_replaced() -> None:
    assert visible_text(f"a&#{'9' * 10_000};b&#x{'f' * 10_000};c").text == "a\ufffdb\ufffdc"
