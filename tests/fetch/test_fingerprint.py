"""A fingerprint covers the text that people read. It stays the same if anything else changes, and changes with the text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trapline.fetch.html.fingerprint import MOST_TEXT, SIZE, content_of, fingerprint, of_redirect

WORDS = st.lists(
    st.sampled_from(["the", "cat", "sat", "on", "12", "mats", "für", "&amp;", "5 > 4", "日本"]), min_size=1, max_size=6
)
INLINE = st.sampled_from(["b", "a href='/x?sid=%d'", "i class=x", "em title='a > b'"])
HIDDEN = [
    "<script>if (a < %d) document.write('<p>')</script>",
    "<style>p { width: %dpx }</style>",
    "<!-- built %d -->",
    "<nav><ul><li>Inbox (%d)<li>Home</ul></nav>",
    "<nav>a<nav>b %d</nav>c</nav>",
    "<aside><h3>Popular</h3><p>%d</aside>",
    "<footer>served in %d ms</footer>",
    "<header>%d new</header>",
    "<form><input type=hidden name=csrf value=%d></form>",
    "<div class='ad-slot big'><div>Buy %d</div></div>",
    "<DIV ID=sidebar_2><span>x</span>%d</DIV>",
    "<ul role=navigation><li>%d</ul>",
    "<section hidden>%d</section>",
    "<span aria-hidden=true>%d</span>",
    "<ins class='x adsbygoogle'>%d</ins>",
    "<select><option>%d</select>",
    "<noscript>%d</noscript>",
    "<svg><title>%d</title><path d='%d'/></svg>",
    "<svg width=%d />",
    "<textarea>%d</textarea>",
    "<template><p>%d</p></template>",
    "<img src='/pixel?%d'>",
    "<br data-t=%d>",
    "<?php %d ?>",
    "\n \t",
]


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, str]:
    """Markup, and the text that is read in it."""
    words = draw(WORDS)
    blank = draw(st.sampled_from([" ", "\n  ", "\t"]))
    inner = blank.join(words)
    if draw(st.booleans()):
        tag = draw(INLINE)
        inner = f"{words[0]}<{tag.replace('%d', '7')}>{blank.join(words[1:])}</{tag.split()[0]}>"
    return f"<{draw(st.sampled_from(['p', 'div', 'h2', 'td']))}>{inner}", "".join(words).replace(" ", "")


PIECES = st.lists(st.one_of(texts(), st.sampled_from(HIDDEN).map(lambda html: (html, ""))), max_size=12)


def filled(html: str, token: int) -> bytes:
    return html.replace("%d", str(token)).encode()


@settings(deadline=None)
@given(PIECES, st.integers(0, 10**9), st.integers(0, 10**9))
def test_only_the_text_counts_whatever_surrounds_it(pieces: list[tuple[str, str]], token: int, other: int) -> None:
    """Enough text stands first, because a page that is nearly all boilerplate is read differently."""
    html, text = "".join(html for html, _ in pieces), "".join(text for _, text in pieces)
    page = f"<!doctype html><title>T</title><body><p>{'enough ' * 200}</p>{html}"
    assert content_of(filled(page, token)).decode() == "T" + "enough" * 200 + text
    assert fingerprint(filled(page, token), "text/html") == fingerprint(filled(page, other), "text/html")


@settings(deadline=None)
@given(PIECES, st.integers(0, 11), st.integers(0, 10**9))
def test_a_changed_sentence_changes_the_fingerprint(pieces: list[tuple[str, str]], place: int, token: int) -> None:
    before, after = (
        "".join(html for html, _ in [*pieces[:place], (f"<p>{verb}</p>", ""), *pieces[place:]])
        for verb in ("He came.", "He went.")
    )
    pad = f"<p>{'enough ' * 200}</p>"
    assert fingerprint(filled(pad + before, token), "text/html") != fingerprint(filled(pad + after, token), "text/html")


@settings(deadline=None)
@given(
    st.one_of(
        st.binary(),
        st.lists(
            st.sampled_from(
                [
                    b"<",
                    b">",
                    b"/",
                    b"div",
                    b" class=ad",
                    b"nav",
                    b"main",
                    b"<!--",
                    b"-",
                    b"<p>x",
                    b'"',
                    b"script",
                    b"\0",
                    b"\xff",
                    b"time datetime=3",
                    b"svg",
                ]
            )
        ).map(b"".join),
    ),
    st.sampled_from(["text/html", "", "text/plain", "image/png"]),
)
def test_any_bytes_have_one_reproducible_fingerprint(body: bytes, mime: str) -> None:
    found = fingerprint(body, mime)
    fingerprint(b"<nav>between</nav>", "text/html")
    assert len(found) == SIZE and fingerprint(body, mime) == found


# ---- <main>, and pages whose markup misleads


def test_only_the_main_element_of_a_page_counts() -> None:
    page = b"<title>T</title><div>%d</div><header>h</header><main><header>A</header><p>%s</p><nav>n</nav></main><p>%d"
    text = b"words " * 20
    assert content_of(page % (1, text, 2)) == b"A" + b"words" * 20


def test_an_empty_main_element_is_ignored() -> None:
    assert content_of(b"<main></main><p>text that a script did not move") == b"textthatascriptdidnotmove"


def test_a_header_of_an_article_is_content() -> None:
    assert content_of(b"<header>site</header><article><header>Title</header>text</article>") == b"Titletext"


@pytest.mark.parametrize("opening", [b"<nav>", b"<div class=sidebar>", b"<aside><main>", b"<div class=ad><nav>"])
def test_an_unclosed_element_hides_no_text(opening: bytes) -> None:
    page = b"<body>" + opening + b"all of the text</body>"
    assert content_of(page) == b"allofthetext"


def test_a_page_that_is_all_sidebar_is_read() -> None:
    page = b"<div id=sidebar><p>" + b"the text " * 50 + b"</p><nav>7</nav></div>"
    assert content_of(page) == b"thetext" * 50


def test_a_time_element_counts_by_its_moment_and_not_by_its_text() -> None:
    def page(moment: str, text: str) -> bytes:
        return content_of(f"<p>By Ann, <time class=x datetime='{moment}'>{text}</time>, a story".encode())

    assert page("2025-10-01", "3 minutes ago") == page("2025-10-01", "4 minutes ago") != page("2025-10-02", "x")
    assert content_of(b"<p>At <time>noon</time>") == b"Atnoon"


def test_a_page_without_text_is_distinguished_by_its_bytes() -> None:
    first, second = (fingerprint(b"<frameset><frame src=/%d></frameset>" % n, "text/html") for n in (1, 2))
    assert first != second


@pytest.mark.parametrize(
    ("charset", "declared"), [("iso-8859-1", "iso-8859-1"), ("utf-16-le", "utf-16le"), ("euc-jp", "euc-jp")]
)
def test_the_charset_does_not_matter(charset: str, declared: str) -> None:
    text = "<p>日本</p>" if charset != "iso-8859-1" else "<p>früh</p>"
    assert content_of(text.encode(charset), declared) == content_of(text.encode(), "utf-8")


# ---- other formats than HTML


def test_plain_text_is_compared_by_its_words() -> None:
    assert (
        fingerprint(b"a\r\n  b ", "text/plain") == fingerprint(b"a b", "text/plain") != fingerprint(b"ab", "text/plain")
    )


@pytest.mark.parametrize("mime", ["application/json", "text/xml", "application/pdf", "application/rss+xml", ""])
def test_other_formats_are_compared_by_their_bytes(mime: str) -> None:
    assert fingerprint(b"[1, 2]", mime) != fingerprint(b"[1,2]", mime)


def test_a_redirect_differs_from_a_page_with_the_same_text() -> None:
    assert of_redirect(b"/a") != of_redirect(b"/b")
    assert of_redirect(b"/a") not in {fingerprint(b"/a", mime) for mime in ("text/plain", "text/html", "")}


# ---- hostile pages


@pytest.mark.parametrize(
    "page",
    [
        b"<div class=ad>" * 30_000,
        b"<nav><aside>" * 30_000,
        b"<" * 300_000,
        b"<div " + b'a="b" ' * 50_000,
        b"<!--" * 100_000,
        b"<script><!--<script>" * 20_000,
        b"<main>" * 50_000 + b"x",
        b"</main></div>" * 30_000,
        b"<p class='" + b"ad" * 200_000,
        b"<time datetime=" * 30_000,
    ],
)
def test_a_hostile_page_is_read_to_its_end(page: bytes) -> None:
    """Deep, unclosed or unfinished markup. Each page would take minutes if the time were not linear."""
    assert len(fingerprint(page, "text/html")) == SIZE


def test_the_text_that_is_read_of_a_page_is_bounded() -> None:
    page = b"<p>" + b"word " * 500_000
    assert len(content_of(page)) == MOST_TEXT
    assert fingerprint(page, "text/html") == fingerprint(page + b"and more", "text/html")
