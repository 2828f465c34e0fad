"""Links and marks of a page. Tags are cut as the HTML standard says, links are those of a tree, and no bytes raise an exception."""

import json
import re
import tarfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from tests.effort import examples
from tests.naive.markup import tags as tags_of_twin
from trapline.fetch.html import page
from trapline.fetch.html.kernels import AREA, BASE, FRAME, IFRAME, LINK, LONGEST_VALUE, META, A
from trapline.fetch.html.markup import (
    BYTES_OF_A_PAGE,
    BYTES_OF_LINKS,
    STEPS_OF_A_PAGE,
    WORK_OF_A_PAGE,
    TagRows,
    text,
    values,
)
from trapline.fetch.html.page import MOST_LINKS, NOARCHIVE, NOFOLLOW, NOINDEX, TagReader, is_html, read_page

NAMES = {A: "a", AREA: "area", BASE: "base", FRAME: "frame", IFRAME: "iframe", LINK: "link", META: "meta"}


def tags(html: bytes) -> list[tuple[str, str]]:
    """Name in lower case, and attributes as written, of every tag that the tokenizer looks for."""
    rows = TagRows(64, 0).tags(html, b"-", 1).rows()
    return [(NAMES[kind], html[start:end].decode("utf-8", "replace")) for kind, start, end, *_ in rows]


PIECES = [
    *(
        "<a href=",
        "<A HREF='",
        '<a\nhref="',
        "<a href>",
        "<area href=x>",
        "<base href=y>",
        "<iframe src=z>",
        "</iframe>",
    ),
    *(
        "<!--",
        "-->",
        "--!>",
        "<!-->",
        "<script>",
        "</script>",
        "<SCRIPT ",
        "<title>",
        "</title >",
        "<style>",
        "</style>",
    ),
    *(
        "<textarea>",
        "</textarea>",
        "<template>",
        "</template>",
        "<noscript>",
        "<xmp>",
        "</xmp/>",
        "<p title=",
        "</p x='",
    ),
    *(
        "<a/href=q>",
        "<?",
        "<!",
        "</",
        "</ ",
        "<",
        ">",
        "'",
        '"',
        "=",
        "/",
        " ",
        "\n",
        "&amp;",
        "&#x41",
        "&copy=",
        "k",
        "é",
        "\0",
    ),
]
htmls = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


def archived(recorded_data: Path, name: str, ending: str) -> Iterator[bytes]:
    with tarfile.open(recorded_data / "html5lib-tests" / name) as archive:
        for member in archive:
            file = archive.extractfile(member) if re.search(ending, member.name) else None
            if file is not None:
                yield file.read()


def renamed_to_a(case: dict[str, Any], name: str) -> str:
    return re.sub(rf"<(/?){name}(?=[\s/>]|$)", r"<\1a", case["input"], flags=re.IGNORECASE)


def test_start_tags_of_the_html5lib_cases(recorded_data: Path) -> None:
    """In each case the tags of one name are renamed to `a`, so that the tokenizer looks at them; then their attributes
    are compared."""
    compared = 0
    for file in archived(recorded_data, "html5lib-tests.tar.xz", r"tokenizer/.*\.test$"):
        for case in json.loads(file).get("tests", []):
            if case.get("initialStates", ["Data state"])[0] != "Data state" or case.get("doubleEscaped"):
                continue
            started = [token for token in case["output"] if token[0] == "StartTag"]
            for name in {token[1] for token in started} & {"a", "h", "z", "foo", "bar", "div", "p", "s"}:
                expected = [
                    {key: text(value) for key, value in token[2].items()} for token in started if token[1] == name
                ]
                found = [
                    values(attributes)
                    for tag, attributes in tags(renamed_to_a(case, name).encode("utf-8", "surrogatepass"))
                    if tag == "a"
                ]
                assert [{key.replace("\0", "\ufffd"): text(v) for key, v in of.items()} for of in found] == expected, (
                    case
                )
                compared += 1
    assert compared == 389


