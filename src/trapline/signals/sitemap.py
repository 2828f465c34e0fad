"""A sitemap read (sitemaps.org, protocol 0.9): which pages a site says it has, and when it says that each changed.

Bytes in, facts out: nothing is fetched, and what the facts are worth is not known here. Any bytes are read without complaint,
with bounded work and in windows (scan.py), so that other threads run meanwhile; what could not be used is counted.

It is not parsed as XML: one expression looks for the few elements that count, and never gives back what it took. So nothing is
expanded, nothing nests, a file that breaks off is read as far as it goes, and text before the first element does no harm
(docs/decisions/023-published-files.md). An element counts if its prefix is that of the root, by which `image:loc` is none of a page.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from math import nan
from typing import NamedTuple

from trapline.fetch.markup import text as resolved
from trapline.signals.dates import moment_s
from trapline.signals.places import Resolver, folder_of, host_of
from trapline.signals.scan import Scan
from trapline.signals.unpacked import unpacked

MOST_URLS = 50_000  # sitemaps.org: and 50 MB
MOST_BYTES = 50 * 1024 * 1024
CHANGEFREQ = ("always", "hourly", "daily", "weekly", "monthly", "yearly", "never")

# Why something was not used.
NO_URL, OTHER_HOST, OTHER_FOLDER, NO_DATE = "no URL", "of another host", "outside its folder", "no date"
TOO_MANY, UNREADABLE = "too many", "unreadable"

_PLACES = {b"loc": 0, b"lastmod": 1, b"changefreq": 2, b"priority": 3}  # of the fields of an entry
_MOST_TOKENS = 10 * MOST_URLS  # beginnings, fields and comments that are looked at
# Tags, or lines of a text file, that are looked at: the longest file, if it has one in 20 bytes.
_MOST_MARKS = MOST_BYTES // 20
_MOST_REFERENCES = 5 * MOST_URLS  # to characters, not counting `&amp;`, which costs next to nothing
_MOST_VALUE = 8192  # bytes of a URL
# Bytes of a value that is no URL, of the attributes of a field, and of white space before a value or a tag.
_MOST_OTHER_VALUE = 256
_LINE = re.compile(rb"^[ \t]{0,256}+https?://[^\r\n]{0,%d}+" % _MOST_VALUE, re.IGNORECASE | re.MULTILINE)
_ROOT_WITHIN = 64 * 1024
_ROOT = re.compile(rb"<(?:([A-Za-z_][\w.-]{0,40}):)?(?:urlset|sitemapindex)[\s>]")
_SAME_DATE_S = 60.0  # a site that stamps all of its pages may take so long for it
_LEAST_DATES = 3


class Entry(NamedTuple):
    url: str  # canonical
    lastmod: float = nan  # seconds since 1970; a date alone is its first moment
    changefreq: str = ""  # of CHANGEFREQ
    priority: float = nan  # 0 to 1


class Sitemap(NamedTuple):
    entries: list[Entry]
    sitemaps: list[Entry]  # of an index
    uniform_dates: bool  # one date on every page: it says nothing
    problems: Mapping[str, int]


def read_sitemap(body: bytes, url: str, cited: bool, now: float, site: str = "") -> Sitemap:
    """What a sitemap at `url` says. It speaks for pages of its host at or below its folder; if it was `cited` in the robots.txt of `site`
    (its own host, if none is given) for all pages of that one.

    >>> found = read_sitemap(b"<urlset><url><loc>/a</loc><lastmod>1970-01-02</lastmod></url>", "http://a.org/s.xml", False, 1e9)
    >>> found.entries[0].url, found.entries[0].lastmod
    ('http://a.org/a', 86400.0)
    """
    reading = _Reading(url, cited, now, site)
    file = unpacked(body, MOST_BYTES)
    if file is None:
        reading.problems[UNREADABLE] += 1
    elif _ROOT.search(file, 0, _ROOT_WITHIN) or file[:_ROOT_WITHIN].lstrip()[:1] == b"<":
        reading.take_xml(file)
    else:
        reading.take_lines(file)
    return Sitemap(reading.entries, reading.sitemaps, _uniform(reading.entries), reading.problems)


class _Reading:
    """One sitemap while it is read."""

    def __init__(self, url: str, cited: bool, now: float, site: str) -> None:
        self.now = now
        self.problems: Counter[str] = Counter()
        self._references = _MOST_REFERENCES  # that may still be resolved
        self.entries: list[Entry] = []
        self.sitemaps: list[Entry] = []
        self._resolve = Resolver(url)
        self._host = host_of(Resolver(site).base) if cited and site else host_of(self._resolve.base)
        folder = f"{self._host}/" if cited else folder_of(self._resolve.base)
        self._own = ("http://" + folder, "https://" + folder)

    def take_xml(self, file: bytes) -> None:
        for number, (kind, fields) in enumerate(_entries(file, self.problems)):
            # What stands before the first entry is an empty one.
            if number > MOST_URLS or self._references < 0:
                self.problems[TOO_MANY] += 1
                return
            self._put(kind, fields)

    def take_lines(self, file: bytes) -> None:
        """A text file of one URL a line; other lines are no mistake, for nobody says what else may be in it."""
        lines = Scan(_LINE, file, b"\n", _MOST_MARKS)
        for found in islice(lines, MOST_URLS):
            self._put(b"url", [found[0].replace(b"&", b"&amp;"), None, None, None])
        if lines.is_cut:
            self.problems[TOO_MANY] += 1

    def _put(self, kind: bytes, fields: list[bytes | None]) -> None:
        loc, lastmod, changefreq, priority = fields
        url = None if loc is None else self._place(self._text(loc))
        if url is not None:
            moment = self._moment(lastmod) if lastmod else nan
            entry = Entry(url, moment, _changefreq(changefreq or b""), _priority(priority or b""))
            (self.sitemaps if kind == b"sitemap" else self.entries).append(entry)

    def _place(self, text: str) -> str | None:
        url = self._resolve(text)
        if url is not None and url.startswith(self._own):
            return url
        reason = NO_URL if url is None else OTHER_FOLDER if host_of(url) == self._host else OTHER_HOST
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
    """Kind and fields of each entry, as they stand. Of a field that is there twice the first counts."""
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
    """An entry as most are, up to its priority, at one go; or the beginning of one, or a field; or the beginning of a comment, which hides
    all that.

    A value that the end of the file cuts is none: a part of a URL is another URL. All repetitions are bounded, so that a token is at most
    MOST_TOKEN_BYTES long (scan.py). An entry with more white space, or with a longer value, is found field by field.
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
    # The look ahead refuses what begins no token in half the time that the branches take.
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


def _uniform(entries: list[Entry]) -> bool:
    """Whether there are several pages, all of them with a date, and all of these the same."""
    moments = [entry.lastmod for entry in entries]
    return len(moments) >= _LEAST_DATES and all(abs(moment - moments[0]) <= _SAME_DATE_S for moment in moments)
