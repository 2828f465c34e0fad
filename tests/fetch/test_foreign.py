"""Tags inside SVG and MathML belong to the picture or to HTML, as in a browser's tree, so that no picture hides the
links behind it."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser, LexborNode

from tests.effort import examples
from tests.fetch.test_page import archived, links_of_tags, tags
from tests.naive.markup import tags as tags_of_twin
from trapline.fetch.html.fingerprint import content_of
from trapline.fetch.html.foreign import DEEPEST, ENCLOSING
from trapline.fetch.html.page import read_page

TEXT_ELEMENTS = ("title", "style", "script", "textarea", "iframe", "noembed", "noframes", "xmp", "plaintext")
POINTS = {"svg": ("foreignobject", "desc", "title"), "math": ("mi", "mo", "mn", "ms", "mtext")}
HTML_ANNOTATIONS = ("text/html", "application/xhtml+xml")


def namespace(node: LexborNode | None) -> str:
    """The namespace of an element, derived from its ancestors, because lexbor's binding does not give it."""
    if node is None or not node.tag:
        return "html"
    outer = namespace(node.parent)
    if outer != "html" and node.parent is not None:
        parent = str(node.parent.tag).lower()
        is_annotation = outer == "math" and parent == "annotation-xml"
        if parent in POINTS[outer] or (
            is_annotation and (node.parent.attributes.get("encoding") or "").lower() in HTML_ANNOTATIONS
        ):
            outer = "html"
        elif is_annotation and node.tag == "svg":
            return "svg"
    return str(node.tag) if outer == "html" and node.tag in ("svg", "math") else outer


def links_of_tree(html: bytes) -> set[tuple[str, str]]:
    """In SVG and MathML only `a` is a link."""
    nodes = LexborHTMLParser(html).css("a,area,base,link")
    return {
        (str(node.tag), (node.attributes.get("href") or "").strip(" \t\n\f\r"))
        for node in nodes
        if node.tag == "a" or namespace(node) == "html"
    }


@pytest.mark.parametrize("name", TEXT_ELEMENTS)
@pytest.mark.parametrize("form", ["<{0}/>", "<{0}></{0}>", "<{0}>text</{0}>", "<{0} x='/'/>", "<{0}>"])
@pytest.mark.parametrize("root", ["svg", "math"])
def test_no_element_of_a_picture_hides_the_links_behind_it(name: str, form: str, root: str) -> None:
    html = f"<{root}>{form.format(name)}</{root}><a href=behind>".encode()
    assert list(read_page(html, None).links) == ["behind"]
    assert links_of_tree(html) == {("a", "behind")}


@pytest.mark.parametrize(
    ("html", "links"),
    [
        ("<svg><title/><a href=1></svg><title/><a href=2>", ["1"]),  # HTML's own title cannot close itself
        ("<svg><foreignObject><title/><a href=1></title></foreignObject><title/><a href=2>", ["2"]),
        ("<svg><foreignObject><div></div></foreignObject><style/><a href=1>", ["1"]),
        ("<svg><desc><style><a href=0></style></desc><style><a href=1></style><a href=2>", ["1", "2"]),
        ("<svg><style><div><style><a href=0></style><a href=1>", ["1"]),  # a breakout tag ends the picture
        ("<div><svg><g></div><style><a href=0></style><a href=1>", ["1"]),
        ("<svg><font><style><a href=1></svg>", ["1"]),
        ("<svg><font size=1><style><a href=0></style><a href=1>", ["1"]),
        ("<svg></p><style><a href=0></style><a href=1>", ["1"]),
        ("<svg><![CDATA[<a href=0>]]><a href=1></svg><![CDATA[<a href=0>]]><a href=2>", ["1", "2"]),
        ("<svg><![CDATA[<a href=0>", []),
        ("<math><mi><style><a href=0></style></mi><style><a href=1>", ["1"]),
        ("<math><annotation-xml><style><a href=1>", ["1"]),
        ("<math><annotation-xml encoding='Text/HTML'><style><a href=0></style><a href=1>", ["1"]),
        ("<svg><a href=1/><style a=b/><a href=2>", ["1/", "2"]),
        ("<svg><base href=/elsewhere/><link rel=canonical href=0><iframe src=0></iframe><a href=1>", ["1"]),
        ("<svg><template><a href=1></template></svg><template><a href=0></template>", ["1"]),
    ],
)
def test_links_of_examples(html: str, links: list[str]) -> None:
    assert (list(read_page(html.encode(), None).links), read_page(html.encode(), None).base) == (links, None)


