"""The tables of an export: their columns with types, and what makes their rows. docs/how-to/export.md explains each column."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from trapline.export.database_tables import fetches, pages, requisites, sites
from trapline.export.link_table import links
from trapline.export.source import ExportSource, Row
from trapline.export.text_table import text

_TEXT, _LONG, _INT, _REAL, _YES = pa.string(), pa.int64(), pa.int32(), pa.float64(), pa.bool_()
_TIME = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class ExportTable:
    rows: Callable[[ExportSource], Iterator[Row]]
    columns: Mapping[str, Any]  # name and type

    @property
    def schema(self) -> Any:
        return pa.schema(list(self.columns.items()))


TABLES = {
    "pages": ExportTable(
        pages,
        {
            "id": _LONG, "url": _TEXT, "site": _TEXT, "state": _TEXT, "status": _INT, "error": _TEXT, "mime": _TEXT,
            "bytes": _LONG, "fetched_at": _TIME, "digest": _TEXT, "noindex": _YES, "nofollow": _YES, "noarchive": _YES,
        },
    ),
    "requisites": ExportTable(
        requisites,
        {
            "id": _LONG, "url": _TEXT, "site": _TEXT, "role": _TEXT, "state": _TEXT, "needed_by": _TEXT, "status": _INT,
            "error": _TEXT, "mime": _TEXT, "bytes": _LONG, "fetched_at": _TIME, "digest": _TEXT,
        },
    ),
    "fetches": ExportTable(
        fetches,
        {
            "id": _LONG, "page_id": _LONG, "url": _TEXT, "site": _TEXT, "visit": _LONG, "address": _TEXT, "started_at": _TIME,
            "first_byte_s": _REAL, "total_s": _REAL, "result": _TEXT, "status": _INT, "error": _TEXT, "bytes": _LONG,
            "mime": _TEXT, "digest": _TEXT, "links": _LONG, "truncated": _TEXT, "changed": _YES, "warc": _TEXT,
            "warc_offset": _LONG, "warc_length": _LONG,
        },
    ),
    "sites": ExportTable(
        sites,
        {
            "id": _LONG, "origin": _TEXT, "pages_known": _LONG, "pages_fetched": _LONG, "pages_failed": _LONG,
            "pages_forbidden": _LONG, "bytes": _LONG, "robots_status": _INT, "abandoned": _TEXT, "abandoned_why": _TEXT,
        },
    ),
    "links": ExportTable(
        links,
        {
            "source": _TEXT, "target": _TEXT, "text": _TEXT, "rel": _TEXT, "element": _TEXT, "href": _TEXT, "followed": _YES,
            "reason": _TEXT, "source_id": _LONG, "target_id": _LONG, "target_status": _INT,
        },
    ),
    "text": ExportTable(
        text,
        {"page_id": _LONG, "url": _TEXT, "fetched_at": _TIME, "title": _TEXT, "text": _TEXT},
    ),
}  # fmt: skip
