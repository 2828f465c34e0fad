"""`trapline report`: a crawl as one HTML page, or several side by side."""

from pathlib import Path

import click

from trapline.errors import ConfigError
from trapline.terminal import say

PAGE = "report.html"
_MOST_JUDGED = (
    1_000_000  # pages: some ten seconds for their links and PageRank; above, a page shows what the crawl itself noted
)


@click.command()
@click.argument("folders", nargs=-1, required=True, metavar="DIR...", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where to write the page.  [default: DIR/report.html; of several crawls ./report.html]",
)
def report(folders: tuple[Path, ...], output: Path | None) -> None:
    """Write one HTML page about the crawl in DIR, finished or still running; of several crawls, a page that compares them.

    Several crawls are judged by the PageRank of the web that they found together.
    """
    from trapline.crawl.store.folder import check_crawl
    from trapline.output import check_writable, write_text
    from trapline.parallel.merged import brought_up

    for folder in folders:
        check_crawl(brought_up(folder))
    file = output or (folders[0] / PAGE if len(folders) == 1 else Path(PAGE))
    check_writable(file)
    write_text(file, _one(folders[0]) if len(folders) == 1 else _several(folders))
    say(f"wrote {file}", err=True)


def _one(folder: Path) -> str:
    from trapline.cli.compiling import compile_kernels, step
    from trapline.report.live_page import live_page
    from trapline.report.live_record import live_record
    from trapline.report.together import records_together

    compile_kernels()  # before the record: what a crawl learned of its sites is made again by them
    record, judged = live_record(folder), None
    if record.summary["pages_fetched"] and record.summary["urls_known"] <= _MOST_JUDGED:
        with step("judging", record.summary["urls_known"]):
            (judged,) = records_together([folder])
    return live_page(record, judged)


def _several(folders: tuple[Path, ...]) -> str:
    from trapline.cli.compiling import compile_kernels, step
    from trapline.cli.scoreboard import web_size
    from trapline.report import compare_page
    from trapline.report.together import records_together

    if len({folder.resolve() for folder in folders}) < len(folders):
        raise ConfigError("report: a folder is named twice; name each crawl once")
    compile_kernels()
    with step("reading", len(folders), "crawls"):
        records = records_together(folders)
        subtitle = f"The web that they found together: {web_size(records[0])}"
        return compare_page(
            records, "Crawls side by side", subtitle, shared_settings(folders), "Those that all have, as in crawl.db."
        )


def shared_settings(folders: tuple[Path, ...]) -> dict[str, object]:
    """The settings that all crawls have in common."""
    from contextlib import closing

    from trapline.crawl.folder import opened, options
    from trapline.report.live_table import settings

    found = []
    for folder in folders:
        with closing(opened(folder)) as database:
            found.append(settings(options(database)))
    return {name: value for name, value in found[0].items() if all(one.get(name) == value for one in found)}
