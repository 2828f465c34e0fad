"""The URLs of stylesheets: what is a URL, what is not, and no stylesheet takes much work."""

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from trapline.fetch import css as module
from trapline.fetch.css import FILE, MOST_CHARACTERS, MOST_STEPS, STYLESHEET, Budget, read_style, style_requisites


def hrefs(css: str) -> list[str]:
    return [requisite.href for requisite in read_style(css)]


@pytest.mark.parametrize(
    ("css", "found"),
    [
        ("a{b:image-set(curl('no') 1x, my-url(no) 2x, URL(yes) 3x, type('no') 4x, 'too' 5x)}", ["yes", "too"]),
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
        "@import /* x *//**/ 'a.css' /* y */",
    ],
)
def test_an_import_is_a_stylesheet(css: str) -> None:
    assert read_style(css) == [(STYLESHEET, "a.css")]


def test_a_string_has_no_comments() -> None:
    assert read_style("@import 'a/*b*/c.css'; @import url(d/*e*/f.css);") == [
        (STYLESHEET, "a/*b*/c.css"),
        (STYLESHEET, "d/*e*/f.css"),
    ]


def test_other_rules_that_begin_like_an_import_are_none() -> None:
    assert read_style("@important 'a'; @import-x 'b'; @import; c{d:url(e)}") == [(FILE, "e")]


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
        "()",
        "a",
        "-",
        "ur",
        "url",
        "1 ",
    ],
)
@pytest.mark.parametrize("before", ["", "a{b:image-set("])
def test_the_time_is_linear(before: str, part: str) -> None:
    css = before + part * (100_000 // len(part))
    began = time.process_time()
    read_style(css)
    assert time.process_time() - began < 10.0, "quadratic time would be minutes"


class CountedMatches:
    def __init__(self, pattern: re.Pattern[str], count: Callable[[], Any]) -> None:
        self._pattern, self._count = pattern, count

    def finditer(self, *given: Any) -> Iterator[re.Match[str]]:
        for found in self._pattern.finditer(*given):
            self._count()
            yield found


@pytest.mark.parametrize(
    "part",
    [
        "url(\\61)",
        "url('" + "\\61" * 1000 + "')",
        "@import '\\a\\b\\c';",
        "image-set('a' 1x)",
        "image-set(" + "'\\61',url(b)," * 10_000 + ")",
        "image-set(" + "()" * 20_000 + ")",
        "image-set(" + "type(a)," * 20_000 + ")",
        "url(a)",
        "''",
        "/**/",
    ],
)
def test_a_hostile_stylesheet_takes_no_more_steps_than_its_budget(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    """Everything that Python does once for a token, a part of a token, a URL or an escape is counted here, and must fit in the budget."""
    monkeypatch.setattr(module, "MOST_STEPS", 5_000)
    work = 0

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*given: Any) -> Any:
            nonlocal work
            work += 1
            return call(*given)

        return counting

    monkeypatch.setattr(module, "_character", counted(module._character))
    monkeypatch.setattr(module, "is_usable", counted(module.is_usable))
    monkeypatch.setattr(module, "_values", counted(module._values))
    monkeypatch.setattr(module, "_IN_SET", CountedMatches(module._IN_SET, counted(lambda: None)))
    for copies in (50_000 // len(part), 200_000 // len(part)):
        work = 0
        read_style(part * max(1, copies))
        assert 0 < work <= 3 * 5_000
    assert work > 1_000, "the text is hostile"


def test_the_styles_of_a_page_share_one_budget() -> None:
    budget = Budget()
    first, second = "a{b:url(c)}", " " * MOST_CHARACTERS + "a{b:url(d)}"
    assert [one.href for css in (first, second, first) for one in style_requisites(css, budget)] == ["c"]
    assert budget.characters == 0 and budget.steps == MOST_STEPS - 1


def test_the_rest_of_a_long_stylesheet_is_not_read() -> None:
    assert hrefs(" " * MOST_CHARACTERS + "a{b:url(c)}") == []
