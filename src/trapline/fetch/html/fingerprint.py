"""Fingerprint of a page's readable content: it stays the same as long as the content does, whatever other bytes change.

Step 9 in docs/architecture.md: the fingerprint decides whether a page has changed since it was last fetched. Comparing bytes does not
work: most pages contain tokens, dates, counters and advertisements that differ in each response. For HTML the fingerprint covers the
content (prose.py), for other text its words, for everything else the bytes. The module does not know the page that a fingerprint is
compared with. Reasons, and what the fingerprint misses: docs/decisions/024.

The time is linear in the bytes, and the amount read of HTML and other text is bounded.
"""

import threading
from hashlib import blake2b

import numpy as np

from trapline.fetch.html.encoding import UTF_8, decode, encoding_of
from trapline.fetch.html.foreign import OPEN_SHAPE
from trapline.fetch.html.page import is_html
from trapline.fetch.html.prose import ALL, BY_CLASS, BY_NAME, MAIN_FROM, MAIN_TO, PASSED, TORN, WRITTEN, read_prose

SIZE = 8  # bytes
MOST_HTML = 2 << 20  # bytes of HTML or other text that are read
MOST_TEXT = 1 << 20  # bytes of content
_USUAL_TEXT = 1 << 16
# A <main> with less text is a placeholder that a script fills, and not the content.
_LEAST_MAIN = 64
# If less than an eighth of the text is left, the skipped part was the content, and a lower level must skip less.
_LEAST_SHARE = 8

_SPACES = bytes.maketrans(b"\t\n\v\f\r", b"     ")


class _ThreadArrays(threading.local):
    """Arrays for one page, reused for the next one of the same thread."""

    def __init__(self) -> None:
        self.state, self.open_elements = np.zeros(10, np.int64), np.zeros(OPEN_SHAPE, np.int64)
        self.out = np.zeros(_USUAL_TEXT, np.uint8)


_arrays = _ThreadArrays()


def fingerprint(body: bytes, mime: str, charset: str | None = None) -> bytes:
    """Return the fingerprint of a decoded body; type and charset are those of its Content-Type.

    >>> page = b"<title>A</title><nav>%d new</nav><p>The\\n cat.</p><script>token = %d</script>"
    >>> fingerprint(page % (1, 2), "text/html") == fingerprint(page % (3, 4), "text/html")
    True
    >>> fingerprint(page % (1, 2), "text/html") == fingerprint(page.replace(b"cat", b"dog") % (1, 2), "text/html")
    False
    """
    if is_html(mime, body):
        return _hash(content_of(body, charset) or body[:MOST_HTML])
    if mime.startswith("text/") and mime != "text/xml":
        return _hash(_words(body[:MOST_HTML]))
    return _hash(body)


def content_of(body: bytes, charset: str | None = None) -> bytes:
    """Return the readable content of an HTML page, in UTF-8 and without white space.

    >>> content_of(b"<header>Menu</header><main><h1>A</h1> <p>b&amp;c<footer>d</footer></main>!")
    b'Ab&amp;c!'
    """
    body = body[:MOST_HTML]
    encoding = encoding_of(body, charset)
    html = body if encoding == UTF_8 else decode(body, encoding).encode()
    return _content(html) if html else b""


def _content(html: bytes) -> bytes:
    out = _arrays.out if len(html) <= _USUAL_TEXT else np.zeros(min(len(html), MOST_TEXT), np.uint8)
    text = np.frombuffer(html, np.uint8)
    for level in (BY_CLASS, BY_NAME, ALL):
        read_prose(text, out, _arrays.state, _arrays.open_elements, level)
        state = _arrays.state.tolist()
        if not state[TORN] and state[WRITTEN] * _LEAST_SHARE >= state[WRITTEN] + state[PASSED]:
            break
    if state[MAIN_TO] - state[MAIN_FROM] >= _LEAST_MAIN:
        return out[state[MAIN_FROM] : state[MAIN_TO]].tobytes()
    return out[: state[WRITTEN]].tobytes()


def _words(body: bytes) -> bytes:
    """Return the words of a text with one space between them. Avoids `split`, whose list would take fifty times the memory."""
    body = body.translate(_SPACES)
    while b"  " in body:
        body = body.replace(b"  ", b" ")
    return body.strip(b" ")


def of_redirect(location: bytes) -> bytes:
    """Return the fingerprint of a redirect, by its target. It differs from that of a page with this text."""
    return _hash(b"Location: " + location)


def _hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=SIZE).digest()
