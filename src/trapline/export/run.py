"""One export: some tables of a crawl, written to a folder or to stdout."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from trapline.errors import ConfigError
from trapline.export import files
from trapline.export.source import ExportSource
from trapline.export.tables import TABLES
from trapline.output import check_writable


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