def links_of_tree(html: bytes) -> set[tuple[str, str]]:
    nodes = LexborHTMLParser(html).css("a,area,base,link")
    return {(str(node.tag), (node.attributes.get("href") or "").strip(" \t\n\f\r")) for node in nodes}


def links_of_tags(html: bytes) -> set[tuple[str, str]]:
    found = ((name, values(attributes)) for name, attributes in tags(html))
    return {(name, text(of.get("href", ""))) for name, of in found if name in ("a", "area", "base", "link")}


def test_the_same_links_as_in_a_tree(recorded_data: Path) -> None:
    """The cases for tree construction, each with a link behind it. Known difference: framesets. test_foreign.py covers pictures."""
    compared = 0
    for file in archived(recorded_data, "wpt-tree-construction.tar.xz", r"\.dat$"):
        for case in file.split(b"#data\n")[1:]:
            html = case.partition(b"\n#errors")[0].partition(b"\n#document")[0] + b"<a href=END>"
            if b"#script-on" in case or b"#document-fragment" in case or re.search(rb"(?i)<(frameset|svg|math)", html):
                continue
            assert links_of_tags(html) == links_of_tree(html), html
            compared += 1
    assert compared > 1_300


@given(htmls)
def test_links_equal_those_of_a_tree_for_any_tags(html: str) -> None:
    """Lexbor is the oracle. Templates hide the same links from both, but a misnested template ends at different places."""
    if "template>" not in html:
        assert links_of_tags(html.encode()) == links_of_tree(html.encode())


@given(st.one_of(st.binary(), htmls.map(str.encode)), st.sampled_from([None, "utf-8", "utf-16", "shift_jis", "x"]))
def test_any_bytes_are_read(body: bytes, charset: str | None) -> None:
    facts = read_page(body, charset)
    assert 0 <= facts.marks <= NOINDEX | NOFOLLOW | NOARCHIVE
    is_html("", body)


@pytest.mark.parametrize(
    ("html", "links"),
    [
        (b"<div>" * 100_000 + b"<a href=x>", 1),
        (b"".join(b"<font a%d><p>" % n for n in range(50_000)) + b"<a href=x>", 1),  # a tree of these has 10^9 nodes
        (b"<a " + b" ".join(b"a%d" % n for n in range(100_000)) + b" href=x>", 1),
        (b"<a<" * 300_000, 0),
        (b"<p<" * 300_000 + b"><a href=x>", 1),
        (b'<a x="' * 200_001, 0),
        (b"<!--" * 300_000, 0),
        (b"<script><!--" + b"<script>-" * 100_000, 0),
        (b"\0" * 1_000_000 + b"<a href=x>", 1),
        (b"<a href='" + b"&amp;&#x" * 4_000 + b"'>", 1),
        (b"<a href='&#" + b"9" * 30_000 + b";'>", 1),
        (b"<a href=x>" * 50_000, 50_000),
        (b"x" * 10_000_000 + b"<a href=x>", 1),
    ],
    ids=range(13),
)
def test_work_grows_linearly_with_the_length_of_a_page(html: bytes, links: int) -> None:
    """Each page would take minutes, or all memory, if the time grew with the square of the length."""
    assert len(read_page(html, None).links) == links


def test_links_are_in_source_order_and_as_written() -> None:
    html = b"""<area href=" a "><frame src=b><iframe src='c'>not <a href=0></iframe><a href=d>1</a><a href=d>2</a>
        <a name=x>no link</a><a href>self</a><iframe src=""></iframe><a href="?a=1&amp;b=2#f">
        <a rel="external NoFollow" href=0><noscript><a href=e></noscript><template><a href=0></template>
        <link rel="x canonical" href=/c><meta http-equiv=Refresh content='5; URL="/r"'><a href=f>"""
    facts = read_page(html, None)
    assert list(facts.links) == ["a", "b", "c", "d", "d", "", "?a=1&b=2#f", "e", "/c", "/r", "f"]
    assert (facts.base, facts.marks) == (None, 0)


