"""The log as a file: CSV or Parquet, by its name. It knows the log's columns and nothing of who reads them."""

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from trapline.errors import ConfigError
from trapline.output import atomic
from trapline.testweb.log import Log

COLUMNS = ("arrived", "arrival_s", "end_s", "connection", "address", "host", "path", "status", "bytes", "version")
_ROWS_AT_ONCE = 100_000


def check_name(path: Path) -> None:
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise ConfigError(f"{path}: it is written as CSV or Parquet, so its name must end in .csv or .parquet")


def write_log(log: Log, path: Path) -> None:
    import pyarrow as pa  # type: ignore[import-untyped]  # late: it takes longer than a small web

    numbers = [pa.float64()] * 3 + [pa.int32()]
    kinds = [*numbers, *[pa.string()] * 3, pa.int16(), pa.int64(), pa.int32()]
    write_rows(log.rows(), pa.schema(zip(COLUMNS, kinds, strict=True)), path)


def write_rows(rows: Iterable[tuple[Any, ...]], schema: Any, path: Path) -> None:
    """Rows of the columns of an Arrow schema."""
    check_name(path)
    (_write_parquet if path.suffix.lower() == ".parquet" else _write_csv)(iter(rows), schema, path)


def _write_csv(rows: Iterator[tuple[Any, ...]], schema: Any, path: Path) -> None:
    with atomic(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text)
        writer.writerow(schema.names)
        writer.writerows(rows)
        text.flush()
        text.detach()


def _write_parquet(rows: Iterator[tuple[Any, ...]], schema: Any, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet  # type: ignore[import-untyped]

    with atomic(path) as file, pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        while part := list(islice(rows, _ROWS_AT_ONCE)):
            writer.write_table(pa.table([list(column) for column in zip(*part, strict=True)], schema=schema))
