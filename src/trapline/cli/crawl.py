"""`trapline crawl`: the live crawl. It turns options into one value, shows how the crawl goes, and says what came of it."""

import json
import math
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from trapline.cli import rules
from trapline.cli.compiling import compile_kernels, compile_ranks, compile_replay
from trapline.cli.conditions import QUALITY
from trapline.cli.numbers import amount, count, rate, real, seconds, share
from trapline.cli.progress import Progress
from trapline.cli.sections import Many, Section, SectionedCommand, bundled
from trapline.cli.seeds import seed_urls
from trapline.cli.strategy import STRATEGY, Chosen, files_of
from trapline.errors import ConfigError

if TYPE_CHECKING:
    from trapline.crawl.opening import Prepared
    from trapline.crawl.options import CrawlOptions, RefreshOptions
    from trapline.frontier import Rules

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_FOLDER = click.Path(path_type=Path)
STRATEGY_OF_A_CRAWL = "crawl-ability"

CRAWL = Section(
    "Crawl",
    (
        ("-o --output", "output", (_FOLDER, "DIR"), None, "The crawl's folder, to be made."),
        ("--resume", "resume", (_FOLDER, "DIR"), None, "Go on with this crawl, as it began; goals may change."),
        ("--seeds", "seeds", (_FILE, "FILE"), None, "More URLs to begin with, one a row."),
        ("--connections", "connections", count(1, 100_000), 100, "r: robots at work at once."),
        ("--max-pages", "max_pages", count(1), None, "Stop after so many pages."),
        ("--max-time", "max_seconds", seconds(), None, "Stop after so long a time."),
        ("--max-bytes", "max_bytes", amount(), None, "Stop after so many bytes: 20MB, 1GB."),
        ("--seed", "seed", count(0), 0, "For strategies that draw lots."),
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
REFRESH = Section(
    "Refresh: pages that were fetched are fetched again",
    (
        ("--refresh", "refresh", None, False, "Fetch pages again, beside new ones."),
        ("--continuous", "continuous", None, False, "Do not end when nothing new is left; implies --refresh."),
        ("--refresh-policy", "refresh_policy", (str, "NAME"), "residual-life", "What to fetch again: docs/refresh.md."),
        ("--refresh-option", "refresh_settings", Many("NAME=X"), (), "An option of the policy; may be given again."),
        ("--refresh-share", "refresh_share", share(), 0.5, "Of all pages asked for, while new ones wait."),
        ("--refresh-price", "refresh_price", real(), None, "Instead of a share: what a page must be worth."),
        ("--refresh-rate", "refresh_rate", real(1e6), None, "Pages per second fetched again, at most. [unlimited]"),
    ),
)
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
        ("--contact", "contact", (str, "URL"), "", "Where site owners learn who you are: part of the user agent."),
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
_LIVE_QUALITY = QUALITY.with_defaults(quality="opic").with_texts(
    quality="opic, zipf, FILE or MODULE:FUNCTION. [opic]", history="Old crawl, for historical-*: its folder, a graph, or values."
)  # fmt: skip
_LIVE_RULES = tuple(
    section.with_defaults(per_connection=10, pages_per_site=25_000).with_texts(
        pages_per_site="Most pages of a site; 0: no limit.",
        rescore="Pages between PageRank runs. [0: 1,000]",
        first_response_s="Per page, before any measurement. [0.1 s]",
    )
    for section in rules.SECTIONS
)
_POLITENESS, _LIMITS, *_OTHER_RULES = _LIVE_RULES
SECTIONS = (
    CRAWL,
    STRATEGY.with_defaults(strategy=STRATEGY_OF_A_CRAWL),
    _LIVE_QUALITY,
    SCOPE,
    REFRESH,
    _POLITENESS,
    _LIMITS,
    NETWORK,
    *_OTHER_RULES,
    _SHOWN,
)
_GOALS = ("max_pages", "max_seconds", "max_bytes")
# Of refresh, with the names that they have there.
_REFRESH_GOALS = {
    "continuous": "continuous",
    "refresh_share": "share",
    "refresh_price": "price",
    "refresh_rate": "rate",
}
_MAY_CHANGE = {"resume", *_GOALS, *_REFRESH_GOALS, *_SHOWN.fields} - {"metadata"}  # when a crawl goes on


@dataclass(frozen=True, slots=True)
class Requested:
    """The options as typed; `options` makes one value of them."""

    given: dict[str, Any]

    def options(self, urls: tuple[str, ...]) -> "CrawlOptions":
        from trapline.crawl.options import PAUSE_S, CrawlOptions
        from trapline.fetch.hosts import read_hosts
        from trapline.fetch.limits import Limits

        given = dict(self.given)
        for name in ("output", "resume", "plain", "quiet", "as_json"):
            del given[name]
        obeyed = {field: given.pop(field) for section in rules.SECTIONS for field in section.fields}
        limits = Limits(total_s=given.pop("total_s"), body_bytes=int(given.pop("body_bytes")))
        if given["pause_s"] is None:
            given["pause_s"] = min(PAUSE_S, obeyed["delay_s"])
        for limit in (*_GOALS, "bandwidth", "site_bandwidth"):
            given[limit] = math.inf if given[limit] is None else given[limit]
        hosts, seeds = given.pop("hosts_file"), given.pop("seeds")
        refresh = _refresh({name: given.pop(name) for name in REFRESH.fields})
        return CrawlOptions(
            **(given | _from_anywhere(given)),
            seeds=seed_urls(urls, seeds),
            rules=_rules(obeyed, given["http"]),
            limits=limits,
            refresh=refresh,
            hosts=read_hosts(hosts) if hosts else {},
        )


def _requested(**given: Any) -> Requested:
    return Requested(given)


def _from_anywhere(given: dict[str, Any]) -> dict[str, Any]:
    """What names files of the user's, so that it still does when the crawl goes on from another folder."""
    from trapline.strategies.choice import absolute

    quality, history = given["quality"], given["history"]
    return {
        **{name: given[name] and absolute(given[name]) for name in STRATEGY.fields},
        "quality": str(Path(quality).absolute()) if Path(quality).is_file() else quality,
        "history": str(history.absolute()) if history else None,
        "modules": os.getcwd(),
    }


def _refresh(given: dict[str, Any]) -> "RefreshOptions | None":
    from trapline.crawl.options import RefreshOptions
    from trapline.refresh.registry import policy_named

    if not given["refresh"] and not given["continuous"]:
        _refuse(REFRESH.fields, "says how pages are fetched again; give --refresh or --continuous too")
        return None
    if given["refresh_price"] is not None:
        _refuse(("refresh_share",), "and --refresh-price exclude each other; give one of them")
    settings = _settings(given["refresh_settings"])
    policy_named(given["refresh_policy"]).with_options(**settings)  # refused now, if there is no such thing
    rate = given["refresh_rate"]
    if rate == 0.0:
        raise ConfigError("--refresh-rate 0 would fetch nothing again; leave --refresh out")
    return RefreshOptions(
        policy=given["refresh_policy"],
        settings=settings,
        share=given["refresh_share"],
        price=given["refresh_price"],
        rate=math.inf if rate is None else rate,
        continuous=given["continuous"],
    )


def _refuse(fields: Collection[str], why: str) -> None:
    """An option that was typed and would have no effect."""
    context = click.get_current_context()
    for param in context.command.params:
        if param.name in fields and context.get_parameter_source(param.name) is ParameterSource.COMMANDLINE:
            raise ConfigError(f"{param.opts[-1]} {why}")


def _settings(given: tuple[str, ...]) -> dict[str, float]:
    settings = {}
    for text in given:
        name, _, value = text.partition("=")
        try:
            settings[name] = float(value)
        except ValueError:
            raise ConfigError(f"--refresh-option {text}: give NAME=NUMBER, such as kappa=0.5") from None
    return settings


def _rules(obeyed: dict[str, Any], http: str) -> "Rules":
    from trapline.frontier import Rules

    if not obeyed["batch"] and (obeyed["batch_ahead"] or obeyed["batch_least_active"]):
        raise ConfigError("--batch-ahead and --batch-least-active need --batch")
    said = {field: value for field, value in obeyed.items() if value is not None}
    if http == "1.0":
        said["per_connection"] = 1
    return Rules(**said, pipelining=http == "pipelining")


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
    if resume is not None:
        _refuse_others(urls)
    elif output is None:
        raise ConfigError("give the crawl a folder: -o DIR")
    if resume is not None and _has_ended(resume, given):
        return 0
    prepared = _prepared_old(resume, given) if resume else _prepared_new(requested.options(urls), output)
    if not given["quiet"]:
        for note in prepared.notes:
            click.echo(f"trapline: note: {note}", err=True)
    _compile(prepared, given["quiet"])
    summary = _crawled(prepared, given["plain"], given["quiet"])
    _say(summary, prepared.folder, given["as_json"], given["quiet"])
    return 0


def _refuse_others(urls: tuple[str, ...]) -> None:
    """A crawl goes on as it began; what is typed and has no effect would be taken for granted."""
    if urls:
        raise ConfigError("--resume DIR goes on with the URLs of that crawl; give no others")
    context = click.get_current_context()
    for param in context.command.params:
        name = param.name or ""
        if name not in _MAY_CHANGE and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise ConfigError(
                f"--resume DIR goes on under the options that it began with, so not with {param.opts[-1]}"
            )


def _has_ended(folder: Path, given: dict[str, Any]) -> bool:
    """Whether there is nothing to go on with; then that is said."""
    from trapline.crawl.ended import ended

    over = ended(folder, given["continuous"], **_raised(given))
    if over is not None:
        _print(over.line, over.summary, given["as_json"], given["quiet"])
    return over is not None


def _raised(given: dict[str, Any]) -> dict[str, float]:
    """Goals that a crawl goes on with, if they are named."""
    return {goal: given[goal] for goal in _GOALS if given[goal] is not None}


def _refresh_changes(given: dict[str, Any]) -> dict[str, Any]:
    """How pages are fetched again from now on, as far as it was typed."""
    context = click.get_current_context()
    typed = [name for name in _REFRESH_GOALS if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    changes = {_REFRESH_GOALS[name]: given[name] for name in typed}
    if "share" in changes and "price" in changes:
        raise ConfigError("--refresh-share and --refresh-price exclude each other; give one of them")
    if changes.get("rate") == 0.0:
        raise ConfigError("--refresh-rate 0 would fetch nothing again; give a rate above 0")
    return {**changes, "price": None} if "share" in changes and "price" not in changes else changes


def _prepared_new(options: "CrawlOptions", folder: Path) -> "Prepared":
    from trapline.crawl.opening import prepare_new

    with Progress("looking up the seeds", plain_every_s=math.inf) as progress:  # some seconds at most
        progress.update(0, len(options.seeds))
        return prepare_new(options, folder)


def _prepared_old(folder: Path, given: dict[str, Any]) -> "Prepared":
    from trapline.crawl.opening import prepare_old

    return prepare_old(folder, _refresh_changes(given), **_raised(given))


def _compile(prepared: "Prepared", quiet: bool) -> None:
    import trapline.crawl.run  # noqa: F401  its kernels, all imported before they are counted

    options = prepared.options
    if prepared.new:
        compile_kernels(quiet)
    else:
        compile_replay(quiet)
    compile_ranks([Chosen(prepared.strategy, files_of(options.strategy, options.page_rank, options.site_rank))], quiet)


def _crawled(prepared: "Prepared", plain: bool, quiet: bool) -> dict[str, Any]:
    from trapline.cli.crawl_view import view
    from trapline.crawl.opening import opened
    from trapline.crawl.run import run_crawl

    with Progress("reading the crawl", plain_every_s=2.0, quiet=quiet) as progress:
        crawl = opened(prepared, progress.update)
    return run_crawl(crawl, view(plain, quiet))


def _say(summary: dict[str, Any], folder: Path, as_json: bool, quiet: bool) -> None:
    from trapline.cli.crawl_view import closing_lines

    _print(closing_lines(summary, folder), summary, as_json, quiet)


def _print(lines: str, summary: dict[str, Any], as_json: bool, quiet: bool) -> None:
    if as_json:
        click.echo(json.dumps(summary, indent=1))
    elif not quiet:
        click.echo(lines)
