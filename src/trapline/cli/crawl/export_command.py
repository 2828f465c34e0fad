"""`trapline export`: tables of a crawl for other programs."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import click

from trapline.cli.options.values import count
from trapline.cli.terminal.progress import ARCHIVED_PAGES, Progress, compile_kernels
from trapline.errors import ConfigError
from trapline.terminal import say
from trapline.units import counted

# As in trapline.export, which is not imported for --help.
TABLES = ("pages", "requisites", "fetches", "sites", "links", "text")
FORMATS = ("parquet", "csv", "jsonl")
FOLDER = "export"
STDOUT = Path("-")
UNREADABLE = 1  # exit code


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("tables", metavar="[TABLE]...", nargs=-1, type=click.Choice(TABLES))
@click.option(
    "--to", "format", type=click.Choice(FORMATS), default="parquet", show_default=True, help="Format of the files."
)
@click.option(
    "-o",
    "--output",
    "output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder to write to, or - to write one table as csv or jsonl to stdout.  [default: DIR/export]",
)
@click.option(
    "--rows-per-file",
    "rows_per_file",
    type=count(1),
    help="Write each table as a folder of files with at most this many rows.  [default: one file per table]",
)
@click.option("--overwrite", is_flag=True, help="Replace tables that were exported before.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
def export(
    folder: Path,
    tables: tuple[str, ...],
    format: str,
    output: Path | None,
    rows_per_file: int | None,
    overwrite: bool,
    quiet: bool,
) -> int:
    """Export tables of the crawl in DIR, finished or running, for pandas, DuckDB and other programs.

    Tables: pages, requisites, fetches, sites, links (with anchor text), text (with titles). Without TABLE, the command exports
    all tables. Exits with status 1 if records in the archives could not be read.
    """
    tables = tuple(dict.fromkeys(tables)) or TABLES
    if output == STDOUT:
        _check_stdout(tables, format, rows_per_file)
    from trapline.export.source import ExportSource
    from trapline.export.tables import check_output, export_to_stdout
    from trapline.export.tables import export as export_tables

    if "links" in tables or "text" in tables:
        compile_kernels(quiet, ARCHIVED_PAGES)
    target = output or folder / FOLDER
    is_shown = output == STDOUT and os.isatty(1)  # then the rows are the progress
    with (
        Progress("exporting", plain_every_s=2.0, quiet=quiet or is_shown) as progress,
        closing(ExportSource(folder, progress.update)) as source,
    ):
        if output == STDOUT:
            export_to_stdout(source, tables[0], format)
            done = []
        else:
            check_output(target, tables, format, overwrite)
            done = list(export_tables(source, tables, format, target, rows_per_file))
    if not quiet:
        say(*(f"wrote {one.path}: {counted(one.rows, 'row')}" for one in done), err=True)
    if source.unreadable.pages:
        say(*_unreadable(folder, len(source.unreadable.pages), source.unreadable.first), err=True)
        return UNREADABLE
    return 0


def _unreadable(folder: Path, pages: int, first: str) -> Iterator[str]:
    yield f"trapline: the records of {counted(pages, 'page')} cannot be read; the first: {first}"
    yield f"  their text is missing, and links have no anchor text; to check the folder: trapline verify {folder}"


def _check_stdout(tables: tuple[str, ...], format: str, rows_per_file: int | None) -> None:
    if len(tables) > 1:
        raise ConfigError(f"export: `-o -` writes only one table; name one of {', '.join(TABLES)}")
    if format == "parquet":
        raise ConfigError("export: `-o -` cannot write parquet; give --to csv or --to jsonl")
    if rows_per_file is not None:
        raise ConfigError("export: `-o -` writes no files; omit --rows-per-file")
