"""Where a site says that it publishes: its hubs, feeds, sitemaps and schedules, from Link headers, the head of a page, and robots.txt.

Bytes in, facts out: what a crawl should fetch or subscribe to; nothing is fetched. Any bytes are read without complaint, and of each kind
no more than a few. A page speaks for its own host: feeds and sitemaps that it names elsewhere are left out, and schedules unless they are
of its own site. A hub may be anywhere, and so may a sitemap that a robots.txt cites (sitemaps.org, "Sitemaps & Cross Submits").
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from trapline.fetch.headers import links
from trapline.fetch.markup import Rows, text, values
from trapline.fetch.robots import parse, whole_lines
from trapline.fetch.tags.kernels import BASE, LINK
from trapline.fetch.urls import canonical, origin
from trapline.signals.places import host_of

MOST_OF_A_KIND = 8
MOST_SITEMAPS = 1_000  # of a robots.txt
HUB, SELF, SCHEDULE, SITEMAP, FEED = "hub", "self", "crawl-schedule", "sitemap", "feed"

_ALTERNATE = "alternate"
# Not application/json: that is the interface of a content system more often than a feed.
_FEED_TYPES = frozenset(
    (
        "application/rss+xml",
        "application/atom+xml",
        "application/rdf+xml",
        "application/feed+json",
        "application/xml",
        "text/xml",
    )
)
_HEAD_BYTES = 128 * 1024
_HEAD_ENDS = re.compile(rb"<(?:/[hH][eE][aA][dD]|[bB][oO][dD][yY])[\s>]")
_MOST_SITEMAP_LINES = 4 * MOST_SITEMAPS  # some are written more than once
# What `parse` may take for a sitemap: with or without a colon.
_SITEMAP_LINE = re.compile(rb"(?:\A|(?<=[\r\n]))[ \t\v\f]*+site-?map[^\r\n]*+", re.IGNORECASE)
_SCHEDULE_LINE = re.compile(rb"^[ \t]*+crawl-schedule[ \t]*+:[ \t]*+([^\r\n#]*+)", re.IGNORECASE | re.MULTILINE)

_rows = Rows(64, 0)


class Relations(NamedTuple):
    """All canonical, in order, each once."""

    hubs: tuple[str, ...] = ()
    self_url: str = ""
    schedules: tuple[str, ...] = ()
    sitemaps: tuple[str, ...] = ()
    feeds: tuple[str, ...] = ()


NOTHING = Relations()


def of_response(headers: Mapping[bytes, bytes], url: str, html: bytes = b"") -> Relations:
    """What the Link header of an answer says, then what the head of its page does (WebSub, section 4, has them in this order).

    >>> of_response({b"link": b'<https://hub.example/>; rel="hub", </f>; rel=self'}, "http://a.org/f").hubs
    ('https://hub.example/',)
    """
    links = _of_header(headers[b"link"]) if b"link" in headers else iter(())
    found = [(rel, where) for rel, target in links if (where := canonical(target, url))]
    if html:
        found += _of_head(html[:_HEAD_BYTES], url)
    return _relations(found, url) if found else NOTHING


def of_robots(body: bytes, url: str) -> Relations:
    """What a robots.txt says: `Sitemap` and `Crawl-schedule`, which is a line of ours and to others none.

    >>> of_robots(b"Crawl-schedule: /when.json\\nSitemap: http://b.org/a.xml", "http://a.org/robots.txt")[2:4]
    (('http://a.org/when.json',), ('http://b.org/a.xml',))
    """
    body = whole_lines(body)
    lines = (found[1].strip() for found in _SCHEDULE_LINE.finditer(body))
    schedules = [canonical(line.decode("utf-8", "replace"), url) for line in islice(lines, MOST_OF_A_KIND)]
    sitemaps = [_cited(value, url) for value in parse(_sitemap_lines(body), "").sitemaps[:MOST_SITEMAPS]]
    own = [schedule for schedule in schedules if schedule and origin(schedule) == origin(canonical(url) or "")]
    return Relations(schedules=_each_once(own), sitemaps=_each_once((one for one in sitemaps if one), MOST_SITEMAPS))


def _sitemap_lines(body: bytes) -> bytes:
    """The lines of a robots.txt that may cite a sitemap, so that no rules are built of the others."""
    return b"\n".join(found[0] for found in islice(_SITEMAP_LINE.finditer(body), _MOST_SITEMAP_LINES))


def _cited(value: str, url: str) -> str | None:
    """robots.py gives octets as characters."""
    return canonical(value.encode("latin-1", "replace").decode("utf-8", "replace"), url)


def _of_header(value: bytes) -> Iterator[tuple[str, str]]:
    """Relation and target; not those that are said to be another page's."""
    for target, said in links(value):
        if "anchor" not in said:
            for rel in _rels(said):
                yield rel, target


def _of_head(html: bytes, url: str) -> list[tuple[str, str]]:
    """Relation and where it leads, of the link elements in a page's head."""
    end = _HEAD_ENDS.search(html)
    head = html[: end.start()] if end else html
    if not _may_matter(head):
        return []
    base, found = url, list[tuple[str, str]]()
    for kind, start, stop, *_ in _rows.tags(head, b"", 1).rows():
        said = head[start:stop]
        if kind == BASE and base == url:
            base = canonical(text(_attributes(said).get("href", "")), url) or url
        elif kind == LINK and _may_matter(said):
            attributes = _attributes(said)
            found += [(rel, text(attributes.get("href", ""))) for rel in _rels(attributes)]
    return [(rel, where) for rel, target in found if (where := canonical(target, base))]


def _may_matter(markup: bytes) -> bool:
    """A search for each word takes a tenth of the time of one for all of them."""
    small = markup.lower()
    return (
        b"alternate" in small
        or b"hub" in small
        or b"crawl-schedule" in small
        or b"sitemap" in small
        or b"self" in small
    )


def _attributes(said: bytes) -> dict[str, str]:
    return values(said.decode("utf-8", "replace"))


def _rels(said: Mapping[str, str]) -> Iterator[str]:
    """The relations that count here; an alternate is one if it is a feed."""
    for rel in text(said.get("rel", "")).lower().split():
        if rel in (HUB, SELF, SCHEDULE, SITEMAP):
            yield rel
        elif rel == _ALTERNATE and text(said.get("type", "")).lower().partition(";")[0].strip() in _FEED_TYPES:
            yield FEED


def _relations(found: list[tuple[str, str]], url: str) -> Relations:
    page = canonical(url) or ""
    own = [(rel, where) for rel, where in found if host_of(where) == host_of(page)]
    return Relations(
        _each_once(where for rel, where in found if rel == HUB),
        next((where for rel, where in found if rel == SELF), ""),
        _each_once(where for rel, where in own if rel == SCHEDULE and origin(where) == origin(page)),
        _each_once(where for rel, where in own if rel == SITEMAP),
        _each_once(where for rel, where in own if rel == FEED),
    )


def _each_once(urls: Iterable[str], most: int = MOST_OF_A_KIND) -> tuple[str, ...]:
    return tuple(islice(dict.fromkeys(urls), most))
