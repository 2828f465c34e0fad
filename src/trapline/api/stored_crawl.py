"""A crawl in a folder, for Python programs: its summary, and its pages, links and text as tables of Arrow."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from trapline.crawler.files.layout import check_crawl
from trapline.crawler.inspect.summary import summary_in
from trapline.errors import ConfigError, nearest
from trapline.export.files import record_batches
from trapline.export.source import ExportSource
from trapline.export.tables import TABLES
from trapline.parallel.folder.merged import brought_up


def open_crawl(folder: str | Path) -> "StoredCrawl":
    """Open the folder of a crawl, finished, running or interrupted. Nothing is written to it.

    Raises:
        ConfigError: the folder is not that of a crawl.
    """
    return StoredCrawl(Path(folder))


class StoredCrawl:
    """A crawl in a folder, made by `trapline.open_crawl`.

    A table is a `pyarrow.Table`; its method `to_pandas()` makes a data frame. The tables and their columns are those of
    `trapline export` (docs/how-to/export.md). Each table shows the last commit at the moment when it is read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        check_crawl(brought_up(folder))

    def __repr__(self) -> str:
        return f"StoredCrawl({str(self.folder)!r})"

    def _repr_html_(self) -> str | None:
        """Return the numbers as of the last commit and the pages over time, for notebooks. None: the folder cannot be read."""
        from trapline.report.notebook import folder_html  # imported late: programs without a notebook need no charts

        try:
            return folder_html(self.folder)
        except (ConfigError, OSError, sqlite3.Error):
            return None

    @property
    def summary(self) -> dict[str, Any]:
        """The keys of summary.json (docs/crawl-summary.md), as of now."""
        return summary_in(brought_up(self.folder))

    @property
    def pages(self) -> Any:
        """One row per known URL, with its last fetch."""
        return self.table("pages")

    @property
    def requisites(self) -> Any:
        """One row per file that a page needs and that is no page, in crawls with requisites."""
        return self.table("requisites")

    @property
    def fetches(self) -> Any:
        """One row per attempt to fetch a page."""
        return self.table("fetches")

    @property
    def sites(self) -> Any:
        """One row per site."""
        return self.table("sites")

    @property
    def links(self) -> Any:
        """One row per link of each fetched page, with anchor text, and whether the crawl follows it or why not."""
        return self.table("links")

    @property
    def text(self) -> Any:
        """One row per fetched HTML page or plain text file, with title and visible text."""
        return self.table("text")

    def table(self, name: str) -> Any:
        """Return a whole table as a `pyarrow.Table`."""
        import pyarrow as pa  # type: ignore[import-untyped]

        return pa.Table.from_batches(self.batches(name), schema=_table(name).schema)

    def batches(self, name: str) -> Iterator[Any]:
        """Yield a table piece by piece, as `pyarrow.RecordBatch`, for crawls that do not fit into memory."""
        table = _table(name)
        with closing(ExportSource(self.folder)) as source:
            yield from record_batches(table.rows(source), table.schema)


def _table(name: str) -> Any:
    if name not in TABLES:
        raise ConfigError(f"there is no table {name!r}; {nearest(name, TABLES)}")
    return TABLES[name]
