"""Published files as UTF-8 text: gzip decompressed, up to a limit of bytes, from any encoding that XML allows.

The parsers of sitemaps and feeds share this module. It knows nothing of a file's content. It does not read EBCDIC, which XML would
allow too. Other encodings are converted piece by piece, because a decoder holds the interpreter lock until it returns.
"""

import re
from codecs import IncrementalDecoder, getincrementaldecoder
from collections.abc import Iterator
from io import BytesIO

from webencodings import lookup

from trapline.fetch.html.encoding import UTF_8, named
from trapline.fetch.http.content import decoded
from trapline.fetch.urls import MOST_TEXT, canonical, origin, plain

# ---- Search of a file with a regular expression, window by window.
#
# `re` holds the interpreter lock from one match to the next, however far that is: a search of 48 MiB without a match stops all threads
# for seconds. The search of one window takes milliseconds, and other threads run between two windows. The work is bounded as well: the
# search ends after a given number of marks, which are the bytes at which a token may begin. The caller knows what the tokens mean.

WINDOW_BYTES = 16 * 1024
MOST_TOKEN_BYTES = 16 * 1024  # longer tokens may be missed
_MOST_PASSED_OVER = 100_000  # comments and CDATA sections of one file: each takes some microseconds


class Scan:
    """The tokens of a file, in order. Tokens that must be found may be at most MOST_TOKEN_BYTES long."""

    def __init__(self, pattern: re.Pattern[bytes], file: bytes, mark: bytes, most_marks: int) -> None:
        self._pattern, self._file, self._mark, self._marks_left = pattern, file, mark, most_marks
        self._passes_left = _MOST_PASSED_OVER
        self._counted = 0  # the marks before this offset were counted
        self._passed_to = 0  # offset at which to continue; 0: after the last token
        self.is_cut = False  # the limit was reached, and the rest of the file was not searched

    def __iter__(self) -> Iterator[re.Match[bytes]]:
        """Yield the matches of the pattern.

        >>> [found[0] for found in Scan(re.compile(rb"<[a-z]++>"), b"<a><<b>", b"<", 9)]
        [b'<a>', b'<b>']
        """
        at = last_end = 0
        while at < len(self._file):
            end = at + WINDOW_BYTES
            self._count_marks(at, end)
            if self.is_cut:
                return
            # The search may go beyond the window, so that it finds the whole last token.
            for found in self._pattern.finditer(self._file, at, end + MOST_TOKEN_BYTES):
                if found.start() >= end:
                    break
                last_end = found.end()
                yield found
                if self._passed_to:
                    break
            at, self._passed_to = self._passed_to or max(last_end, end), 0

    def _count_marks(self, at: int, end: int) -> None:
        if end > self._counted:
            self._marks_left -= self._file.count(self._mark, max(at, self._counted), end)
            self._counted = end
            self.is_cut |= self._marks_left < 0

    def pass_over(self, token: re.Match[bytes], mark: bytes) -> int:
        """Skip to the end of the next `mark` after the token, or to the end of the file. Return the offset of the mark."""
        self._passes_left -= 1
        self.is_cut |= self._passes_left < 0
        at = token.end()
        while at < len(self._file):
            found = self._file.find(mark, at, at + WINDOW_BYTES + len(mark) - 1)
            if found >= 0:
                self._passed_to = found + len(mark)
                return found
            at += WINDOW_BYTES
        self._passed_to = len(self._file)
        return len(self._file)


# ---- URLs in published files, and whether the publisher may speak for them.
#
# A provider speaks only for its own host. Hosts are compared by the text of the URL: host and port must be the same, while http and
# https are one host. This module knows nothing else about who owns a page.


def host_of(url: str) -> str:
    """Return host and port of a canonical URL, without its scheme.

    >>> host_of("https://example.org:8443/a"), host_of("http://example.org/")
    ('example.org:8443', 'example.org')
    """
    return origin(url).partition("://")[2]


