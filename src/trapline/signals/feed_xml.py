"""A feed of XML as fields: entries, their links and dates as text, and what the feed says of itself.

The lower half of feed.py, which knows what the texts mean. Like sitemaps it is not parsed as XML: tags are taken one after the other,
and which element a field stands in is told by the tags that are open. Nothing is expanded; where tags are missing the next
entry sets it right. Prefixes are left out: no two of the modules that feeds use give one name to different things that count here.
A feed is searched in windows (scan.py) until one of the counts below is used up.
"""

import re
from dataclasses import dataclass, field
from itertools import islice

from trapline.fetch.markup import text as resolved
from trapline.fetch.markup import values
from trapline.signals.scan import Scan

MOST_TOKENS = 300_000
_MOST_MARKS = 2 * MOST_TOKENS  # `<`, whether a token begins there or not
_MOST_REFERENCES = 50_000  # to characters, not counting `&amp;`: ten an entry
_MOST_DEPTH = 32
_MOST_TEXT = 4096  # characters of a field
_MOST_ATTRIBUTES = 16 * 1024  # bytes of all attributes of a tag; longer ones are not read
_MOST_SAID = 64  # texts of one name

_TOKEN = re.compile(
    rb"<(?=[A-Za-z_/!])(?:(/?)([A-Za-z_][\w.:-]{0,255}+)((?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+)>([^<]{0,%d}+)"
    rb"|!(?:(\[CDATA\[)|--))" % _MOST_TEXT
)
_ROOTS = {b"rss": "rss", b"rdf": "rss", b"feed": "atom"}
_ENTRIES = (b"item", b"entry")
_WHOLES = (b"channel", b"feed", b"rdf", b"rss")
# Their text counts, if they stand directly in an entry, or in the feed.
_DATES = (b"pubdate", b"date", b"updated", b"modified", b"published", b"issued", b"created")
_OF_ENTRY = frozenset((b"link", b"guid", b"origlink", *_DATES))
_OF_FEED = frozenset((b"ttl", b"updateperiod", b"updatefrequency", b"updatebase"))
_OF_LISTS = {b"hour": b"skiphours", b"day": b"skipdays"}
_WITH_ATTRIBUTES = frozenset((b"link", b"guid", *_ENTRIES, *_ROOTS))


@dataclass(slots=True)
class Item:
    links: list[str] = field(default_factory=list)  # what may be its page, the likeliest first
    dates: list[str] = field(default_factory=list)
    base: str = ""  # what its links are relative to


@dataclass(slots=True)
class Found:
    kind: str = ""
    items: list[Item] = field(default_factory=list)
    hubs: list[str] = field(default_factory=list)
    self_url: str = ""
    said: dict[str, list[str]] = field(
        default_factory=dict
    )  # of its rhythm, by the name of the element, in small letters
    cut: bool = False  # there is more than was read


def read_xml(file: bytes, most: int) -> Found:
    """The first `most` entries of a feed in UTF-8."""
    reading = _Reading()
    scan = Scan(_TOKEN, file, b"<", _MOST_MARKS)
    tokens = iter(scan)
    for token in islice(tokens, MOST_TOKENS):
        closing, name, attributes, behind, literal = token.groups()
        if name is None:
            end = scan.pass_over(token, b"]]>" if literal else b"-->")
            if literal and reading.field:
                reading.text(file[token.end() : min(end, token.end() + _MOST_TEXT)].decode("utf-8", "replace"))
            continue
        reading.tag(name.rpartition(b":")[2].lower(), bool(closing), attributes)
        if reading.field:
            reading.text(reading.resolved(behind.decode("utf-8", "replace")))
        if len(reading.found.items) > most:
            reading.found.items.pop()
            reading.found.cut = True
            break
        if reading.references < 0:
            break
    reading.found.cut |= next(tokens, None) is not None or scan.is_cut
    return reading.found


class _Reading:
    """A feed while its tags come in."""

    def __init__(self) -> None:
        self.found = Found()
        self.references = _MOST_REFERENCES  # that may still be resolved
        self.field = b""  # whose text is wanted: the innermost that is open
        self._open: list[bytes] = []
        self._deeper = 0  # tags that are open and not among them
        self._item: Item | None = None
        self._parts: list[str] = []
        self._length = 0  # of all parts
        self._is_link = True  # of a guid
        self._base = ""

    def text(self, text: str) -> None:
        if self.field and text and self._length < _MOST_TEXT:
            self._parts.append(text)
            self._length += len(text)

    def resolved(self, text: str) -> str:
        """The text with its character references replaced."""
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
            said = values(attributes.decode("utf-8", "replace")) if len(attributes) <= _MOST_ATTRIBUTES else {}
            self._take(name, parent, {key: self.resolved(value) for key, value in said.items()})
        if not attributes.endswith(b"/"):
            self._push(name, parent)
        elif name in _ENTRIES:
            self._item = None

    def _begin_item(self) -> None:
        """Whatever was left open in the last one is over."""
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
        """What attributes say."""
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
