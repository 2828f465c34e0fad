"""`trapline report`: an HTML page about one crawl, or a comparison of several crawls."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from trapline.errors import ConfigError
from trapline.terminal import say, say_json

PAGE = "report.html"
# In pages. Links and PageRank of this many pages take some ten seconds; for larger crawls the report shows only what the crawl recorded.
_MOST_JUDGED = 1_000_000


@click.command()
@click.argument("folders", nargs=-1, required=True, metavar="DIR...", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    "output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File to write.  [default: DIR/report.html; with several crawls, ./report.html]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the measures as JSON, and write no report.")
def report(folders: tuple[Path, ...], output: Path | None, as_json: bool) -> None:
    """Write an HTML report of the crawl in DIR, finished or running. With several crawls, write a comparison.

    A comparison measures quality by PageRank, computed over all pages that the crawls found together.
    """
    from trapline.crawler.files.layout import check_crawl
    from trapline.output import check_writable, write_text
    from trapline.parallel.folder.merged import brought_up

    if as_json and output:
        raise ConfigError("report: --json prints to stdout and writes no report; omit --json or -o")
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise ConfigError("report: a folder is given twice; give each crawl once")
    for folder in folders:
        check_crawl(brought_up(folder))
    if as_json:
        say_json(_for_machines(folders))
        return
    file = output or (folders[0] / PAGE if len(folders) == 1 else Path(PAGE))
    check_writable(file)
    write_text(file, _one(folders[0]) if len(folders) == 1 else _several(folders))
    say(f"wrote {file}", err=True)


def _one(folder: Path) -> str:
    from trapline.cli.crawl.config_command import shown_options
    from trapline.cli.terminal.progress import step
    from trapline.report.live_page import live_page
    from trapline.report.live_record import live_record
    from trapline.report.together import records_together

    _compile((folder,))  # before the record: the kernels rebuild what the crawl learned about its sites
    record, judged = live_record(folder), None
    if record.summary["pages_fetched"] and record.summary["urls_known"] <= _MOST_JUDGED:
        with step("judging", record.summary["urls_known"]):
            (judged,) = records_together([folder])
    return live_page(record, judged, shown_options(record.options))


def _compile(folders: tuple[Path, ...]) -> None:
    """Compile what the reports of these crawls need, and nothing else."""
    from contextlib import closing

    from trapline.cli.terminal.progress import REPORT, compile_kernels
    from trapline.crawler.inspect.database_reader import open_database, options

    needed: tuple[str, ...] = REPORT
    for folder in folders:
        with closing(open_database(folder)) as database:
            if options(database).refresh is not None:
                needed = (*REPORT, "trapline.refresh.core")
    compile_kernels(within=needed)


def _several(folders: tuple[Path, ...]) -> str:
    from trapline.cli.terminal.progress import step
    from trapline.report import compare_page
    from trapline.report.together import records_together

    _compile(folders)
    with step("reading", len(folders), "crawls"):
        records = records_together(folders)
        subtitle = f"All pages that the crawls found together: {records[0].web_size}"
        return compare_page(
            records,
            "Comparison of crawls",
            subtitle,
            shared_settings(folders),
            "Options that all crawls share, and their values.",
        )


def _for_machines(folders: tuple[Path, ...]) -> dict[str, Any]:
    """Return the summary and the measures of each crawl."""
    from trapline import __version__
    from trapline.cli.terminal.progress import step
    from trapline.crawler.inspect.summary import summary_in
    from trapline.report.together import records_together

    _compile(folders)
    with step("reading", len(folders), "crawls"):
        crawls = [
            {
                "folder": str(folder),
                "summary": summary_in(folder),
                **asdict(record),
                "broken_links": _broken_links(folder),
            }
            for folder, record in zip(folders, records_together(folders), strict=True)
        ]
    return {"trapline": __version__, "crawls": crawls}


def _broken_links(folder: Path) -> dict[str, Any]:
    from contextlib import closing

    from trapline.crawler.inspect.broken_links import broken_links
    from trapline.crawler.inspect.database_reader import open_database

    with closing(open_database(folder)) as database:
        found = broken_links(database)
    return {**found._asdict(), "pages": [page._asdict() for page in found.pages]}


def shared_settings(folders: tuple[Path, ...]) -> dict[str, object]:
    """Return the settings that all crawls have in common."""
    from contextlib import closing

    from trapline.cli.crawl.config_command import shown_options
    from trapline.crawler.inspect.database_reader import open_database, options

    found = []
    for folder in folders:
        with closing(open_database(folder)) as database:
            found.append(shown_options(options(database)))
    return {name: value for name, value in found[0].items() if all(one.get(name) == value for one in found)}
