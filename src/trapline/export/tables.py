"""The tables of an export: their columns with types, what makes their rows, and the export of some of them to a folder or to stdout.

docs/how-to/export.md explains each column.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]

from trapline.errors import ConfigError
from trapline.export import files
from trapline.export.archive_tables import links, text
from trapline.export.database_tables import fetches, pages, requisites, sites
from trapline.export.source import ExportSource, Row
from trapline.output import check_writable

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
            "quality": _REAL,
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


# ---- One export: some tables, written one after the other


class Exported(NamedTuple):
    table: str
    path: Path
    rows: int


def check_output(folder: Path, tables: Sequence[str], format: str, overwrite: bool) -> None:
    """Raise `ConfigError` if the tables cannot be written to this folder."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder}: exists and is not a folder; name another folder with -o")
    if not overwrite:
        files.check_free(folder, tables, format)
    check_writable(folder / ".trapline" if folder.is_dir() else folder)  # under a name that is free


def export(
    source: ExportSource, tables: Sequence[str], format: str, folder: Path, rows_per_file: int | None
) -> Iterator[Exported]:
    """Write the tables one after the other, replacing older ones, and yield each when it is complete."""
    folder.mkdir(exist_ok=True)
    for name in tables:
        table = TABLES[name]
        file, parts = files.table_paths(folder, name, format)
        if rows_per_file is None:
            rows = files.write_file(file, format, table.schema, table.rows(source))
            files.remove(parts)
        else:
            rows = files.write_parts(parts, format, table.schema, table.rows(source), rows_per_file)
            files.remove(file)
        yield Exported(name, file if rows_per_file is None else parts, rows)


def export_to_stdout(source: ExportSource, table: str, format: str) -> None:
    files.write_stdout(format, TABLES[table].schema, TABLES[table].rows(source))
