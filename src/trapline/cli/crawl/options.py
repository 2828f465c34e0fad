"""Options of `trapline crawl`, turned into one `CrawlOptions` value. This module opens no crawl and fetches nothing."""

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.options import scheduling
from trapline.cli.options.partitions import LIVE, LivePartitionOptions
from trapline.cli.options.scheduling import POLICIES, STRATEGY, STRATEGY_TEXT, settings_of
from trapline.cli.options.sections import Many, Section, refuse
from trapline.cli.options.simulated import QUALITY
from trapline.cli.options.values import amount, count, rate, real, seconds, seed_urls, share
from trapline.errors import ConfigError
from trapline.parallel import MOST_PROCESSES

if TYPE_CHECKING:
    from trapline.crawler.engine.options import CrawlOptions, RefreshOptions
    from trapline.frontier import Rules

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_FOLDER = click.Path(path_type=Path)
STRATEGY_OF_A_CRAWL = "crawl-ability"

CRAWL = Section(
    "Crawl",
    (
        (
            "-o --output",
            "output",
            (_FOLDER, "DIR"),
            None,
            "Folder to create for the crawl. [required, unless --resume is given]",
        ),
        (
            "--resume",
            "resume",
            (_FOLDER, "DIR"),
            None,
            "Continue the crawl in this folder. docs/crawl.md lists the options that may change.",
        ),
        ("--seeds", "seeds", (_FILE, "FILE"), None, "File with more seed URLs, one per line."),
        (
            "--connections",
            "connections",
            count(1, 100_000),
            100,
            "Connections open at once, per process (r in the papers).",
        ),
        (
            "--processes",
            "processes",
            count(1, MOST_PROCESSES),
            None,
            "Number of processes (see docs/parallel.md). [1]",
        ),
        ("--ray", "ray", (str, "ADDRESS"), None, "Run the processes on this Ray cluster: HOST:PORT, auto or local."),
        ("--max-pages", "max_pages", count(1), None, "Stop after this many pages. [unlimited]"),
        ("--max-time", "max_seconds", seconds(), None, "Stop after this time. [unlimited]"),
        ("--max-bytes", "max_bytes", amount(), None, "Stop after this many bytes: 20MB, 1GB. [unlimited]"),
        ("--seed", "seed", count(0), 0, "Random seed, for strategies that use random numbers."),
    ),
)
SCOPE = Section(
    "Scope",
    (
        (
            "--scope", "scope", (click.Choice(("host", "domain", "any")), "NAME"), "host",
            "Sites to crawl: host (hosts of the seeds), domain (domains of the seeds) or any.",
        ),
        ("--include", "include", Many("REGEX"), (), "Crawl only URLs that match this regular expression. Repeatable."),
        ("--exclude", "exclude", Many("REGEX"), (), "Skip URLs that match this regular expression. Repeatable."),
    ),
)  # fmt: skip
REFRESH = Section(
    "Refresh (refetching pages)",
    (
        ("--refresh", "refresh", None, False, "Also refetch pages, while new pages are still waiting."),
        ("--continuous", "continuous", None, False, "Keep refreshing when no new page is left. Implies --refresh."),
        (
            "--refresh-policy",
            "refresh_policy",
            (str, "NAME"),
            "residual-life",
            f"Policy that chooses the page to refresh: {POLICIES}; see docs/refresh.md. [residual-life]",
        ),
        (
            "--refresh-option",
            "refresh_settings",
            Many("NAME=X"),
            (),
            "Option of the refresh policy (see docs/refresh.md). Repeatable.",
        ),
        (
            "--refresh-share",
            "refresh_share",
            share(),
            0.5,
            "Share of fetches spent on refreshing while new pages are waiting.",
        ),
        (
            "--refresh-price",
            "refresh_price",
            real(),
            None,
            "Refetch only pages worth this or more, before new pages. [use --refresh-share]",
        ),
        (
            "--refresh-rate",
            "refresh_rate",
            real(1e6),
            None,
            "Maximum number of refetches per second, on average. [unlimited]",
        ),
    ),
)
NETWORK = Section(
    "Network",
    (
        ("--pause", "pause_s", seconds(), None, "Pause between two pages of a visit. [1 s, or --delay if less]"),
        (
            "--http", "http", (click.Choice(("1.0", "1.1", "pipelining")), "VERSION"), "1.1",
            "HTTP version: 1.0, 1.1, or pipelining (1.1 with several requests sent at once).",
        ),
        (
            "--bandwidth", "bandwidth", rate(), None,
            "Maximum bytes or bits per second in total: 20kB, 1Mbit (B in the papers). [unlimited]",
        ),
        ("--site-bandwidth", "site_bandwidth", rate(), None, "Maximum bytes or bits per second from one site. [unlimited]"),
        ("--timeout", "total_s", seconds(0.1), 120.0, "Time limit for one page."),
        ("--max-body", "body_bytes", amount(), 10 * 2**20, "Maximum size of a page; larger pages are cut. [10 MiB]"),
        ("--max-failed-visits", "abandon", count(1), 5, "Abandon a site after this many failed visits in a row."),
        ("--contact", "contact", (str, "URL"), "", "URL that tells site owners who you are. It is added to the user agent."),
        ("--hosts", "hosts_file", (_FILE, "FILE"), None, "File of addresses and host names, in the format of /etc/hosts."),
        (
            "--nameserver", "nameservers", Many("ADDRESS"), (),
            "IP address of a DNS server to use, such as 9.9.9.9. Repeatable. [those of the system]",
        ),
        ("--allow-private", "allow_private", None, False, "Also connect to loopback and private addresses."),
        ("--insecure", "insecure", None, False, "Accept any TLS certificate."),
    ),
)  # fmt: skip
SHOWN = Section(
    "Output",
    (
        ("--plain", "plain", None, False, "Print progress as plain lines instead of a live view."),
        ("--quiet", "quiet", None, False, "Print errors only."),
        ("--metadata", "metadata", None, False, "Store the links of each page as a WARC metadata record."),
        ("--json", "as_json", None, False, "Print the summary as JSON."),
    ),
)
_LIVE_QUALITY = QUALITY.with_defaults(quality="opic").with_texts(
    quality="Source of page quality: opic, zipf, a FILE of values, or MODULE:FUNCTION. [opic]",
    history="Old crawl for historical-* strategies: its folder, a graph, or a file of values.",
)  # fmt: skip
_LIVE_RULES = tuple(
    section.with_defaults(per_connection=10, pages_per_site=25_000).with_texts(
        pages_per_site="Maximum number of pages per site; 0: unlimited.",
        rescore="Pages to fetch between two PageRank computations; 0: 1,000 pages.",
        first_response_s="Assumed response time of a site not yet measured. [0.1 s]",
    )
    for section in scheduling.SECTIONS
)
_POLITENESS, _LIMITS, *_OTHER_RULES = _LIVE_RULES
SECTIONS = (
    CRAWL,
    LIVE,
    STRATEGY.with_defaults(strategy=STRATEGY_OF_A_CRAWL).with_texts(strategy=STRATEGY_TEXT),
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
    """The options as typed. `options` turns them into one value."""

    given: dict[str, Any]

    def options(self, urls: tuple[str, ...]) -> "CrawlOptions":
        from trapline.crawler.engine.options import PAUSE_S, CrawlOptions
        from trapline.fetch.dns import read_hosts
        from trapline.fetch.limits import Limits

        given = dict(self.given)
        for name in ("output", "resume", "processes", "ray", "plain", "quiet", "as_json", *_PARTITION_FIELDS):
            del given[name]
        given["own_hosts"] = tuple(host.strip(".").lower() for host in given["own_hosts"])
        rule_options = {field: given.pop(field) for section in scheduling.SECTIONS for field in section.fields}
        limits = Limits(total_s=given.pop("total_s"), body_bytes=int(given.pop("body_bytes")))
        if given["pause_s"] is None:
            given["pause_s"] = min(PAUSE_S, rule_options["delay_s"])
        for limit in (*GOALS, "bandwidth", "site_bandwidth"):
            given[limit] = math.inf if given[limit] is None else given[limit]
        hosts, seeds = given.pop("hosts_file"), given.pop("seeds")
        refresh = _refresh({name: given.pop(name) for name in REFRESH.fields})
        return CrawlOptions(
            **(given | _from_anywhere(given)),
            seeds=seed_urls(urls, seeds),
            rules=_rules(rule_options, given["http"]),
            limits=limits,
            refresh=refresh,
            hosts=read_hosts(hosts) if hosts else {},
        )


_PARTITION_FIELDS = tuple(field for field in LIVE.fields if field != "own_hosts")


def partition_options(given: dict[str, Any]) -> LivePartitionOptions:
    return LivePartitionOptions(**{field: given[field] for field in _PARTITION_FIELDS})


def as_typed(**given: Any) -> Requested:
    return Requested(given)


def _from_anywhere(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options that name files, as absolute paths, so that a resume from another working directory finds the files."""
    from trapline.strategies.base.choice import absolute

    quality, history = given["quality"], given["history"]
    return {
        **{name: given[name] and absolute(given[name]) for name in STRATEGY.fields},
        "quality": str(Path(quality).absolute()) if Path(quality).is_file() else quality,
        "history": str(history.absolute()) if history else None,
        "modules": os.getcwd(),
    }


def _refresh(given: dict[str, Any]) -> "RefreshOptions | None":
    from trapline.crawler.engine.options import RefreshOptions
    from trapline.refresh.policy import policy_named

    if not given["refresh"] and not given["continuous"]:
        refuse(REFRESH.fields, "has no effect without refreshing; also give --refresh or --continuous")
        return None
    if given["refresh_price"] is not None:
        refuse(("refresh_share",), "and --refresh-price exclude each other; give only one of them")
    typed = settings_of(given["refresh_policy"], given["refresh_settings"])
    policy = policy_named(given["refresh_policy"]).with_options(**typed)  # raises ConfigError for unknown names
    rate = given["refresh_rate"]
    if rate == 0.0:
        raise ConfigError("--refresh-rate 0 would refetch no page; give a rate above 0, or omit --refresh")
    return RefreshOptions(
        policy=given["refresh_policy"],
        settings={name: policy.options[name] for name in typed},
        share=given["refresh_share"],
        price=given["refresh_price"],
        rate=math.inf if rate is None else rate,
        continuous=given["continuous"],
    )


def _rules(rule_options: dict[str, Any], http: str) -> "Rules":
    from trapline.frontier import Rules

    scheduling.check_partners(rule_options)
    given = {field: value for field, value in rule_options.items() if value is not None}
    if http == "1.0":
        if given["per_connection"] != 1:
            refuse(("per_connection",), "has no effect with --http 1.0, which fetches one page per visit; omit it")
        given["per_connection"] = 1
    return Rules(**given, pipelining=http == "pipelining")
