"""Field extraction from feeds in XML and JSON: entries, the texts of their links and dates, and what the feed says about itself.

This is the lower half of feed.py, which interprets the texts. Like sitemaps, XML feeds are not parsed as XML: tags are read one after
the other, and the open tags show which element a field belongs to. No entities are expanded. If closing tags are missing, the next
entry resets the state. Namespace prefixes are ignored: no two modules that feeds use give the same name to different things that
matter here. A feed is searched in windows (files.py) until one of the limits below is reached.
"""

import json
import re
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from trapline.fetch.html.markup import text as resolved
from trapline.fetch.html.markup import values
from trapline.signals.published.files import Scan

MOST_TOKENS = 300_000
_MOST_MARKS = 2 * MOST_TOKENS  # number of `<`, whether a token begins there or not
_MOST_REFERENCES = 50_000  # character references, not counting `&amp;`: ten per entry
_MOST_DEPTH = 32
_MOST_TEXT = 4096  # characters of a field
_MOST_ATTRIBUTES = 16 * 1024  # bytes of all attributes of a tag; if longer, they are not read
_MOST_SAID = 64  # texts kept per element name

_TOKEN = re.compile(
    rb"<(?=[A-Za-z_/!])(?:(/?)([A-Za-z_][\w.:-]{0,255}+)((?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+)>([^<]{0,%d}+)"
    rb"|!(?:(\[CDATA\[)|--))" % _MOST_TEXT
)
_ROOTS = {b"rss": "rss", b"rdf": "rss", b"feed": "atom"}
_ENTRIES = (b"item", b"entry")
_WHOLES = (b"channel", b"feed", b"rdf", b"rss")
# Elements whose text is used if they are direct children of an entry, or of the feed.
_DATES = (b"pubdate", b"date", b"updated", b"modified", b"published", b"issued", b"created")
_OF_ENTRY = frozenset((b"link", b"guid", b"origlink", *_DATES))
_OF_FEED = frozenset((b"ttl", b"updateperiod", b"updatefrequency", b"updatebase"))
_OF_LISTS = {b"hour": b"skiphours", b"day": b"skipdays"}
_WITH_ATTRIBUTES = frozenset((b"link", b"guid", *_ENTRIES, *_ROOTS))


@dataclass(slots=True)
class Item:
    links: list[str] = field(default_factory=list)  # candidates for its page, the likeliest first
    dates: list[str] = field(default_factory=list)
    base: str = ""  # base URL of its links


@dataclass(slots=True)
class FeedFields:
    kind: str = ""
    items: list[Item] = field(default_factory=list)
    hubs: list[str] = field(default_factory=list)
    self_url: str = ""
    # Texts about its update times, by element name in lower case
    said: dict[str, list[str]] = field(default_factory=dict)
    cut: bool = False  # the feed has more than was read


def read_xml(file: bytes, most: int) -> FeedFields:
    """Extract the fields of a feed in UTF-8, up to `most` entries."""
    reading = _FeedXmlReading()
    scan = Scan(_TOKEN, file, b"<", _MOST_MARKS)
    tokens = iter(scan)
    for token in islice(tokens, MOST_TOKENS):
        closing, name, attributes, text_after, literal = token.groups()
        if name is None:
            end = scan.pass_over(token, b"]]>" if literal else b"-->")
            if literal and reading.field:
                reading.text(file[token.end() : min(end, token.end() + _MOST_TEXT)].decode("utf-8", "replace"))
            continue
        reading.tag(name.rpartition(b":")[2].lower(), bool(closing), attributes)
        if reading.field:
            reading.text(reading.resolved(text_after.decode("utf-8", "replace")))
        if len(reading.found.items) > most:
            reading.found.items.pop()
            reading.found.cut = True
            break
        if reading.references < 0:
            break
    reading.found.cut |= next(tokens, None) is not None or scan.is_cut
    return reading.found