def test_the_first_base_canonical_and_refresh_count() -> None:
    html = b"""<base target=_top><base href=1><base href=2><link rel=canonical href=3><link rel=canonical href=4>
        <meta http-equiv=refresh content=5><meta http-equiv=refresh content="0;6"><meta http-equiv=refresh content="0;7">"""
    facts = read_page(html, None)
    assert (facts.base, list(facts.links)) == ("1", ["3", "6"])


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0;url=x", "x"),
        (" 1.5 , URL = x ", "x"),
        ("0 x", "x"),
        ("0;'x'y", "x"),
        ('0;url="x', "x"),
        ("0;urlx", "urlx"),
        (".;x", "x"),
        ("0", None),
        ("0;", None),
        ("0;url=", None),
        ("x;url=y", None),
        ("-1;x", None),
    ],
)
def test_meta_refresh(content: str, target: str | None) -> None:
    html = f"<meta http-equiv=refresh content='{content.replace(chr(39), '&#39;')}'>"
    assert list(read_page(html.encode(), None).links) == ([target] if target else [])


@pytest.mark.parametrize(
    ("metas", "marks"),
    [
        ([("robots", "NoIndex, nofollow")], NOINDEX | NOFOLLOW),
        ([("ROBOTS", "none")], NOINDEX | NOFOLLOW),
        ([("robots", "all"), ("Trapline", "noarchive")], NOARCHIVE),
        ([("robots", "noindex"), ("trapline", "nofollow")], NOINDEX | NOFOLLOW),
        ([("otherbot", "noindex"), ("robots", "max-snippet:1, index")], 0),
    ],
)
def test_restrictions_for_all_and_for_us_add_up(metas: list[tuple[str, str]], marks: int) -> None:
    html = "".join(f'<meta name="{name}" content="{content}">' for name, content in metas)
    assert read_page(html.encode(), None).marks == marks


def test_a_page_in_another_encoding() -> None:
    html = '<meta charset=windows-1251><a href="/путь?в=г">'
    assert list(read_page(html.encode("windows-1251"), None).links) == ["/путь?%E2=%E3"]
    assert list(read_page(html.encode("utf-16"), "utf-8").links) == ["/путь?в=г"]


def test_types_that_are_read_as_html() -> None:
    assert is_html("text/html", b"") and is_html("application/xhtml+xml", b"") and is_html("", b" \n<!DOCTYPE html>")
    assert not is_html("text/plain", b"<html>") and not is_html("", b"%PDF-1.7") and not is_html("", b"")


@given(htmls)
@settings(max_examples=examples(2000))
def test_the_compiled_tokenizer_finds_what_its_slow_twin_finds(html: str) -> None:
    assert tags(html.encode()) == list(tags_of_twin(html))


@given(
    htmls.filter(
        lambda html: not any(word in html for word in ("<base", "<area", "<iframe", "<frame", "<link", "<meta"))
    )
)
@settings(max_examples=examples(1000))
def test_links_are_the_same_by_the_fast_path_and_by_parsed_attributes(html: str) -> None:
    found = [values(attributes) for name, attributes in tags(html.encode()) if name == "a"]
    expected = [
        text(of["href"]) for of in found if "href" in of and "nofollow" not in text(of.get("rel", "")).lower().split()
    ]
    assert list(read_page(html.encode(), "utf-8").links) == expected


def test_the_tags_of_an_example() -> None:
    html = b"<p title='<a>'><A href=x>y</A><!-- <a> --><script>'<a>'</script><iframe src=z><a></iframe>"
    assert tags(html) == [("a", " href=x"), ("iframe", " src=z")]


def test_a_page_of_very_many_links_is_read_up_to_the_limit_of_links() -> None:
    html = b"<a href=x>" * 30 + b"<a href='&amp;'>" * 30 + b"<meta name=robots content=nofollow>"
    assert list(read_page(html, "utf-8", most=40).links) == ["x"] * 30 + ["&"] * 10
    assert len(read_page(b"<a href=x>" * (MOST_LINKS + 9), "utf-8").links) == MOST_LINKS
    assert read_page(html, "utf-8", most=61).marks == NOFOLLOW


