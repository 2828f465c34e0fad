"""Options of `trapline crawl`, and the one value that they make. It opens nothing and crawls nothing."""

import math
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from trapline.cli import rules
from trapline.cli.conditions import QUALITY
from trapline.cli.numbers import amount, count, rate, real, seconds, share
from trapline.cli.refresh_settings import settings_of
from trapline.cli.sections import Many, Section
from trapline.cli.seeds import seed_urls
from trapline.cli.strategy import STRATEGY
from trapline.errors import ConfigError
from trapline.parallel import MOST_PROCESSES

if TYPE_CHECKING:
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
        ("--connections", "connections", count(1, 100_000), 100, "r: robots at work at once, of each process."),
        (
            "--processes",
            "processes",
            count(1, MOST_PROCESSES),
            None,
            "Crawl with so many processes: docs/parallel.md. [1]",
        ),
        ("--ray", "ray", (str, "ADDRESS"), None, "Run them on this Ray cluster: HOST:PORT, auto or local."),
        ("--max-pages", "max_pages", count(1), None, "Stop after so many pages."),
        ("--max-time", "max_seconds", seconds(), None, "Stop after so long a time."),
        ("--max-bytes", "max_bytes", amount(), None, "Stop after so many bytes: 20MB, 1GB."),
        ("--seed", "seed", count(0), 0, "For strategies that draw lots."),
    ),
)
SCOPE = Section(
    "Scope",
    (
        ("--scope", "scope", (click.Choice(("host", "domain", "any")), "NAME"), "host", "host or domain of a seed, or any site."),
        ("--include", "include", Many("REGEX"), (), "Only URLs in which it is found; may be given again."),
        ("--exclude", "exclude", Many("REGEX"), (), "No URLs in which it is found; may be given again."),
    ),
)  # fmt: skip
REFRESH = Section(
    "Refresh: pages that were fetched are fetched again",
    (
        ("--refresh", "refresh", None, False, "Fetch pages again, beside new ones."),
        ("--continuous", "continuous", None, False, "Do not end when nothing new is left; implies --refresh."),
        (
            "--refresh-policy",
            "refresh_policy",
            (str, "NAME"),
            "residual-life",
            "Which pages first: cgm, ncis, ...: docs/refresh.md.",
        ),
        (
            "--refresh-option",
            "refresh_settings",
            Many("NAME=X"),
            (),
            "An option of the policy: docs/refresh.md. May be given again.",
        ),
        ("--refresh-share", "refresh_share", share(), 0.5, "Of all pages asked for, while new ones wait."),
        ("--refresh-price", "refresh_price", real(), None, "Or those worth so much, before new ones; see explain URL."),
        (
            "--refresh-rate",
            "refresh_rate",
            real(1e6),
            None,
            "At most so many pages a second (0.1: one in 10 s). [unlimited]",
        ),
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
SHOWN = Section(
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
    SHOWN,
)
GOALS = ("max_pages", "max_seconds", "max_bytes")


@dataclass(frozen=True, slots=True)
class Requested:
    """The options as typed; `options` makes one value of them."""

    given: dict[str, Any]

    def options(self, urls: tuple[str, ...]) -> "CrawlOptions":
        from trapline.crawl.options import PAUSE_S, CrawlOptions
        from trapline.fetch.hosts import read_hosts
        from trapline.fetch.limits import Limits

        given = dict(self.given)
        for name in ("output", "resume", "processes", "ray", "plain", "quiet", "as_json"):
            del given[name]
        obeyed = {field: given.pop(field) for section in rules.SECTIONS for field in section.fields}
        limits = Limits(total_s=given.pop("total_s"), body_bytes=int(given.pop("body_bytes")))
        if given["pause_s"] is None:
            given["pause_s"] = min(PAUSE_S, obeyed["delay_s"])
        for limit in (*GOALS, "bandwidth", "site_bandwidth"):
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


def as_typed(**given: Any) -> Requested:
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
    typed = settings_of(given["refresh_policy"], given["refresh_settings"])
    policy = policy_named(given["refresh_policy"]).with_options(**typed)  # refused now, if there is no such thing
    rate = given["refresh_rate"]
    if rate == 0.0:
        raise ConfigError("--refresh-rate 0 would fetch nothing again; leave --refresh out")
    return RefreshOptions(
        policy=given["refresh_policy"],
        settings={name: policy.options[name] for name in typed},
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


def _rules(obeyed: dict[str, Any], http: str) -> "Rules":
    from trapline.frontier import Rules

    if not obeyed["batch"] and (obeyed["batch_ahead"] or obeyed["batch_least_active"]):
        raise ConfigError("--batch-ahead and --batch-least-active need --batch")
    said = {field: value for field, value in obeyed.items() if value is not None}
    if http == "1.0":
        said["per_connection"] = 1
    return Rules(**said, pipelining=http == "pipelining")
