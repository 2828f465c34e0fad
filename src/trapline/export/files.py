"""Files of an export: Parquet, CSV or JSON Lines, written row by row, and visible only when they are complete.

This module does not know what the rows mean. Rows are collected to batches of bounded size, so that memory does not grow with the table;
a batch is a row group of Parquet.
"""

import io
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import chain, count, islice
from pathlib import Path
from typing import IO, Any, Protocol

import pyarrow as pa  # type: ignore[import-untyped]

from trapline import __version__, terminal
from trapline.errors import ConfigError
from trapline.output import atomic, sync

Row = tuple[Any, ...]
PARQUET, CSV, JSONL = "parquet", "csv", "jsonl"
FORMATS = (PARQUET, CSV, JSONL)
_BATCH_ROWS = 1 << 16
_BATCH_CHARACTERS = 1 << 23  # of text


class _Writer(Protocol):
    def write(self, batch: Any) -> None: ...

    def close(self) -> None: ...


class _Lines:
    """Writer of JSON Lines: one object per row."""

    def __init__(self, file: IO[bytes] | io.RawIOBase) -> None:
        self._file = file

    def write(self, batch: Any) -> None:
        for row in batch.to_pylist():
            self._file.write(json.dumps(row, ensure_ascii=False, default=_as_json, allow_nan=False).encode() + b"\n")

    def close(self) -> None:
        pass


def _as_json(value: datetime) -> str:
    return value.isoformat()


def _writer(file: IO[bytes] | io.RawIOBase, format: str, schema: Any) -> _Writer:
    if format == PARQUET:
        from pyarrow.parquet import ParquetWriter  # type: ignore[import-untyped]

        return ParquetWriter(file, schema.with_metadata({"trapline": __version__}), compression="zstd")
    if format == CSV:
        from pyarrow.csv import CSVWriter  # type: ignore[import-untyped]

        return CSVWriter(file, schema)
    return _Lines(file)


def write_rows(file: IO[bytes] | io.RawIOBase, format: str, schema: Any, rows: Iterable[Row]) -> int:
    """Write a whole file, and return its number of rows."""
    writer, written = _writer(file, format, schema), 0
    try:
        for batch in record_batches(rows, schema):
            writer.write(batch)
            written += batch.num_rows
    except BaseException:
        with suppress(Exception):  # otherwise the writer complains when it is deleted
            writer.close()
        raise
    writer.close()
    return written


def record_batches(rows: Iterable[Row], schema: Any) -> Iterator[Any]:
    """Yield the rows as record batches of Arrow."""
    batch: list[Row] = []
    characters = 0
    for row in rows:
        batch.append(row)
        characters += sum(len(value) for value in row if type(value) is str)
        if len(batch) == _BATCH_ROWS or characters >= _BATCH_CHARACTERS:
            yield _batch(batch, schema)
            batch, characters = [], 0
    if batch:
        yield _batch(batch, schema)


def _batch(rows: list[Row], schema: Any) -> Any:
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.record_batch(columns, schema=schema)


# ---- Where a table is written


def table_paths(folder: Path, table: str, format: str) -> tuple[Path, Path]:
    """Return the file of a table, and the folder of its parts."""
    return folder / f"{table}.{format}", folder / table


def check_free(folder: Path, tables: Iterable[str], format: str) -> None:
    """Raise `ConfigError` if one of the tables was written before."""
    for table in tables:
        file, parts = table_paths(folder, table, format)
        for path in (file, parts):
            if os.path.lexists(path):
                raise ConfigError(f"{path}: exists; give --overwrite to replace it, or another folder with -o")


def write_file(path: Path, format: str, schema: Any, rows: Iterable[Row]) -> int:
    with atomic(path) as file:
        return write_rows(file, format, schema, rows)


def write_parts(folder: Path, format: str, schema: Any, rows: Iterable[Row], most_rows: int) -> int:
    """Write files of at most `most_rows` rows into a folder, which appears when all are complete. There is at least one file."""
    written, rest = 0, iter(rows)
    with _new_folder(folder) as partial:
        for number in count():
            first = list(islice(rest, 1))
            if number and not first:
                break
            part = chain(first, islice(rest, most_rows - 1))
            written += write_file(partial / f"part-{number:05d}.{format}", format, schema, part)
    return written


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder that takes the place of `folder` when the block ends without an exception."""
    partial = folder.parent / f".trapline-{secrets.token_hex(6)}.partial"
    try:
        partial.mkdir()
        yield partial
        remove(folder)
        partial.rename(folder)
        sync(folder.parent)
    except OSError as error:
        raise ConfigError(f"cannot write {folder}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def remove(path: Path) -> None:
    """Remove a file or a folder with parts, if it exists. A folder with anything else in it is refused."""
    if path.is_dir() and not path.is_symlink():
        strangers = sorted(entry.name for entry in path.iterdir() if not entry.name.startswith("part-"))
        if strangers:
            raise ConfigError(f"{path}: holds other files ({strangers[0]}); remove it, or give another folder with -o")
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_stdout(format: str, schema: Any, rows: Iterable[Row]) -> int:
    """Write a table to stdout. To a terminal, characters that it would obey are escaped."""
    with _Shown() if os.isatty(1) else os.fdopen(os.dup(1), "wb") as file:
        return write_rows(file, format, schema, rows)


class _Shown(io.RawIOBase):
    """A binary file that shows complete lines on the terminal."""

    def __init__(self, say: Callable[[str], None] = terminal.say_text) -> None:
        self._say, self._rest = say, b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        lines, newline, self._rest = (self._rest + bytes(data)).rpartition(b"\n")
        if newline:
            self._say(lines.decode("utf-8", "replace"))
        return len(data)

    def close(self) -> None:
        if not self.closed and self._rest:
            self._say(self._rest.decode("utf-8", "replace"))
        super().close()