class _FeedXmlReading:
    """State of one feed while its tags are read."""

    def __init__(self) -> None:
        self.found = FeedFields()
        self.references = _MOST_REFERENCES  # number that may still be resolved
        self.field = b""  # name of the innermost open element, if its text is wanted
        self._open: list[bytes] = []
        self._deeper = 0  # open tags beyond _MOST_DEPTH, which are not in _open
        self._item: Item | None = None
        self._parts: list[str] = []
        self._length = 0  # total length of the parts
        self._is_link = True  # whether the last guid is a permalink
        self._base = ""

    def text(self, text: str) -> None:
        if self.field and text and self._length < _MOST_TEXT:
            self._parts.append(text)
            self._length += len(text)

    def resolved(self, text: str) -> str:
        """Return the text with its character references replaced."""
        if "&" in text:
            self.references -= text.count("&") - text.count("&amp;")
        return resolved(text)

    def tag(self, name: bytes, closing: bool, attributes: bytes) -> None:
        self._end_field()
        if closing:
            self._close(name)
            return
        if not self.found.kind:
            self.found.kind = _ROOTS.get(name, "")
        if name in _ENTRIES:
            self._begin_item()
        parent = self._open[-1] if self._open and not self._deeper else b""
        if name in _WITH_ATTRIBUTES:
            parsed = values(attributes.decode("utf-8", "replace")) if len(attributes) <= _MOST_ATTRIBUTES else {}
            self._take(name, parent, {key: self.resolved(value) for key, value in parsed.items()})
        if not attributes.endswith(b"/"):
            self._push(name, parent)
        elif name in _ENTRIES:
            self._item = None

    def _begin_item(self) -> None:
        """Begin an entry, and close whatever the last entry has left open."""
        for at, name in enumerate(self._open):
            if name in _ENTRIES:
                del self._open[at:]
                break
        self._deeper = 0
        if self.found.kind:
            self._item = Item(base=self._base)
            self.found.items.append(self._item)

    def _push(self, name: bytes, parent: bytes) -> None:
        if len(self._open) == _MOST_DEPTH:
            self._deeper += 1
            return
        self._open.append(name)
        in_entry = self._item is not None and parent in _ENTRIES and name in _OF_ENTRY
        in_feed = parent in _WHOLES and name in _OF_FEED
        if in_entry or in_feed or (name in _OF_LISTS and parent == _OF_LISTS[name]):
            self.field, self._parts, self._length = name, [], 0

    def _close(self, name: bytes) -> None:
        if self._deeper:
            self._deeper -= 1
        elif name in self._open:
            del self._open[len(self._open) - 1 - self._open[::-1].index(name) :]
        if name in _ENTRIES:
            self._item = None

    def _take(self, name: bytes, parent: bytes, attributes: dict[str, str]) -> None:
        """Use the attributes of a tag."""
        base, href = attributes.get("xml:base", ""), attributes.get("href", "")
        if name in _ROOTS:
            self._base = base
        elif name in _ENTRIES and self._item is not None:
            self._item.base = base or self._base
            self._item.links += [attributes["rdf:about"]] if "rdf:about" in attributes else []
        elif name == b"guid":
            self._is_link = attributes.get("ispermalink", "true").lower() != "false"
        elif name == b"link" and href:
            self._link(href, attributes.get("rel", "alternate").lower(), parent)

    def _link(self, href: str, rel: str, parent: bytes) -> None:
        if parent in _ENTRIES and self._item is not None:
            self._item.links += [href] if rel == "alternate" else []
        elif parent in _WHOLES and rel == "hub":
            self.found.hubs.append(href)
        elif parent in _WHOLES and rel == "self":
            self.found.self_url = self.found.self_url or href

    def _end_field(self) -> None:
        if not self.field:
            return
        name, self.field = self.field, b""
        text = "".join(self._parts).strip()
        if name in _OF_FEED or name in _OF_LISTS:
            texts = self.found.said.setdefault(name.decode(), [])
            texts += [text] if len(texts) < _MOST_SAID else []
        elif self._item is not None and text:
            self._put(self._item, name, text)

    def _put(self, item: Item, name: bytes, text: str) -> None:
        if name in _DATES:
            item.dates.append(text)
        elif name == b"link":
            item.links.insert(0, text)
        elif name == b"origlink" or self._is_link:
            item.links.append(text)


# ---- JSON Feed (jsonfeed.org, 1.0 and 1.1), as the same fields as in XML. Accepts any bytes without an error.

_JSON_DATES = ("date_modified", "date_published")
# Number of `,`, `{` and `[`, including those in strings: json.loads holds the interpreter lock until it has parsed everything.
_MOST_VALUES = 100_000


def read_json(file: bytes, most: int) -> FeedFields:
    """Extract the fields of a JSON feed, up to `most` entries."""
    if file.count(b",") + file.count(b"{") + file.count(b"[") > _MOST_VALUES:
        return FeedFields()
    try:
        feed = json.loads(file)
    except (ValueError, RecursionError):
        return FeedFields()
    if not isinstance(feed, dict) or "jsonfeed.org/version/" not in _text(feed, "version"):
        return FeedFields()
    items, hubs = _objects(feed, "items"), _objects(feed, "hubs")
    return FeedFields(
        "json",
        [_item(item) for item in items[:most]],
        [_text(hub, "url") for hub in hubs if _text(hub, "type").lower() == "websub"],
        _text(feed, "feed_url"),
        cut=len(items) > most,
    )


def _item(item: dict[str, Any]) -> Item:
    url = _text(item, "url")
    return Item([url] if url else [], [_text(item, name) for name in _JSON_DATES if _text(item, name)])


def _text(parent: dict[str, Any], name: str) -> str:
    value = parent.get(name)
    return value if isinstance(value, str) else ""


def _objects(parent: dict[str, Any], name: str) -> list[dict[str, Any]]:
    value = parent.get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
