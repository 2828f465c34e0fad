"""Parser of sitemaps (sitemaps.org, protocol 0.9): the pages that a site lists, and when it says that each was modified.

Bytes in, facts out: the module fetches nothing, and does not judge how reliable the facts are. It accepts any bytes without an error,
with bounded work, and in windows (files.py), so that other threads can run in between. It counts what it could not use.

A sitemap is not parsed as XML: one regular expression, with possessive quantifiers, finds the few elements that matter. So no entities
are expanded, nothing nests, a truncated file is read as far as it goes, and text before the first element does no harm
(docs/decisions/023-published-files.md). An element counts if it has the namespace prefix of the root, so that `image:loc` is not
read as the URL of a page.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from math import nan
from typing import NamedTuple

from trapline.fetch.html.markup import text as resolved
from trapline.signals.dates import moment_s
from trapline.signals.published.files import FileUrls, Scan, folder_of, host_of, unpacked

MOST_URLS = 50_000  # both limits are those of sitemaps.org: 50,000 URLs, 50 MB
MOST_BYTES = 50 * 1024 * 1024
ANY_HOST = "*"  # in place of a site: the sitemap speaks for every host
CHANGEFREQ = ("always", "hourly", "daily", "weekly", "monthly", "yearly", "never")

# Reasons why something was not used.
NO_URL, OTHER_HOST, OTHER_FOLDER, NO_DATE = "no URL", "of another host", "outside its folder", "no date"
TOO_MANY, UNREADABLE = "too many", "unreadable"

_PLACES = {b"loc": 0, b"lastmod": 1, b"changefreq": 2, b"priority": 3}  # index of each field in an entry
_MOST_TOKENS = 10 * MOST_URLS  # starts of entries, fields and comments that are read
# Tags, or lines of a text file, that are read: enough for the longest file with one per 20 bytes.
_MOST_MARKS = MOST_BYTES // 20
_MOST_REFERENCES = 5 * MOST_URLS  # character references, not counting `&amp;`, which costs almost nothing
_MOST_VALUE = 8192  # bytes of a URL
# Bytes of a value other than a URL, of the attributes of a field, and of white space before a value or a tag.
_MOST_OTHER_VALUE = 256
_LINE = re.compile(rb"^[ \t]{0,256}+https?://[^\r\n]{0,%d}+" % _MOST_VALUE, re.IGNORECASE | re.MULTILINE)
_ROOT_WITHIN = 64 * 1024
_ROOT = re.compile(rb"<(?:([A-Za-z_][\w.-]{0,40}):)?(?:urlset|sitemapindex)[\s>]")
_SAME_DATE_S = 60.0  # a site that writes one date for all its pages may take this long to do so
_LEAST_DATES = 3


class SitemapEntry(NamedTuple):
    url: str  # canonical
    lastmod: float = nan  # seconds since 1970; a date without a time means the start of the day
    changefreq: str = ""  # one of CHANGEFREQ
    priority: float = nan  # 0 to 1


class Sitemap(NamedTuple):
    entries: list[SitemapEntry]
    sitemaps: list[SitemapEntry]  # the sitemaps that an index lists
    uniform_dates: bool  # all pages have the same date, which therefore says nothing
    problems: Mapping[str, int]


def read_sitemap(body: bytes, url: str, cited: bool, now: float, site: str = "") -> Sitemap:
    """Parse the sitemap at `url`.

    A sitemap speaks for the pages of its host in its folder and below. If the robots.txt of `site` has `cited` it, it also speaks for
    all pages of that site's host; without a `site`, for all of its own host. `site` may also be several sites, separated by spaces, or
    ANY_HOST.

    >>> found = read_sitemap(b"<urlset><url><loc>/a</loc><lastmod>1970-01-02</lastmod></url>", "http://a.org/s.xml", False, 1e9)
    >>> found.entries[0].url, found.entries[0].lastmod
    ('http://a.org/a', 86400.0)
    """
    reading = _SitemapReading(url, cited, now, site)
    file = unpacked(body, MOST_BYTES)
    if file is None:
        reading.problems[UNREADABLE] += 1
    elif _ROOT.search(file, 0, _ROOT_WITHIN) or file[:_ROOT_WITHIN].lstrip()[:1] == b"<":
        reading.take_xml(file)
    else:
        reading.take_lines(file)
    return Sitemap(reading.entries, reading.sitemaps, _uniform(reading.entries), reading.problems)


class _SitemapReading:
    """State of one sitemap while it is read."""

    def __init__(self, url: str, cited: bool, now: float, site: str) -> None:
        self.now = now
        self.problems: Counter[str] = Counter()
        self._references = _MOST_REFERENCES  # number that may still be resolved
        self.entries: list[SitemapEntry] = []
        self.sitemaps: list[SitemapEntry] = []
        self._resolve = FileUrls(url)
        own_host = host_of(self._resolve.base)
        cited_by = [host_of(FileUrls(name).base) for name in (site.split() if site else [url])] if cited else []
        self._hosts = [*cited_by, own_host]
        folders = [*(f"{host}/" for host in cited_by), folder_of(self._resolve.base)]
        if cited and site == ANY_HOST:
            folders = [""]
        self._own = tuple(scheme + folder for folder in folders for scheme in ("http://", "https://"))

    def take_xml(self, file: bytes) -> None:
        for number, (kind, fields) in enumerate(_entries(file, self.problems)):
            # The first one yielded is empty: the part before the first entry.
            if number > MOST_URLS or self._references < 0:
                self.problems[TOO_MANY] += 1
                return
            self._put(kind, fields)

    def take_lines(self, file: bytes) -> None:
        """Read a text file with one URL per line. Ignores other lines, because the protocol does not say what they may be."""
        lines = Scan(_LINE, file, b"\n", _MOST_MARKS)
        for found in islice(lines, MOST_URLS):
            self._put(b"url", [found[0].replace(b"&", b"&amp;"), None, None, None])
        if lines.is_cut:
            self.problems[TOO_MANY] += 1

    def _put(self, kind: bytes, fields: list[bytes | None]) -> None:
        loc, lastmod, changefreq, priority = fields
        url = None if loc is None else self._own_url(self._text(loc))
        if url is not None:
            moment = self._moment(lastmod) if lastmod else nan
            entry = SitemapEntry(url, moment, _changefreq(changefreq or b""), _priority(priority or b""))
            (self.sitemaps if kind == b"sitemap" else self.entries).append(entry)

    def _own_url(self, text: str) -> str | None:
        url = self._resolve(text)
        if url is not None and url.startswith(self._own):
            return url
        reason = NO_URL if url is None else OTHER_FOLDER if host_of(url) in self._hosts else OTHER_HOST
        self.problems[reason] += 1
        return None

    def _moment(self, lastmod: bytes) -> float:
        moment = moment_s(self._text(lastmod), self.now)
        if moment != moment:
            self.problems[NO_DATE] += 1
        return moment

    def _text(self, value: bytes) -> str:
        if b"&" in value:
            self._references -= value.count(b"&") - value.count(b"&amp;")
        return resolved(value.decode("utf-8", "replace"))


def _entries(file: bytes, problems: Counter[str]) -> Iterator[tuple[bytes, list[bytes | None]]]:
    """Yield kind and raw fields of each entry. If a field occurs twice, the first one counts."""
    root = _ROOT.search(file, 0, _ROOT_WITHIN)
    scan = Scan(_tokens(root[1] or b"" if root else b""), file, b"<", _MOST_MARKS)
    tokens = iter(scan)
    kind, fields = b"", list[bytes | None]([None] * len(_PLACES))
    for found in islice(tokens, _MOST_TOKENS):
        usual, loc, lastmod, changefreq, priority, begun, name, literal, value = found.groups()
        if usual or begun:
            yield kind, fields
            kind, fields = usual or begun, [loc, lastmod, changefreq, priority]
        elif not name:
            scan.pass_over(found, b"-->")
        elif fields[_PLACES[name]] is None:
            fields[_PLACES[name]] = value.partition(b"]]>")[0].replace(b"&", b"&amp;") if literal else value
    yield kind, fields
    if next(tokens, None) or scan.is_cut:
        problems[TOO_MANY] += 1


@lru_cache(maxsize=32)
def _tokens(prefix: bytes) -> re.Pattern[bytes]:
    """Compile the pattern of the tokens in a sitemap whose elements have this prefix.

    A token is a whole entry in the usual form, up to its priority; or the start of an entry; or a field; or the start of a comment,
    which may hide any of these.

    A value that the end of the file truncates does not match, because a part of a URL is another URL. All repetitions are bounded, so
    that a token is at most MOST_TOKEN_BYTES long (files.py). An entry with more white space, or with a longer value, is read field by
    field.
    """
    p = re.escape(prefix) + b":" if prefix else b""
    space = rb"\s{0,%d}+" % _MOST_OTHER_VALUE
    longest = (_MOST_VALUE, _MOST_OTHER_VALUE, _MOST_OTHER_VALUE, _MOST_OTHER_VALUE)
    loc, *others = (
        rb"<%b%b>%b([^<]{0,%d}+)</%b%b>%b" % (p, name, space, most, p, name, space)
        for name, most in zip(_PLACES, longest, strict=True)
    )
    usual = rb"(url|sitemap)>" + space + loc + b"".join(b"(?:" + other + b")?+" for other in others)
    attributes = rb"(?:\s[^<>]{0,%d}+)?" % _MOST_OTHER_VALUE
    value = rb"(<!\[CDATA\[)?+([^<]{0,%d}+)(?!\Z)" % _MOST_VALUE
    field = b"(" + b"|".join(_PLACES) + b")" + attributes + b">" + space + value
    # The lookahead rejects what is not the start of a token in half the time that the branches need.
    first = b"[" + (prefix[:1] or b"uslcp") + b"!]"
    return re.compile(
        rb"<(?=" + first + rb")(?:" + p + b"(?:" + usual + rb"|(url|sitemap)(?=[\s>])|" + field + rb")|!--)"
    )


@lru_cache(maxsize=64)
def _changefreq(value: bytes) -> str:
    word = value.decode("ascii", "replace").strip().lower()
    return word if word in CHANGEFREQ else ""


@lru_cache(maxsize=64)
def _priority(value: bytes) -> float:
    try:
        priority = float(value)
    except ValueError:
        return nan
    return priority if 0.0 <= priority <= 1.0 else nan


def _uniform(entries: list[SitemapEntry]) -> bool:
    """Return whether there are at least three pages, all of them with a date, and all dates are the same."""
    moments = [entry.lastmod for entry in entries]
    return len(moments) >= _LEAST_DATES and all(abs(moment - moments[0]) <= _SAME_DATE_S for moment in moments)
