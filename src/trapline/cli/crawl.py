"""`trapline crawl`: the live crawl. It turns options into one value, shows how the crawl goes, and says what came of it."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli import rules
from trapline.cli.compiling import compile_kernels, compile_ranks, compile_replay
from trapline.cli.conditions import QUALITY
from trapline.cli.numbers import amount, count, rate, seconds
from trapline.cli.sections import Many, Section, SectionedCommand, bundled
from trapline.cli.strategy import STRATEGY, chosen_by
from trapline.errors import ConfigError

if TYPE_CHECKING:
    from trapline.crawl.options import CrawlOptions

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_FOLDER = click.Path(path_type=Path)
STRATEGY_OF_A_CRAWL = "crawl-ability"

CRAWL = Section(
    "Crawl",
    (
        ("-o --output", "output", (_FOLDER, "DIR"), None, "The crawl's folder; it is made."),
        ("--resume", "resume", (_FOLDER, "DIR"), None, "Go on with a crawl, under the options that it began with."),
        ("--seeds", "seeds", (_FILE, "FILE"), None, "More URLs to begin with, one a row."),
        ("--connections", "connections", count(1, 100_000), 100, "r: robots at work at once."),
        ("--max-pages", "max_pages", count(1), None, "Stop after so many pages."),
        ("--max-time", "max_seconds", seconds(), None, "Stop after so long a time."),
        ("--max-bytes", "max_bytes", amount(), None, "Stop after so many bytes: 20MB, 1GB."),
        ("--seed", "seed", count(0), 0, "For dice."),
    ),
)
SCOPE = Section(
    "Scope",
    (
        ("--scope", "scope", (click.Choice(("any", "host", "domain")), "NAME"), "any", "any site, or the host or domain of a seed."),
        ("--include", "include", Many("REGEX"), (), "Only URLs in which it is found; may be given again."),
        ("--exclude", "exclude", Many("REGEX"), (), "No URLs in which it is found; may be given again."),
    ),
)  # fmt: skip
NETWORK = Section(
    "Network",
    (
        ("--pause", "pause_s", seconds(), None, "Between two pages of a visit. [1 s, or --delay if less]"),
        ("--http", "http", (click.Choice(("1.0", "1.1", "pipelining")), "VERSION"), "1.1", "1.0, 1.1 or pipelining."),
        ("--bandwidth", "bandwidth", rate(), None, "B: bytes per second in all. [unlimited]"),
        ("--site-bandwidth", "site_bandwidth", rate(), None, "Bytes per second from one site. [unlimited]"),
        ("--timeout", "total_s", seconds(0.1), 120.0, "Longest time for one page."),
        ("--max-body", "body_bytes", amount(), 10 * 2**20, "Bodies are cut there. [10 MiB]"),
        ("--give-up", "give_up", count(1), 5, "Leave a site alone after so many failed visits in a row."),
        ("--contact", "contact", (str, "URL"), "", "Where site owners learn who you are: part of the user agent. []"),
        ("--hosts", "hosts_file", (_FILE, "FILE"), None, "Addresses of names, as in /etc/hosts."),
        ("--nameserver", "nameservers", Many("ADDRESS"), (), "Ask this DNS server; may be given again."),
        ("--allow-private", "allow_private", None, False, "Connect to loopback and private addresses as well."),
        ("--insecure", "insecure", None, False, "Take any TLS certificate."),
    ),
)  # fmt: skip
_SHOWN = Section(
    "Output",
    (
        ("--plain", "plain", None, False, "A line now and then instead of a live view."),
        ("--quiet", "quiet", None, False, "Say nothing but errors."),
        ("--metadata", "metadata", None, False, "Archive the links of each page as a WARC metadata record."),
        ("--json", "as_json", None, False, "Print the summary as JSON."),
    ),
)
_LIVE_QUALITY = QUALITY.with_defaults(quality="opic").with_texts(quality="opic, zipf, FILE or MODULE:FUNCTION. [opic]")
_LIVE_RULES = tuple(
    section.with_defaults(per_connection=10, pages_per_site=25_000).with_texts(
        pages_per_site="Most pages of a site; 0: no limit.", rescore="Pages between PageRank runs. [0: 1,000]"
    )
    for section in rules.SECTIONS
)


SECTIONS = (
    CRAWL,
    STRATEGY.with_defaults(strategy=STRATEGY_OF_A_CRAWL),
    _LIVE_QUALITY,
    SCOPE,
    *_LIVE_RULES,
    NETWORK,
    _SHOWN,
)


def _requested(**given: Any) -> "Requested":
    return Requested(given)


class Requested:
    """The options as typed; `options` checks them and makes one value of them."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given

    def options(self, urls: tuple[str, ...]) -> "CrawlOptions":
        from trapline.crawl.options import PAUSE_S, CrawlOptions
        from trapline.fetch.hosts import read_hosts
        from trapline.fetch.limits import Limits

        given = dict(self.given)
        obeyed = {field: given.pop(field) for section in rules.SECTIONS for field in section.fields}
        limits = Limits(total_s=given.pop("total_s"), body_bytes=int(given.pop("body_bytes")))
        if given["pause_s"] is None:
            given["pause_s"] = min(PAUSE_S, obeyed["delay_s"])
        hosts, seeds = given.pop("hosts_file"), given.pop("seeds")
        history = given.pop("history")
        for limit in ("max_pages", "max_seconds", "max_bytes", "bandwidth", "site_bandwidth"):
            given[limit] = math.inf if given[limit] is None else given[limit]
        for name in ("output", "resume", "plain", "quiet", "as_json"):
            given.pop(name)
        for name in ("strategy", "quality"):  # a resume may be called from another folder
            given[name] = str(Path(given[name]).absolute()) if Path(given[name]).is_file() else given[name]
        return CrawlOptions(
            **given,
            seeds=seed_urls(urls, seeds),
            history=str(history.absolute()) if history else None,
            rules=_rules(obeyed, given["http"]),
            limits=limits,
            hosts=read_hosts(hosts) if hosts else {},
        )


