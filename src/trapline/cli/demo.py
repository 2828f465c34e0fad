"""`trapline demo`: four strategies crawl one generated web on loopback, one after the other; an HTML page compares them.

All strategies get the same time, number of connections and politeness rules. The fetched pages are valued by the PageRank of the whole
web, which no strategy knows: crawl-ability uses OPIC, as it would on the real web.
"""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trapline.cli.options.values import count, seconds
from trapline.cli.terminal.errors import INTERRUPTED
from trapline.cli.terminal.progress import LIVE_CRAWL, compile_kernels, compile_ranks, step
from trapline.errors import ConfigError
from trapline.output import check_writable, write_text
from trapline.terminal import say, say_text
from trapline.units import duration

if TYPE_CHECKING:
    from trapline.crawler.engine.options import CrawlOptions
    from trapline.graph import Graph
    from trapline.report import CrawlRecord
    from trapline.servers.sampled import Servers
    from trapline.testweb import Served, ServedWeb

# ---- The web of the demo: generated, and served on loopback by servers that behave as measured ones, but faster.
#
# This part knows neither crawls nor reports. Its input is a graph; its output is a web to serve and the values of its pages.

HURRY = 10.0
"""Factor by which servers are faster than measured ones. A crawl of seconds then sees what a crawl of a minute would see with the same
number of connections."""
VALUES_HEAD = "# PageRank of the pages that trapline demo served\n"


def servers_of(graph: "Graph", seed: int) -> "Servers":
    """Return the servers, sampled as for the simulator (docs/server-models.md)."""
    from trapline.servers.model import MODELS, sped_up
    from trapline.servers.sampled import modelled_servers

    return modelled_servers(graph, sped_up(MODELS["measured"], HURRY), seed)


def as_served(graph: "Graph", web: "ServedWeb") -> "Graph":
    """Return the graph with the URLs that its pages have on loopback."""
    from dataclasses import replace

    from trapline.graph.strings import StoredStrings

    urls = StoredStrings.of(web.url(page) for page in range(web.pages))
    return replace(graph, urls=urls, site_names=StoredStrings.of(web.origins))


def write_values(graph: "Graph", file: Path) -> None:
    """Write the value of each page, in the format that --quality reads."""
    from trapline.graph import pagerank
    from trapline.graph.strings import decoded

    assert graph.urls is not None
    rows = zip(decoded(graph.urls), pagerank(graph).tolist(), strict=True)
    write_text(file, VALUES_HEAD + "".join(f"{url}\t{value!r}\n" for url, value in rows))


# ---- The command.

PAGE_RANKS = {"breadth-first": None, "larger-sites-first": None, "performance": None, "crawl-ability": "opic"}
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
    default=4.0,
    help="Time per crawl, in seconds or with a unit: 500ms, 10s, 1min.  [default: 4 s]",
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
def demo(pages: int, sites: int, seed: int, time_s: float, output: Path) -> int:
    """Serve a generated web on loopback, crawl it with four strategies, and show how fast each one collects good pages."""
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
        write_values(served, output / VALUES)
        done = _crawl_all(server, time_s, seed, output)
    _show(done, served, output, f"{duration(time_s)} each")
    return 0 if len(done) == len(PAGE_RANKS) else INTERRUPTED


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
    compile_kernels(within=(*LIVE_CRAWL, "trapline.simulate", *(f"trapline.graph.{name}" for name in measures)))
    compile_ranks([chosen_by(name, rank, None) for name, rank in PAGE_RANKS.items()])


def _crawl_all(server: "Served", time_s: float, seed: int, output: Path) -> dict[str, Path]:
    """Run one crawl after the other, and return the folder of each. An interrupted crawl ends the series and is left out."""
    from trapline.cli.crawl.view import view
    from trapline.crawler.engine.run import open_crawl
    from trapline.crawler.engine.status import BY_HAND

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


def _show(done: dict[str, Path], served: "Graph", output: Path, time: str) -> None:
    if not done:
        return
    from trapline.cli.crawl.report import shared_settings
    from trapline.cli.terminal.scoreboard import race
    from trapline.report import compare_page

    with step("drawing", len(done), "crawls"):
        records = _records(done, served)
        subtitle = (
            f"{records[0].web_size}, served on loopback by servers that are {HURRY:.0f} times as fast as measured ones. {time}, with"
            f" {CONNECTIONS} connections, {DELAY_S:g} s between visits to a site (w) and up to {PER_CONNECTION} pages per visit (k)."
        )
        settings = shared_settings(tuple(done.values()))
        page = compare_page(records, "Live crawls of one web", subtitle, settings, "Settings that all crawls share.")
        write_text(output / PAGE, page)
    say_text(f"{records[0].web_size}; {time}\n\n{race(records)}\n")
    say(f"Report of one crawl: trapline report {output / list(done)[-1]}")
    say(f"Open {output / PAGE} in a browser.")


def _records(done: dict[str, Path], served: "Graph") -> "Sequence[CrawlRecord]":
    from trapline.report.together import records_together

    records = records_together(list(done.values()), served)
    return [replace(record, strategy=name) for name, record in zip(done, records, strict=True)]