def test_the_same_links_as_in_the_trees_of_html5lib(recorded_data: Path) -> None:
    compared = 0
    for file in archived(recorded_data, "wpt-tree-construction.tar.xz", r"\.dat$"):
        for case in file.split(b"#data\n")[1:]:
            html = case.partition(b"\n#errors")[0].partition(b"\n#document")[0] + b"<a href=END>"
            if b"#script-on" in case or b"#document-fragment" in case or re.search(rb"(?i)<frameset", html):
                continue
            if re.search(rb"(?i)<(svg|math)", html):
                assert links_of_tags(html) == links_of_tree(html), html
                compared += 1
    assert compared == 204


NAMES = (
    *(
        "g",
        "path",
        "title",
        "desc",
        "foreignObject",
        "style",
        "script",
        "textarea",
        "iframe",
        "xmp",
        "template",
        "noscript",
    ),
    *("svg", "math", "mi", "mtext", "annotation-xml", "annotation-xml encoding=text/html", "font", "font color=1"),
    *("div", "p", "span", "b", "li", "ul", "section", "a href=s", "link href=s", "base href=s"),
)
names = st.sampled_from(NAMES)
leaves = st.one_of(
    names.map("<{}/>".format),
    st.integers(0, 99).map("<a href={}></a>".format),
    st.integers(0, 99).map("<link href={}>".format),
    st.integers(0, 99).map("<![CDATA[<a href={}>]]>".format),
)


def closed(name: str, content: list[str]) -> str:
    return f"<{name}>{''.join(content)}</{name.split()[0]}>"


whole = st.recursive(leaves, lambda inner: st.builds(closed, names, st.lists(inner, max_size=4)), max_leaves=12)
pieces = st.one_of(leaves, names.map("<{}>".format), names.map(lambda name: f"</{name.split()[0]}>"), st.just("<svg>"))


@given(whole.map("<svg>{}</svg><a href=END>".format))
@settings(max_examples=examples(1500))
def test_links_equal_those_of_a_tree_for_any_nesting_in_a_picture(html: str) -> None:
    assert links_of_tags(html.encode()) == links_of_tree(html.encode())


@given(st.lists(pieces, max_size=14).map("".join))
@settings(max_examples=examples(1500))
def test_links_equal_those_of_a_tree_for_any_unclosed_elements(html: str) -> None:
    """End tags of elements that are open outside a picture are left out: which of these are open is unknown."""
    ends, tree = set(re.findall(r"</([a-zA-Z0-9-]+)", html)), LexborHTMLParser(html)
    is_outside = any(namespace(node) == "html" for name in ends for node in tree.css(name))
    if not is_outside and not ends & set(ENCLOSING.split()) and "template" not in html:
        assert links_of_tags((html + "<a href=END>").encode()) == links_of_tree((html + "<a href=END>").encode())


@given(st.lists(pieces, max_size=25).map("".join))
@settings(max_examples=examples(1500))
def test_the_compiled_tokenizer_finds_what_its_slow_twin_finds_in_pictures(html: str) -> None:
    assert tags(html.encode()) == list(tags_of_twin(html))


@pytest.mark.parametrize("depth", [DEEPEST - 1, DEEPEST, DEEPEST + 1, 5000])
def test_links_behind_a_deeply_nested_picture_are_found(depth: int) -> None:
    html = "<svg>" + "<g>" * depth + "<title/>" + "</g>" * depth + "</svg><a href=x>"
    assert list(read_page(html.encode(), None).links) == ["x"]
    assert tags(html.encode()) == list(tags_of_twin(html))


@pytest.mark.parametrize(
    "inner", ["<a href=1><a href=0></a>", "<a href=1><b><a href=0></a></b>", "<a href=1><div><a href=0></a></div>"]
)
def test_a_link_in_a_link_of_a_picture_ends_the_first_one(inner: str) -> None:
    html = f"<svg><g><title>{inner}</title><link href=0></g></svg><a href=END>".encode()
    assert links_of_tags(html) == links_of_tree(html) == {("a", "1"), ("a", "0"), ("a", "END")}


def test_text_behind_a_picture_counts_for_the_fingerprint() -> None:
    assert content_of(b"<svg><title/></svg><p>text") == b"text"
    assert content_of(b"<math><title/><mi>x</mi></math><p>text") == b"xtext"
