"""The URLs of stylesheets: what is a URL, what is not, and no stylesheet takes long."""

import time

import pytest

from trapline.fetch.css import MOST_CHARACTERS, style_requisites
from trapline.fetch.requisite import FILE, STYLESHEET


def hrefs(css: str) -> list[str]:
    return [requisite.href for requisite in style_requisites(css)]


@pytest.mark.parametrize(
    ("css", "found"),
    [
        ("a { background: url(x.png) }", ["x.png"]),
        ("a { background: url( 'x y.png' ), url(\"z.png\"\n) }", ["x y.png", "z.png"]),
        ("@font-face { src: url(a.woff2) format('woff2'), URL(b.woff) }", ["a.woff2", "b.woff"]),
        ("a{background:-webkit-image-set(url(a.png) 1x, 'b.png' 2x, \"c.avif\" type('image/avif'))}", ["a.png", "b.png", "c.avif"]),
        ("a{b:image-set('a;b.png' 1x)}c{d:url(e)}", ["a;b.png", "e"]),
        ("/* url(a) */ b{c:url(d)} /* @import 'e'", ["d"]),
        ("a{content:'url(no.png)'; b:url(yes.png)}", ["yes.png"]),
        ("a{content:'no\\'url(no.png)'}", []),
        ("a{content:'not closed\n} b{c:url(d)}", ["d"]),
        ("a{b:curl(no) my-url(no) url-prefix(no) url(yes)}", ["yes"]),
        ("@namespace svg url(http://www.w3.org/2000/svg); a{b:url(c)}", ["c"]),
        ("@namespace 'a;b'; a{b:url(c)}", ["c"]),
        ("a{b:url(#shape) url(data:image/png;base64,AA==) url()}", []),
        ("a{b:url(x\\(1\\).png) url('\\41 b\\\nc') url(\\0)}", ["x(1).png", "Abc", "\ufffd"]),
        ("a{b:url(x", ["x"]),
        ("a{b:url('x", ["x"]),
        ("<!-- @import 'a'; -->", ["a"]),
    ],
)  # fmt: skip
def test_urls(css: str, found: list[str]) -> None:
    assert hrefs(css) == found


@pytest.mark.parametrize(
    "css",
    [
        "@import 'a.css';",
        '@IMPORT"a.css"',
        "@import url(a.css) screen;",
        "@import/**/url( 'a.css' )",
        "@import /* x */ 'a.css'",
    ],
)
def test_an_import_is_a_stylesheet(css: str) -> None:
    assert list(style_requisites(css)) == [(STYLESHEET, "a.css")]


def test_other_rules_that_begin_like_an_import_are_none() -> None:
    assert list(style_requisites("@important 'a'; @import-x 'b'; @import; c{d:url(e)}")) == [(FILE, "e")]


@pytest.mark.parametrize(
    "part",
    [
        "/*",
        "url(",
        "url('",
        "@import ",
        "@import/*",
        "'\\",
        "image-set(",
        "image-set('",
        "@namespace ",
        "\\",
        "u",
        "/",
        "url( ",
        "*",
        "(",
    ],
)
def test_the_time_is_linear(part: str) -> None:
    css = part * (100_000 // len(part))
    began = time.process_time()
    for _ in style_requisites(css):
        pass
    assert time.process_time() - began < 0.5, "quadratic time would be many seconds"


def test_the_rest_of_a_long_stylesheet_is_not_read() -> None:
    assert hrefs(" " * MOST_CHARACTERS + "a{b:url(c)}") == []