def folder_of(url: str) -> str:
    """Return host and path of a canonical URL, up to the last slash of the path.

    >>> folder_of("http://a.org/x/sitemap.xml?of=/y/")
    'a.org/x/'
    """
    path = url.partition("?")[0]
    return path[: path.rfind("/") + 1].partition("://")[2]


class FileUrls:
    """Resolves the URLs of one file to canonical ones.

    Most are absolute and on the file's own site; these have a fast path that takes a third of the time.
    """

    def __init__(self, base: str) -> None:
        self.base = canonical(base) or ""
        self._origin = origin(self.base)
        self._site = self._origin + "/"
        self._length = len(self._origin)

    def __call__(self, text: str) -> str | None:
        """Return the canonical URL; None if it is not one of http or https.

        >>> FileUrls("http://a.org/feeds/1.xml")("http://a.org/x#top"), FileUrls("http://a.org/feeds/1.xml")("2")
        ('http://a.org/x', 'http://a.org/feeds/2')
        """
        if text.startswith(self._site) and len(text) <= MOST_TEXT:
            quick = plain(text[self._length :], self._origin, "/")
            if quick is not None:
                return quick
        return canonical(text, self.base) if self.base else None


# ---- Decompression and decoding

GZIP = b"\x1f\x8b"

_UTF_8_MARK = b"\xef\xbb\xbf"
# First byte order marks, longer ones first, because the mark of UTF-32 begins with that of UTF-16. Then `<` in files without a mark
# (XML 1.0, appendix F).
_BEGINNINGS = (
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
    (b"<\0\0\0", "utf-32-le"),
    (b"\0\0\0<", "utf-32-be"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
_DAMAGED = "\ufffd"
_PIECE_BYTES = 16 * 1024
_MOST_DAMAGED = 1 << 20  # characters: each takes a microsecond; decoding ends after the piece that exceeds the limit
_DECLARED = re.compile(rb"""\s*+<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']""")


def unpacked(body: bytes, most_bytes: int) -> bytes | None:
    """Return a file as UTF-8, truncated at the limit; parts of it may be undecodable.

    Return None if it is gzip that is broken from the start, or that expands beyond the limit.
    """
    if body.startswith(GZIP):
        expanded = decoded(body, b"gzip", most_bytes)
        if isinstance(expanded, str):
            return None
        body = expanded
    return _as_utf8(body[:most_bytes], most_bytes)


def _as_utf8(body: bytes, most_bytes: int) -> bytes:
    body = body.removeprefix(_UTF_8_MARK)
    for beginning, encoding in _BEGINNINGS:
        if body.startswith(beginning):
            # XML demands that reading stops at the first decoding error.
            return _in_pieces(body, getincrementaldecoder(encoding)("strict"), most_bytes).removeprefix(_UTF_8_MARK)
    found = _DECLARED.match(body[:300])
    declared = (named(found[1].decode()) if found else None) or UTF_8
    if declared.startswith("utf-"):  # a declared UTF-16 is wrong, because the declaration was readable as ASCII
        return body
    return _in_pieces(body, lookup(declared).codec_info.incrementaldecoder("replace"), most_bytes)


def _in_pieces(body: bytes, decoder: IncrementalDecoder, most_bytes: int) -> bytes:
    """Convert a body to UTF-8, up to the first error of a strict decoder, the limit of bytes, or too many damaged characters."""
    out, damaged = BytesIO(), 0
    for at in range(0, len(body), _PIECE_BYTES):
        end = at + _PIECE_BYTES
        try:
            text = decoder.decode(body[at:end], end >= len(body))
        except UnicodeDecodeError as error:
            out.write(_before(error).encode("utf-8", "replace"))
            break
        out.write(text.encode("utf-8", "replace"))
        damaged += text.count(_DAMAGED)
        if damaged > _MOST_DAMAGED or out.tell() >= most_bytes:
            break
    out.truncate(most_bytes)
    return out.getvalue()


def _before(error: UnicodeDecodeError) -> str:
    """Return the text before a decoding error."""
    return error.object[: error.start].decode(error.encoding, "ignore")
