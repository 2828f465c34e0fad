"""A sitemap read (sitemaps.org, protocol 0.9): which pages a site says it has, and when it says that each changed.

Bytes in, facts out: nothing is fetched, and what the facts are worth is not known here. Any bytes are read without complaint,
in time that grows with their number; what could not be used is counted.

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
from trapline.signals.unpacked import unpacked

MOST_URLS = 50_000  # sitemaps.org: and 50 MB
MOST_BYTES = 50 * 1024 * 1024
CHANGEFREQ = ("always", "hourly", "daily", "weekly", "monthly", "yearly", "never")

# Why something was not used.
NO_URL, OTHER_HOST, OTHER_FOLDER, NO_DATE = "no URL", "of another host", "outside its folder", "no date"
TOO_MANY, UNREADABLE = "too many", "unreadable"

_PLACES = {b"loc": 0, b"lastmod": 1, b"changefreq": 2, b"priority": 3}  # of the fields of an entry
_MOST_TOKENS = 10 * MOST_URLS  # beginnings, fields and comments that are looked at
_MOST_VALUE = 8192  # bytes of one
_LINE = re.compile(rb"^[ \t]*+https?://[^\r\n]*+", re.IGNORECASE | re.MULTILINE)
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
        self.entries: list[Entry] = []
        self.sitemaps: list[Entry] = []
        self._resolve = Resolver(url)
        self._host = host_of(Resolver(site).base) if cited and site else host_of(self._resolve.base)
        folder = f"{self._host}/" if cited else folder_of(self._resolve.base)
        self._own = ("http://" + folder, "https://" + folder)

    def take_xml(self, file: bytes) -> None:
        for number, (kind, fields) in enumerate(_entries(file, self.problems)):
            if number > MOST_URLS:  # what stands before the first entry is an empty one
                self.problems[TOO_MANY] += 1
                return
            self._put(kind, fields)

    def take_lines(self, file: bytes) -> None:
        """A text file of one URL a line; other lines are no mistake, for nobody says what else may be in it."""
        for found in islice(_LINE.finditer(file), MOST_URLS):
            self._put(b"url", [found[0].replace(b"&", b"&amp;"), None, None, None])

    def _put(self, kind: bytes, fields: list[bytes | None]) -> None:
        loc, lastmod, changefreq, priority = fields
        url = None if loc is None else self._place(_text(loc))
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
        moment = moment_s(_text(lastmod), self.now)
        if moment != moment:
            self.problems[NO_DATE] += 1
        return moment


def _entries(file: bytes, problems: Counter[str]) -> Iterator[tuple[bytes, list[bytes | None]]]:
    """Kind and fields of each entry, as they stand. Of a field that is there twice the first counts."""
    root = _ROOT.search(file, 0, _ROOT_WITHIN)
    tokens = _tokens(root[1] or b"" if root else b"").finditer(file)
    kind, fields = b"", list[bytes | None]([None] * len(_PLACES))
    for found in islice(tokens, _MOST_TOKENS):
        usual, loc, lastmod, changefreq, priority, begun, name, literal, value = found.groups()
        if usual or begun:
            yield kind, fields
            kind, fields = usual or begun, [loc, lastmod, changefreq, priority]
        elif name and fields[_PLACES[name]] is None:
            fields[_PLACES[name]] = value.partition(b"]]>")[0].replace(b"&", b"&amp;") if literal else value
    yield kind, fields
    if next(tokens, None):
        problems[TOO_MANY] += 1


@lru_cache(maxsize=32)
def _tokens(prefix: bytes) -> re.Pattern[bytes]:
    """An entry as most are, up to its priority, at one go; or the beginning of one, or a field; and comments, which hide all that.

    A value that the end of the file cuts is none: a part of a URL is another URL.
    """
    p = re.escape(prefix) + b":" if prefix else b""
    loc, *others = (rb"<" + p + name + rb">\s*+([^<]*+)</" + p + name + rb">\s*+" for name in _PLACES)
    usual = rb"(url|sitemap)>\s*+" + loc + b"".join(b"(?:" + other + b")?+" for other in others)
    field = b"(" + b"|".join(_PLACES) + rb")(?:\s[^<>]*+)?>\s*+(<!\[CDATA\[)?+([^<]*+)(?=<)"
    return re.compile(
        rb"<(?:" + p + b"(?:" + usual + rb"|(url|sitemap)(?=[\s>])|" + field + rb")|!--(?:[^-]++|-(?!->))*+)"
    )


def _text(value: bytes) -> str:
    return resolved(value[:_MOST_VALUE].decode("utf-8", "replace"))


@lru_cache(maxsize=64)
def _changefreq(value: bytes) -> str:
    word = _text(value).lower()
    return word if word in CHANGEFREQ else ""


@lru_cache(maxsize=64)
def _priority(value: bytes) -> float:
    try:
        priority = float(_text(value))
    except ValueError:
        return nan
    return priority if 0.0 <= priority <= 1.0 else nan


def _uniform(entries: list[Entry]) -> bool:
    """Whether there are several pages, all of them with a date, and all of these the same."""
    moments = [entry.lastmod for entry in entries]
    return len(moments) >= _LEAST_DATES and all(abs(moment - moments[0]) <= _SAME_DATE_S for moment in moments)
