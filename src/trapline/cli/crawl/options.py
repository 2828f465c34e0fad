"""Options of `trapline crawl`, turned into one `CrawlOptions` value. This module opens no crawl and fetches nothing."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.options import scheduling
from trapline.cli.options.config_file import site_tables
from trapline.cli.options.partitions import LIVE, LivePartitionOptions
from trapline.cli.options.scheduling import POLICIES, STRATEGY, settings_of
from trapline.cli.options.sections import Many, OptionalValue, Section, refuse
from trapline.cli.options.simulated import QUALITY
from trapline.cli.options.values import NameOrFile, amount, count, rate, real, seconds, seed_urls, share
from trapline.crawler.files.event_log import FORMATS, LEVELS
from trapline.defaults import CONNECTIONS
from trapline.parallel import MOST_PROCESSES

if TYPE_CHECKING:
    from trapline.crawler.engine.options import CrawlOptions

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_FOLDER = click.Path(path_type=Path)

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
            "Continue the crawl in this folder. docs/crawl.md lists options that you may change.",
        ),
        ("--seeds", "seeds", (_FILE, "FILE"), None, "File with more seed URLs, one per line."),
        (
            "--connections",
            "connections",
            count(1, 100_000),
            CONNECTIONS,
            "Maximum number of connections open at once, per process (r in the papers).",
        ),
        (
            "--processes",
            "processes",
            count(1, MOST_PROCESSES),
            None,
            "Number of processes (see docs/parallel.md). [1]",
        ),
        ("--ray", "ray", (str, "ADDRESS"), None, "Run the processes on this Ray cluster: HOST:PORT, auto or local."),
        (
            "--handler",
            "handler",
            (str, "MODULE:FUNCTION"),
            None,
            "Call this function for each page. FILE.py:FUNCTION works too; see docs/crawl.md.",
        ),
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
            "Sites to crawl: host or domain (of the seeds), or any.",
        ),
        ("--include", "include", Many("REGEX"), (), "Crawl only URLs that match this regular expression. Repeatable."),
        ("--exclude", "exclude", Many("REGEX"), (), "Skip URLs that match this regular expression. Repeatable."),
        (
            "--exclude-extension", "exclude_extensions", Many("EXT"), (),
            "Skip URLs whose path ends with this extension, such as pdf. Repeatable.",
        ),
        (
            "--include-mime", "include_mimes", Many("TYPE"), (),
            "Read only bodies of this media type: text/html, image/*. Repeatable.",
        ),
        ("--exclude-mime", "exclude_mimes", Many("TYPE"), (), "Read no bodies of this media type. Repeatable."),
        (
            "--sitemaps/--no-sitemaps", "sitemaps", None, None,
            "Also find pages through sitemaps and feeds. [yes, unless --scope any]",
        ),
        (
            "--requisites/--no-requisites", "requisites", None, None,
            "Also fetch stylesheets, images, scripts, fonts and media, from any host. [no]",
        ),
        (
            "--archive", "archive", None, False,
            "Archive pages for replay: same as --requisites --sitemaps --metadata.",
        ),
    ),
)  # fmt: skip
REFRESH = Section(
    "Refresh (refetching pages)",
    (
        ("--refresh", "refresh", None, False, "Also refetch pages while new pages are waiting."),
        ("--continuous", "continuous", None, False, "Keep refreshing when no new page is left. Implies --refresh."),
        (
            "--refresh-policy",
            "refresh_policy",
            (NameOrFile(POLICIES), "NAME"),
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
            "Before new pages, refetch those that the policy values at this or more. [off]",
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
            "HTTP version: 1.0, 1.1, or pipelining (1.1, several requests at once).",
        ),
        (
            "--bandwidth", "bandwidth", rate(), None,
            "Maximum bytes or bits per second: 20kB, 1Mbit (B in the papers). [unlimited]",
        ),
        ("--site-bandwidth", "site_bandwidth", rate(), None, "Maximum bytes or bits per second from one site. [unlimited]"),
        ("--timeout", "total_s", seconds(0.1), 120.0, "Time limit for one page."),
        ("--max-body", "body_bytes", amount(), 10 * 2**20, "Maximum size of a page; larger pages are cut. [10 MiB]"),
        ("--max-failed-visits", "abandon", count(1), 5, "Abandon a site after this many failed visits in a row."),
        ("--hosts", "hosts_file", (_FILE, "FILE"), None, "File of addresses and host names, in the format of /etc/hosts."),
        (
            "--nameserver", "nameservers", Many("ADDRESS"), (),
            "IP address of a DNS server, such as 9.9.9.9. Repeatable. [those of the system]",
        ),
        ("--allow-private", "allow_private", None, False, "Also connect to loopback and private addresses."),
        ("--insecure", "insecure", None, False, "Accept any TLS certificate."),
    ),
)  # fmt: skip
REQUESTS = Section(
    "Requests",
    (
        ("--contact", "contact", (str, "URL"), "", "URL that tells site owners who you are. It is added to the user agent."),
        ("--user-agent", "user_agent", (str, "TEXT"), "", "User agent. --contact is added to it. [trapline/VERSION]"),
        ("--robots-token", "robots_token", (str, "TOKEN"), "trapline", "Product token: obey the robots.txt rules for this name."),
        ("--header", "headers", Many("NAME:VALUE"), (), "Header to send with every request. Put secrets into --credentials. Repeatable."),
        (
            "--credentials", "credentials", (_FILE, "FILE"), None,
            "TOML or netrc file with passwords, tokens or secret headers for sites and the proxy.",
        ),
        ("--cookies", "cookies", (_FILE, "FILE"), None, "File with cookies to send, in Netscape format."),
        ("--accept-cookies", "accept_cookies", None, False, "Accept cookies from servers, and send them with later requests."),
        ("--proxy", "proxy", (str, "URL"), "", "Proxy for all requests: http://HOST:PORT or socks5://HOST:PORT."),
        ("--proxy-names", "proxy_names", None, False, "Let the proxy look up the addresses of servers."),
        ("--no-robots", "no_robots", None, False, "Ignore robots.txt rules on the hosts of --own-hosts."),
    ),
)  # fmt: skip
DASHBOARD = "127.0.0.1:8649"
SHOWN = Section(
    "Output",
    (
        (
            "--dashboard",
            "dashboard",
            OptionalValue("[HOST:PORT]", DASHBOARD),
            None,
            f"Show the crawl in the browser. Without an address: {DASHBOARD}.",
        ),
        ("--metrics", "metrics", (str, "HOST:PORT"), None, "Serve metrics for Prometheus at this address."),
        ("--plain", "plain", None, False, "Print progress as plain lines instead of a live view."),
        ("--quiet", "quiet", None, False, "Print errors only."),
        (
            "--metadata/--no-metadata",
            "metadata",
            None,
            None,
            "Store the links of each page as a WARC metadata record. [no]",
        ),
        ("--warc-size", "warc_bytes", amount(), 1_000_000_000, "Begin a new WARC file at this size. [1 GB]"),
        ("--warc-prefix", "warc_prefix", (str, "NAME"), "trapline", "Beginning of the names of WARC files."),
        (
            "--log-level",
            "log_level",
            (click.Choice(LEVELS), "LEVEL"),
            "info",
            "Log events of this level and above: debug, info, warning or error.",
        ),
        (
            "--log-format",
            "log_format",
            (click.Choice(FORMATS), "NAME"),
            "json",
            "Format of crawl.log: json (one line per event), or heritrix (one per fetch).",
        ),
        (
            "--log-size",
            "log_bytes",
            amount(),
            100_000_000,
            "Begin a new crawl.log at this size; the crawl keeps 10 older ones. [100 MB]",
        ),
        ("--json", "as_json", None, False, "Print the summary as JSON."),
    ),
)
_QUALITY_TEXTS = QUALITY.with_texts(
    quality="Source of page quality. From URLs and links: opic, opic-by-directory, zipf, a FILE of values or MODULE:FUNCTION. From the "
    "text of fetched pages: content:text, content:fasttext=FILE or content:MODULE:FUNCTION. [opic-by-directory]",
    history="Old crawl for historical-* strategies: its folder, a graph, or a file of values.",
)  # fmt: skip
_SCORERS = (
    "--quality-processes",
    "quality_processes",
    count(1, 1_000),
    1,
    "Processes that score pages, with --quality content:NAME.",
)
_LIVE_QUALITY = Section(QUALITY.title, (_QUALITY_TEXTS.rows[0], _SCORERS, *_QUALITY_TEXTS.rows[1:]))
_LIVE_RULES = tuple(
    section.with_texts(
        rescore="Pages between two computations of PageRank (partial-pagerank). [1,000]",
        first_response_s="Assumed response time of a site not yet measured. [0.1 s]",
    )
    for section in scheduling.SECTIONS
)
_POLITENESS, _LIMITS, *_OTHER_RULES = _LIVE_RULES
SECTIONS = (
    CRAWL,
    LIVE,
    STRATEGY,
    _LIVE_QUALITY,
    SCOPE,
    REFRESH,
    _POLITENESS,
    _LIMITS,
    NETWORK,
    REQUESTS,
    *_OTHER_RULES,
    SHOWN,
)
GOALS = ("max_pages", "max_seconds", "max_bytes")


@dataclass(frozen=True, slots=True)
class Requested:
    """The options as typed. `options` turns them into one value."""

    given: dict[str, Any]

    def options(self, urls: tuple[str, ...]) -> "CrawlOptions":
        from trapline.crawler.engine.settings import CrawlSettings
        from trapline.crawler.handler.user_handler import handler_changes

        given = self.given
        _refuse_without_effect(given)
        settings = {setting: given[field] for setting, field in SETTINGS.items()}
        settings["refresh_option"] = settings_of(given["refresh_policy"], given["refresh_settings"])
        settings["site"] = site_tables()
        options = CrawlSettings(**settings).options(seed_urls(urls, given["seeds"]))
        return replace(options, **handler_changes(given["handler"]))


# Options of the command itself, which are no settings of the crawl.
_OF_THE_COMMAND = (
    *("output", "resume", "seeds", "processes", "ray", "handler", "plain", "quiet", "as_json", "dashboard", "metrics"),
)
_PARTITION_FIELDS = tuple(field for field in LIVE.fields if field != "own_hosts")
SETTINGS = {
    flag.removeprefix("--").replace("-", "_"): field
    for section in SECTIONS
    for flag, field in zip(section.flags, section.fields, strict=True)
    if field not in (*_OF_THE_COMMAND, *_PARTITION_FIELDS)
}
"""The settings of a crawl (`CrawlSettings`), which are named like the options, and the fields of these options."""


def partition_options(given: dict[str, Any]) -> LivePartitionOptions:
    return LivePartitionOptions(**{field: given[field] for field in _PARTITION_FIELDS})


def as_typed(**given: Any) -> Requested:
    return Requested(given)


def _refuse_without_effect(given: dict[str, Any]) -> None:
    """Refuse options that would have no effect, because they need or exclude another one."""
    if not given["refresh"] and not given["continuous"]:
        refuse(REFRESH.fields, "has no effect without refreshing; also give --refresh or --continuous")
    if not given["quality"].startswith("content:"):
        refuse(("quality_processes",), "has no effect without --quality content:NAME; omit it")
    if given["refresh_price"] is not None:
        refuse(("refresh_share",), "and --refresh-price exclude each other; give only one of them")
    if given["http"] == "1.0" and given["per_connection"] != 1:
        refuse(("per_connection",), "has no effect with --http 1.0, which fetches one page per visit; omit it")