WORDS = ["robots", "ROBOTS", "refresh", "canonical", "trapline", "TrapLine", "trap", "viewport", "0;url=/r", ""]
WORDS += ["x-robots", "nofollow", "NoFollow", "&#114;obots", "no"]
ATTRIBUTES = st.builds(
    lambda name, quote, value: f" {name}={quote}{value}{quote}",
    st.sampled_from(["name", "content", "rel", "href", "HTTP-EQUIV", "property"]),
    st.sampled_from(["", "'", '"']),
    st.sampled_from(WORDS),
)
HEADS = st.lists(
    st.builds(
        lambda name, attributes: f"<{name}{''.join(attributes)}>",
        st.sampled_from(["meta", "link", "a", "META"]),
        st.lists(ATTRIBUTES, max_size=3),
    ),
    max_size=6,
).map("".join)


@given(HEADS)
@settings(max_examples=examples(1000))
def test_no_relevant_tag_is_skipped(html: str) -> None:
    """The result is the same if every tag is parsed."""
    slow = TagReader("trapline")
    kinds = {"meta": META, "link": LINK, "a": A}
    for place, (name, attributes) in enumerate(tags(html.encode())):
        slow.take(kinds[name], values(attributes), place)
    facts = read_page(html.encode(), "utf-8")
    assert (facts.base, facts.marks) == (slow.base, slow.marks)
    assert list(facts.links) == list(slow.links.values())


# ---- limits of the work for one page: docs/decisions/034


def spent(html: bytes) -> tuple[int, int]:
    """Steps of the tokenizer and work in Python for the links of a page."""
    read_page(html, None)
    return page._rows.own.spent


