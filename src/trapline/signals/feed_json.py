"""A JSON Feed (jsonfeed.org, 1.0 and 1.1) as the fields that feed_xml.py finds in XML. Any bytes are read without complaint."""

import json
from typing import Any

from trapline.signals.feed_xml import Found, Item

_DATES = ("date_modified", "date_published")
# `,`, `{` and `[`, also those in texts: json.loads holds the interpreter lock until all are read.
_MOST_VALUES = 100_000


def read_json(file: bytes, most: int) -> Found:
    """The first `most` entries."""
    if file.count(b",") + file.count(b"{") + file.count(b"[") > _MOST_VALUES:
        return Found()
    try:
        feed = json.loads(file)
    except (ValueError, RecursionError):
        return Found()
    if not isinstance(feed, dict) or "jsonfeed.org/version/" not in _text(feed, "version"):
        return Found()
    items, hubs = _objects(feed, "items"), _objects(feed, "hubs")
    return Found(
        "json",
        [_item(item) for item in items[:most]],
        [_text(hub, "url") for hub in hubs if _text(hub, "type").lower() == "websub"],
        _text(feed, "feed_url"),
        cut=len(items) > most,
    )


def _item(item: dict[str, Any]) -> Item:
    url = _text(item, "url")
    return Item([url] if url else [], [_text(item, name) for name in _DATES if _text(item, name)])


def _text(of: dict[str, Any], name: str) -> str:
    value = of.get(name)
    return value if isinstance(value, str) else ""


def _objects(of: dict[str, Any], name: str) -> list[dict[str, Any]]:
    value = of.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
