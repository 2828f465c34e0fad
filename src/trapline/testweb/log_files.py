"""The log as a file: CSV or Parquet, by its name. It knows the log's columns and nothing of who reads them."""

import csv
import io
from itertools import islice
from pathlib import Path

from trapline.errors import ConfigError
from trapline.output import atomic
from trapline.testweb.log import Log

COLUMNS = ("arrived", "arrival_s", "end_s", "connection", "address", "host", "path", "status", "bytes")
_ROWS_AT_ONCE = 100_000


def check_name(path: Path) -> None:
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise ConfigError(f"{path}: a log is CSV or Parquet, so its name must end in .csv or .parquet")


def write_log(log: Log, path: Path) -> None:
    check_name(path)
    (_write_parquet if path.suffix.lower() == ".parquet" else _write_csv)(log, path)


def _write_csv(log: Log, path: Path) -> None:
    with atomic(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text)
        writer.writerow(COLUMNS)
        writer.writerows(log.rows())
        text.flush()
        text.detach()


def _write_parquet(log: Log, path: Path) -> None:
    import pyarrow as pa  # type: ignore[import-untyped]  # late: it takes longer than a small web
    import pyarrow.parquet  # type: ignore[import-untyped]

    numbers = [pa.float64()] * 3 + [pa.int32()]
    schema = pa.schema(zip(COLUMNS, [*numbers, *[pa.string()] * 3, pa.int16(), pa.int64()], strict=True))
    rows = log.rows()
    with atomic(path) as file, pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        while part := list(islice(rows, _ROWS_AT_ONCE)):
            writer.write_table(pa.table([list(column) for column in zip(*part, strict=True)], schema=schema))
