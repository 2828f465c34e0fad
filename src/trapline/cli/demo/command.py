"""`trapline demo`: four strategies crawl one generated web on loopback, in several rounds; an HTML page compares them.

All strategies get the same time, number of connections and politeness rules. The fetched pages are valued by the PageRank of the whole
web, which no strategy knows: crawl-ability takes the page rank that it has on the real web.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trapline.cli.demo.web import HURRY, VALUES_HEAD, as_served, servers_of, values_of, write_values
from trapline.cli.options.values import count, seconds
from trapline.cli.terminal.errors import INTERRUPTED
from trapline.cli.terminal.progress import LIVE_CRAWL, compile_kernels, compile_ranks, step
from trapline.defaults import QUALITY
from trapline.errors import ConfigError
from trapline.output import check_writable, write_text
from trapline.terminal import say, say_text
from trapline.units import counted, duration

if TYPE_CHECKING:
    from trapline.cli.demo.rounds import Collected, Rounds
    from trapline.crawler.engine.options import CrawlOptions
    from trapline.graph import Graph
    from trapline.report import CrawlRecord
    from trapline.testweb import Served

PAGE_RANKS = {"breadth-first": None, "larger-sites-first": None, "performance": None, "crawl-ability": QUALITY}
"""The strategies, each with a page rank for those that would otherwise be given the true values of pages."""
CONNECTIONS, DELAY_S, PER_CONNECTION = 48, 0.2, 10
PAGE_S = 1.0  # time limit for one page: longer fetches are cut, so that a crawl ends on time
PAGE, VALUES = "report.html", "pagerank.txt"


@click.command()
@click.option("--pages", type=count(1), default=20_000, show_default=True, help="Number of pages.")
@click.option("--sites", type=count(1, 20_000), default=800, show_default=True, help="Number of sites.")
@click.option("--seed", type=count(0), default=1, show_default=True, help="Random seed of the web.")
@click.option(
    "--max-time",
    "time_s",
    type=seconds(0.5),
    default=1.5,
    help="Time per crawl, in seconds or with a unit: 500ms, 10s, 1min.  [default: 1.5 s]",
)
@click.option(
    "--rounds",
    type=count(1, 100),
    default=3,
    show_default=True,
    help="Number of crawls with each strategy. More rounds make smaller differences clear.",
)
@click.option(
    "-o",
    "--output",
    "output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    default=Path("trapline-demo"),
    show_default=True,
    help="Folder for the report and the crawls. Replaces an earlier demo.",
)
def demo(pages: int, sites: int, seed: int, time_s: float, rounds: int, output: Path) -> int:
    """Serve a generated web on loopback, crawl it with four strategies, and show how fast each one collects good pages.

    Every round crawls once with each strategy. The result says which differences are more than chance.
    """
    from trapline.graph import WebModel, build
    from trapline.testweb import build_web, serve

    model = WebModel(pages, sites, seed)
    _check_folder(output)
    _compile()
    with step("generating a web", model.pages):
        graph = build(model)
        web = build_web(graph, seed=seed, servers=servers_of(graph, seed))
    with serve(web) as server:
        served = as_served(graph, server.web)
        values = values_of(served)
        write_values(values, output / VALUES)
        crawls = _Crawls(server, time_s, seed, output)
        done = crawls.run(rounds, values)
    _show(done, served, output, time_s)
    return INTERRUPTED if crawls.are_interrupted else 0


def _check_folder(folder: Path) -> None:
    """Refuse a folder whose contents do not come from an earlier demo. Runs before anything that takes long."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write {folder}: {error.strerror or error}; give another folder: -o DIR") from error
    values = folder / VALUES
    ours = values.is_file() and values.read_text("utf-8", "replace").startswith(VALUES_HEAD)
    for name in (PAGE, VALUES, *PAGE_RANKS):
        if (folder / name).exists() and not ours:
            raise ConfigError(f"{folder / name} exists and is not from a demo; choose another folder: -o DIR")
    for name in (PAGE, VALUES):
        check_writable(folder / name)


def _compile() -> None:
    import trapline.crawler.engine.run
    import trapline.report.together  # noqa: F401  all kernels of the demo: one progress line then covers them all
    from trapline.strategies.base.chosen import chosen_by

    measures = ("generate_kernels", "graph", "strings", "page_sizes", "pagerank", "measure", "exact")
    compile_kernels(within=(*LIVE_CRAWL, "trapline.simulator", *(f"trapline.graph.{name}" for name in measures)))
    compile_ranks([chosen_by(name, rank, None) for name, rank in PAGE_RANKS.items()])