MIB = 1 << 20
HOSTILE = {
    "references": b'<a href="' + b"&#65;" * 200 + b'">',
    "one reference": b"<a href='&amp;'>",
    "attributes": b"<a rel=nofollow " + b"a " * 400 + b"href=x>",
    "rel": b"<a rel='&amp;' href=x>",
    "robots": b"<meta name=robots content=none>",
    "refresh": b"<meta http-equiv=refresh content=1>",
    "tags": b"<b>",
    "brackets": b"<",
    "comments": b"<!-->",
    "pictures": b"<svg><g><title/></x>",
    "fonts": b"<svg><font a a a a a/>",
    "Latin-1": b"<a href=\xe9>",
}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_no_page_takes_more_than_a_bounded_number_of_steps(piece: bytes) -> None:
    """For any content and any length. The work is counted, because seconds depend on the machine."""
    steps, work = spent(piece * (8 * MIB // len(piece)))
    most_of_a_tag = 3 * LONGEST_VALUE + 6
    assert steps <= STEPS_OF_A_PAGE + most_of_a_tag
    assert work <= WORK_OF_A_PAGE + most_of_a_tag


@pytest.mark.parametrize(
    ("before", "piece"),
    [(b'<a href="', b"&amp;"), (b"<a rel=nofollow ", b"a=b "), (b"<svg" + b"><g" * 40 + b">", b"</x>")],
)
def test_no_tag_takes_more_than_a_bounded_number_of_steps(before: bytes, piece: bytes) -> None:
    steps, work = spent(before + piece * (12 * MIB // len(piece)) + b'">')
    assert steps <= STEPS_OF_A_PAGE + LONGEST_VALUE
    assert work == 0


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_no_page_takes_more_memory_than_a_long_real_one(piece: bytes) -> None:
    html = piece * (8 * MIB // len(piece))
    read_page(html, None)
    tracemalloc.start()
    try:
        read_page(html, None)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_a_real_page_is_far_from_the_bounds() -> None:
    """4,000 links with two references each, slightly more than any of 7,448 real pages had, and 16,000 links without references."""
    links = [b'<p class="x"><a href="/folder/page-%d" title=t>a</a></p>' % n for n in range(16_000)]
    links += [b'<p class="x"><a href="/list?page=%d&amp;order=1&amp;x=2" title=t>a</a></p>' % n for n in range(4_000)]
    facts = read_page(b"".join(links), None)
    assert len(facts.links) == 20_000 and facts.links[19_999] == "/list?page=3999&order=1&x=2"
    steps, work = page._rows.own.spent
    assert steps < STEPS_OF_A_PAGE / 4 and work < WORK_OF_A_PAGE / 2


def test_a_page_is_read_up_to_its_limits() -> None:
    link = b"<a href='?&#97;'>"
    found = list(read_page(link * WORK_OF_A_PAGE, None).links)
    assert found == ["?a"] * (WORK_OF_A_PAGE // 2)
    behind = b"<a href=x>" + b"<b>" * STEPS_OF_A_PAGE + b"<a href=y>"
    assert list(read_page(behind, None).links) == ["x"]
    letters = b"<a href=x>" + b" " * BYTES_OF_A_PAGE + b"<a href=y>"
    assert list(read_page(letters, None).links) == ["x"]
    long = b"<a href=%s>" % (b"x" * 8000) * 1000
    assert len(read_page(long, None).links) == -(-BYTES_OF_LINKS // 8000)


@pytest.mark.parametrize("ending", [b"", b"&amp;"])
def test_a_value_that_is_too_long_counts_as_missing(ending: bytes) -> None:
    """A later attribute of the same name does not count either, because the first one counts."""
    long = b"<a href='%s' href=no>" % (b"x" * (LONGEST_VALUE + 1) + ending)
    assert list(read_page(long + b"<base href='%s'>" % (b"y" * 40_000) + b"<a href=z>", None).links) == ["z"]
    whole = b"x" * (LONGEST_VALUE - len(ending)) + ending
    assert len(read_page(b"<a href='%s'>" % whole, None).links) == 1


@given(
    st.lists(st.sampled_from([b"<a href=x>", b"<a href='&lt;'>", b"<svg>", b"<title/>", b"<template>"]), max_size=40)
)
def test_the_initial_buffer_size_does_not_matter(pieces: list[bytes]) -> None:
    html = b"".join(pieces)
    small, large = TagRows(1, 1).tags(html, b"-", 99), TagRows(64, 256).tags(html, b"-", 99)
    assert small.hrefs.tolist() == large.hrefs.tolist()
    assert small.others.tolist() == large.others.tolist()


# ---- encodings


@pytest.mark.parametrize(
    ("charset", "declared"),
    [("iso-8859-1", b""), (None, b"<meta charset=iso-8859-1>"), (None, b"<meta charset=latin1>")],
)
def test_a_reference_in_a_query_is_sent_in_the_encoding_of_a_page_in_ascii(
    charset: str | None, declared: bytes
) -> None:
    html = (
        declared
        + b"<a href='/&eacute;?q=&eacute;&amp;r=&#8364;#&eacute;'><a href='?q=&eacute;' rel='&amp;'><a href=?x>"
    )
    assert list(read_page(html, charset).links) == ["/é?q=%E9&r=%80#é", "?q=%E9", "?x"]


def test_a_reference_in_a_query_of_a_page_that_declares_nothing_is_sent_in_utf_8() -> None:
    assert list(read_page(b"<a href='?q=&eacute;'>", None).links) == ["?q=é"]


JAPANESE = "<a href='/日本?q=日本'><a href='/日本/?x&amp;q=日本'><a href=/ascii?x><base href='/日'>"


@pytest.mark.parametrize("charset", ["shift_jis", "euc-jp", "iso-2022-jp", "gb18030", "big5", "utf-8", "utf-16-le"])
def test_links_are_the_same_in_any_encoding_except_for_their_queries(charset: str) -> None:
    facts = read_page(JAPANESE.encode(charset), charset.replace("16-", "16"))
    query = "日本" if charset.startswith("utf") else quote("日本".encode(charset), safe="!$()*+,-./:=?@[\\]^_`{|}~")
    assert list(facts.links) == [f"/日本?q={query}", f"/日本/?x&q={query}", "/ascii?x"]
    assert facts.base == "/日"
