"""The requisites of HTML pages: which tags name them, and what hides them."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from trapline.fetch import css
from trapline.fetch.css import FILE, ICON, IMAGE, MEDIA, MOST_OF_A_PAGE, SCRIPT, STYLESHEET
from trapline.fetch.html import markup, requisites
from trapline.fetch.html.requisites import read_requisites


def hrefs(html: str) -> list[str]:
    return [requisite.href for requisite in read_requisites(html.encode(), None)]


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ("<link rel=stylesheet href=a>", [(STYLESHEET, "a")]),
        ("<LINK REL='Alternate StyleSheet' HREF=' a '>", [(STYLESHEET, "a")]),
        ("<link rel='shortcut icon' href=a><link rel=apple-touch-icon href=b>", [(ICON, "a"), (ICON, "b")]),
        ("<link rel=manifest href=a><link rel=search type='application/opensearchdescription+xml' href=b>", [(FILE, "a"), (FILE, "b")]),
        ("<link rel=search href=a.html>", []),
        ("<link rel=preload as=font href=a.woff2>", [(FILE, "a.woff2")]),
        ("<link rel=next href=a><link rel=canonical href=b><link rel=dns-prefetch href=c><link href=d>", []),
        ("<img src=a srcset='b 1x,c 2x'>", [(IMAGE, "a"), (IMAGE, "b"), (IMAGE, "c")]),
        ("<picture><source srcset='a 100w, b'><img src=c></picture>", [(IMAGE, "a"), (IMAGE, "b"), (IMAGE, "c")]),
        ("<script src=a></script><script>'<img src=no>'</script>", [(SCRIPT, "a")]),
        ("<video src=a poster=b><source src=c><track src=d></video>", [(MEDIA, "a"), (IMAGE, "b"), (MEDIA, "c"), (MEDIA, "d")]),
        ("<audio src=a></audio><embed src=b><object data=c></object>", [(MEDIA, "a"), (MEDIA, "b"), (MEDIA, "c")]),
        ("<input type=image src=a><body background=b><td background=c>", [(IMAGE, "a"), (IMAGE, "b"), (IMAGE, "c")]),
        ("<svg><image xlink:href=a /><use href='b.svg#x'/><use href='#y'/></svg>", [(IMAGE, "a"), (IMAGE, "b.svg#x")]),
        ("<style>@import 'a'; p{b:url(c)}</style><p style='b: URL(&quot;d&quot;)'>", [(STYLESHEET, "a"), (FILE, "c"), (FILE, "d")]),
        ("<svg><style>p{b:url(a)}</style></svg><img src=b>", [(FILE, "a"), (IMAGE, "b")]),
        ("<p style='color: red'><a href=no><iframe src=no></iframe>", []),
        ("<!-- <img src=no> --><template><img src=no></template><textarea><img src=no></textarea><img src=a>", [(IMAGE, "a")]),
        ("<noscript><img src=a></noscript>", [(IMAGE, "a")]),
        ("<img src='data:image/gif;base64,R0'><img src=''><img src='#x'>", []),
        ("<img src='a?b=1&amp;c=2'><img src=a><img src=a>", [(IMAGE, "a?b=1&c=2"), (IMAGE, "a")]),
        ("<img src=a", []),
    ],
)  # fmt: skip
def test_tags(html: str, found: list[tuple[str, str]]) -> None:
    assert read_requisites(html.encode(), None) == found


def test_the_encoding_of_the_page_is_that_of_its_urls() -> None:
    assert [one.href for one in read_requisites("<img src=é>".encode("latin-1"), "latin-1")] == ["é"]


def test_a_page_has_a_limited_number_of_requisites() -> None:
    assert len(hrefs("".join(f"<img src={n}>" for n in range(MOST_OF_A_PAGE + 9)))) == MOST_OF_A_PAGE
    assert (
        len(hrefs(f"<style>{''.join(f'a{{b:url({n})}}' for n in range(MOST_OF_A_PAGE + 9))}</style>")) == MOST_OF_A_PAGE
    )


@pytest.mark.parametrize(
    "part",
    [
        "<img ",
        "<style>",
        "<svg><style>",
        "<p style=",
        "<img srcset='a, ",
        "<img srcset=,",
        "<img a ",
        "<link rel=x ",
        "<!--",
        "<template>",
    ],
)
def test_no_page_takes_long(part: str) -> None:
    hrefs("<img src=a>")
    html = part * (200_000 // len(part)) + "'>"
    began = time.process_time()
    hrefs(html)
    assert time.process_time() - began < 10.0, "quadratic time would be minutes"


@pytest.mark.parametrize(
    "html",
    [
        "<img " + "a " * 50_000 + ">",
        ("<img " + "a " * 500 + ">") * 100,
        "<p style='url(" + "&#97;" * 50_000 + ")'>",
        "<img srcset='" + "a b," * 50_000 + "'>",
        "<p style='b:url(\\61)'>" * 10_000,
        "<img src=a>" * 16_000,
    ],
)
def test_a_hostile_page_takes_no_more_steps_than_its_budget(monkeypatch: pytest.MonkeyPatch, html: str) -> None:
    """Everything that Python does once for an attribute, a reference, an escape or a URL is counted here."""
    monkeypatch.setattr(css, "MOST_STEPS", 5_000)
    work = 0

    def counted(call: Callable[..., Any], weigh: Callable[[Any], int] = lambda given: 1) -> Callable[..., Any]:
        def counting(given: Any) -> Any:
            nonlocal work
            work += weigh(given)
            return call(given)

        return counting

    monkeypatch.setattr(
        requisites, "values", counted(requisites.values, lambda text: 1 if "=" in text else len(text.split()))
    )
    monkeypatch.setattr(markup, "_character", counted(markup._character))
    monkeypatch.setattr(css, "_character", counted(css._character))
    monkeypatch.setattr(css, "is_usable", counted(css.is_usable))
    hrefs(html + "<img src=b>")
    assert work <= 3 * 5_000