class _Crawls:
    """The crawls of one web, one after the other. An interrupt ends the series."""

    def __init__(self, server: "Served", time_s: float, seed: int, output: Path) -> None:
        self._server, self._time_s, self._seed, self._output = server, time_s, seed, output
        self.are_interrupted = False

    def run(self, rounds: int, values: Mapping[str, float]) -> "Rounds":
        """Return what each strategy collected in each round. A round that was interrupted is left out."""
        for name in PAGE_RANKS:
            shutil.rmtree(self._output / name, ignore_errors=True)
        done: dict[str, list[Collected]] = {}
        for number in range(rounds):
            found = self._round(number, rounds, values)
            if self.are_interrupted:
                break
            for name in PAGE_RANKS:
                done.setdefault(name, []).append(found[name])
        return done

    def _round(self, number: int, rounds: int, values: Mapping[str, float]) -> dict[str, "Collected"]:
        from trapline.cli.demo.rounds import collected

        found, names = {}, list(PAGE_RANKS)
        first = number % len(
            names
        )  # no strategy is always the first: a crawl also feels what the one before left behind
        for name in (*names[first:], *names[:first]):
            folder = self._output / name / str(number + 1)
            say(f"round {number + 1} of {rounds}: {name}", err=True)
            if not self._crawl(name, folder):
                break
            found[name] = collected(folder, self._time_s, values)
        return found

    def _crawl(self, name: str, folder: Path) -> bool:
        """Crawl into a folder. Return whether the crawl was not interrupted."""
        from trapline.cli.crawl.view import view
        from trapline.crawler.engine.run import open_crawl
        from trapline.crawler.engine.stop_reasons import BY_HAND

        folder.parent.mkdir(exist_ok=True)
        options = _options(self._server, name, self._time_s, self._seed, self._output)
        self.are_interrupted = open_crawl(options, folder, view(False, False))["stopped_by"] in BY_HAND
        return not self.are_interrupted


def _options(server: "Served", name: str, time_s: float, seed: int, output: Path) -> "CrawlOptions":
    from trapline.crawler.engine.options import CrawlOptions, live_rules
    from trapline.fetch.limits import Limits

    return CrawlOptions(
        tuple(server.seed_urls),
        name,
        page_rank=PAGE_RANKS[name],
        quality=str(output / VALUES),
        seed=seed,
        connections=CONNECTIONS,
        rules=live_rules(delay_s=DELAY_S, per_connection=PER_CONNECTION),
        pause_s=0.0,
        max_seconds=time_s,
        scope="any",
        allow_private=True,
        hosts={name: (address,) for name, address in server.hosts.items()},
        limits=Limits(first_byte_s=PAGE_S, total_s=PAGE_S),
    )


def _show(done: "Rounds", served: "Graph", output: Path, time_s: float) -> None:
    if not done:
        return
    from trapline.cli.crawl.report import shared_settings
    from trapline.cli.demo.rounds import findings, median_round, rounds_table
    from trapline.report import compare_page

    medians = {name: median_round(crawls) for name, crawls in done.items()}
    if not all(crawl.pages for crawl in medians.values()):
        raise ConfigError(f"a crawl fetched no page in {duration(time_s)}; give crawls more time: --max-time 10s")
    shown = {name: crawl.folder for name, crawl in medians.items()}
    rounds = f"{counted(len(done[next(iter(done))]), 'round')} of {duration(time_s)} per strategy"
    with step("drawing", len(shown), "crawls"):
        records = _records(shown, served)
        size = records[0].web_size
        settings = shared_settings(tuple(shown.values()))
        subtitle = _subtitle(size, rounds, findings(done))
        page = compare_page(
            records, "Live crawls of one web", subtitle, settings, "Options that all crawls share, and their values."
        )
        write_text(output / PAGE, page)
    say_text(f"{size}; {rounds}\n\n{rounds_table(done)}\n\n{findings(done)}\n")
    say(f"Report of one crawl: trapline report {list(shown.values())[-1]}")
    say(f"Open {output / PAGE} in a browser.")


def _subtitle(size: str, rounds: str, said: str) -> str:
    return (
        f"{size}, served on loopback by servers that are {HURRY:.0f} times as fast as measured ones. {rounds}, with"
        f" {CONNECTIONS} connections, {DELAY_S:g} s between visits to a site (w) and up to {PER_CONNECTION} pages per visit (k)."
        f" {said} Numbers and plots are those of each strategy's median round."
    )


def _records(shown: Mapping[str, Path], served: "Graph") -> "Sequence[CrawlRecord]":
    from trapline.report.together import records_together

    records = records_together(list(shown.values()), served)
    return [replace(record, strategy=name, label="") for name, record in zip(shown, records, strict=True)]
