"""Joining a link with its page's URL by copying bytes gives the URL that the WHATWG's rules give."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.effort import examples
from trapline.compiled import jit
from trapline.compiled.jit import i8, kernel
from trapline.crawler.discovery.seen.hashing import LONGEST, Buffer, joined
from trapline.fetch.html.kernels import Bytes
from trapline.fetch.urls import MOST_TEXT, canonical
from trapline.frontier.layout import Array


@kernel(i8(Bytes, Bytes, Buffer))
def join_one(link: Array, url: Array, out: Array) -> int:
    return joined(link, 0, link.size, url, out)


def text_of(link: str, url: str) -> str | None:
    """Return the joined text, or None if the kernel leaves this link to the complete parser."""
    jit.ready()
    out = np.zeros(LONGEST, np.uint8)
    link_bytes = np.frombuffer(link.encode("utf-8", "replace") + b" ", np.uint8)[:-1]
    length = join_one(link_bytes, np.frombuffer(url.encode(), np.uint8), out)
    return None if length < 0 else out[:length].tobytes().decode()


PIECES = [
    "/",
    "//",
    "..",
    ".",
    "../",
    "./",
    "?",
    "#",
    ":",
    "x",
    "y.html",
    "%2e",
    "%2E%2e",
    "é",
    "\\",
    "@",
    "a.org",
    "[",
    "]",
    "&",
    "=",
]
PIECES += [
    "http:",
    "https:",
    "HTTP:",
    "http://",
    "https://b.org",
    "mailto:",
    "javascript:",
    "1:2",
    "a+b:",
    "\t",
    " ",
    "\x7f",
    "~",
    "+",
]
LINKS = st.one_of(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), st.text(max_size=8))
URLS = st.lists(st.sampled_from(PIECES), max_size=6).map(
    lambda parts: canonical("http://a.org/" + "".join(parts)) or "https://a.org:8443/d/e?f"
)


@given(LINKS, URLS)
@settings(max_examples=examples(1000))
@example("http://victim.org/#" + MOST_TEXT * "z", "http://a.org/")
@example("../" * 3000 + "x", "http://a.org/d/")
@example("./" * MOST_TEXT, "http://a.org/d/")
@example("x" * MOST_TEXT, "http://a.org/")
def test_a_joined_text_means_what_its_link_means(link: str, url: str) -> None:
    text = text_of(link, url)
    if text is not None:
        assert canonical(text) == canonical(link, url), text


def test_usual_links_are_joined_to_their_canonical_url() -> None:
    for link in ("x", "/x", "../x", "./x/y?z", "?q", "", "#f", "//b.org/x", "https://b.org/", "../../../x"):
        assert text_of(link, "http://a.org/d/e?f") == canonical(link, "http://a.org/d/e?f")
