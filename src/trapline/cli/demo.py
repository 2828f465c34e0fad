"""`trapline demo`: one generated web on loopback, crawled live by four strategies in turn, and a page that shows them side by side.

All have the same time, robots and politeness. What they bring is measured by the PageRank of the whole web, which none of them
knows: crawl-ability goes by OPIC, as it would on the real one.
"""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trapline.cli.compiling import compile_kernels, compile_ranks, step
from trapline.cli.complaints import INTERRUPTED
from trapline.cli.demo_web import HURRY, VALUES_HEAD, as_served, servers_of, write_values
from trapline.cli.numbers import count, seconds
from trapline.cli.strategy import chosen_by
from trapline.errors import ConfigError
from trapline.output import check_writable, write_text
from trapline.terminal import say, say_text
from trapline.units import duration

if TYPE_CHECKING:
    from trapline.crawl.options import CrawlOptions
    from trapline.graph import Graph
    from trapline.report import CrawlRecord
    from trapline.testweb import Served

PAGE_RANKS = {"breadth-first": None, "larger-sites-first": None, "performance": None, "crawl-ability": "opic"}
"""the strategies, and the page rank of those that would else be told what pages are worth"""
ROBOTS, DELAY_S, PER_CONNECTION = 48, 0.2, 10
PAGE_S = 1.0  # for one page; what is longer under way is cut, so that a crawl ends when it should
PAGE, VALUES = "report.html", "pagerank.txt"


@click.command()
@click.option("--pages", type=count(1), default=20_000, show_default=True, help="Number of pages.")
@click.option("--sites", type=count(1, 20_000), default=800, show_default=True, help="Number of sites.")
@click.option("--seed", type=count(0), default=1, show_default=True, help="Another seed gives another web.")
@click.option("--max-time", "time_s", type=seconds(0.5), default=4.0, show_default=True, help="For each crawl.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("trapline-demo"),
    show_default=True,
    help="Folder for the page and the crawls; those of an earlier demo are replaced.",
)
def demo(pages: int, sites: int, seed: int, time_s: float, output: Path) -> int:
    """Serve a generated web on loopback, crawl it live by four strategies, and show what each collects when."""
    from trapline.graph import WebModel, build
    from trapline.testweb import build_web, serve

    model = WebModel(pages, sites, seed)
    _check_folder(output)
    _compile()
    with step("generating a web", model.pages):
        graph = build(model)
        web = build_web(graph, servers_of(graph, seed), seed=seed)
    with serve(web) as server:
        known = as_served(graph, server.web)
        write_values(known, output / VALUES)
        done = _crawl_all(server, time_s, seed, output)
    _show(done, known, output, f"{duration(time_s)} each")
    return 0 if len(done) == len(PAGE_RANKS) else INTERRUPTED


def _check_folder(folder: Path) -> None:
    """Before anything long: what is there must be ours to replace."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write {folder}: {error.strerror or error}") from error
    for name in (PAGE, VALUES):
        check_writable(folder / name)
    values = folder / VALUES
    ours = values.is_file() and values.read_text("utf-8", "replace").startswith(VALUES_HEAD)
    for name in PAGE_RANKS:
        if (folder / name).exists() and not ours:
            raise ConfigError(f"{folder / name} is there and not from a demo; name another folder: -o DIR")


def _compile() -> None:
    import trapline.crawl.run
    import trapline.report.together  # noqa: F401  what all of it needs, so that one line of progress tells of all

    compile_kernels()
    compile_ranks([chosen_by(name, rank, None) for name, rank in PAGE_RANKS.items()])


def _crawl_all(server: "Served", time_s: float, seed: int, output: Path) -> dict[str, Path]:
    """One crawl after the other; the folder of each, up to one that was interrupted."""
    from trapline.cli.crawl_view import view
    from trapline.crawl.ends import BY_HAND
    from trapline.crawl.run import open_crawl

    done = {}
    for number, name in enumerate(PAGE_RANKS, 1):
        folder = output / name
        shutil.rmtree(folder, ignore_errors=True)
        say(f"{name} ({number} of {len(PAGE_RANKS)})", err=True)
        summary = open_crawl(_options(server, name, time_s, seed, output), folder, view(False, False))
        if summary["stopped_by"] in BY_HAND:
            break
        done[name] = folder
    return done


def _options(server: "Served", name: str, time_s: float, seed: int, output: Path) -> "CrawlOptions":
    from trapline.crawl.options import CrawlOptions, live_rules
    from trapline.fetch.limits import Limits

    return CrawlOptions(
        tuple(server.seed_urls),
        name,
        page_rank=PAGE_RANKS[name],
        quality=str(output / VALUES),
        seed=seed,
        connections=ROBOTS,
        rules=live_rules(delay_s=DELAY_S, per_connection=PER_CONNECTION),
        pause_s=0.0,
        max_seconds=time_s,
        scope="any",
        allow_private=True,
        hosts={name: (address,) for name, address in server.hosts.items()},
        limits=Limits(first_byte_s=PAGE_S, total_s=PAGE_S),
    )


def _show(done: dict[str, Path], known: "Graph", output: Path, time: str) -> None:
    if not done:
        return
    from trapline.cli.report import shared_settings
    from trapline.cli.scoreboard import race, web_size
    from trapline.report import compare_page

    with step("drawing", len(done), "crawls"):
        records = _records(done, known)
        subtitle = (
            f"{web_size(records[0])}, served on loopback by servers that are {HURRY:.0f} times as fast as measured ones. {time}, with"
            f" {ROBOTS} robots, {DELAY_S:g} s between visits to a site (w) and up to {PER_CONNECTION} pages a visit (k)."
        )
        settings = shared_settings(tuple(done.values()))
        page = compare_page(records, "Live crawls of one web", subtitle, settings, "Those that all have.")
        write_text(output / PAGE, page)
    say_text(f"{web_size(records[0])}; {time}\n\n{race(records)}\n")
    say(f"One of them alone: trapline report {output / list(done)[-1]}")
    say(f"Open {output / PAGE} in a browser.")


def _records(done: dict[str, Path], known: "Graph") -> "Sequence[CrawlRecord]":
    from trapline.report.together import records_together

    records = records_together(list(done.values()), known)
    return [replace(record, strategy=name) for name, record in zip(done, records, strict=True)]