def _rules(obeyed: dict[str, Any], http: str) -> Any:
    from trapline.frontier import Rules

    if not obeyed["batch"] and (obeyed["batch_ahead"] or obeyed["batch_least_active"]):
        raise ConfigError("--batch-ahead and --batch-least-active need --batch")
    said = {field: value for field, value in obeyed.items() if value is not None}
    if http == "1.0":
        said["per_connection"] = 1
    return Rules(**said, pipelining=http == "pipelining")


def seed_urls(urls: tuple[str, ...], file: Path | None) -> tuple[str, ...]:
    """The URLs to begin with, canonical, each once."""
    from trapline.fetch.urls import canonical

    given = [(url, f"{url}") for url in urls]
    if file is not None:
        rows = file.read_text("utf-8", "replace").splitlines()
        given += [
            (row.strip(), f"{file}, row {number}: {row.strip()[:80]}")
            for number, row in enumerate(rows, 1)
            if row.strip() and not row.startswith("#")
        ]
    if not given:
        raise ConfigError("no URL to begin with: name some, or give --seeds FILE")
    found: dict[str, None] = {}
    for url, what in given:
        text = canonical(url if "://" in url else f"http://{url}")
        if text is None:
            raise ConfigError(f"{what}: not an http or https URL")
        found[text] = None
    return tuple(found)


@click.command(cls=SectionedCommand)
@click.argument("urls", nargs=-1, metavar="URL...")
@bundled("requested", _requested, *SECTIONS)
def crawl(urls: tuple[str, ...], requested: Requested) -> int:
    """Crawl the web from these URLs into a folder: WARC files, an index, a database, a summary.

    Ctrl-C ends the visits under way and leaves a whole folder; --resume DIR goes on, also after a crash. A TIME is in
    seconds, or with a unit: 250ms, 2min, 1h. Brackets hold the default.
    """
    given = requested.given
    output, resume = given["output"], given["resume"]
    if resume is not None and (urls or output or given["seeds"]):
        raise ConfigError("--resume DIR goes on with the URLs and in the folder of that crawl; give no others")
    if resume is None and output is None:
        raise ConfigError("give the crawl a folder: -o DIR")
    if resume is not None:
        return _run(None, resume, given)
    return _run(requested.options(urls), output, given)


def _goals(given: dict[str, Any]) -> dict[str, float]:
    """Goals that a crawl goes on with, if they are named."""
    return {name: given[name] for name in ("max_pages", "max_seconds", "max_bytes") if given[name] is not None}


def _run(options: "CrawlOptions | None", folder: Path, given: dict[str, Any]) -> int:
    from trapline.cli.crawl_view import closing_lines, view
    from trapline.crawl.ended import ended
    from trapline.crawl.run import open_crawl, resume_crawl

    if options is None and (over := ended(folder, **_goals(given))) is not None:
        _say(over.line, over.summary, given)
        return 0
    chosen = chosen_by(options.strategy, options.page_rank, options.site_rank) if options else None
    if chosen:
        compile_kernels()
        compile_ranks([chosen])
    else:
        compile_replay()
    summary = (
        open_crawl(options, folder, view(given["plain"], given["quiet"]))
        if options
        else resume_crawl(folder, view(given["plain"], given["quiet"]), **_goals(given))
    )
    _say(closing_lines(summary, folder), summary, given)
    return 0


def _say(lines: str, summary: dict[str, Any], given: dict[str, Any]) -> None:
    if given["as_json"]:
        import json

        click.echo(json.dumps(summary, indent=1))
    elif not given["quiet"]:
        click.echo(lines)
