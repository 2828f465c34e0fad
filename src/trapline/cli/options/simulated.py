"""Options for the conditions of simulated crawls: connections, seeds, scheduling rules, servers and network; and conditions as options
that a user could type.

The options are turned into `SimulationSettings`, which Python programs use too. docs/simulator.md explains the values.
"""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.options import scheduling
from trapline.cli.options.sections import Decorator, Section, bundled
from trapline.cli.options.values import count, rate, real, seconds, share
from trapline.defaults import CONNECTIONS
from trapline.defaults import QUALITY as QUALITY_OF_A_CRAWL

if TYPE_CHECKING:
    from trapline.simulator.conditions import CrawlConditions, Variant

# ---- Options that describe the simulated web: its servers, and the network between servers and crawler.

PROTOCOLS = ("keep-alive", "http/1.0", "pipelining")
"""The protocols of simulate.network, repeated because importing it would load numpy for --help. A test compares the two."""
W, MODEL = "w", "model"

_SHARE = (share(words={MODEL: MODEL}), "SHARE|model")

NETWORK = Section(
    "Network",
    (
        (
            "--bandwidth",
            "bandwidth",
            rate(),
            None,
            "Maximum bytes or bits per second: 20kB, 2MB, 1Mbit (B in the papers). [unlimited]",
        ),
        (
            "--bandwidth-per",
            "bandwidth_per",
            (click.Choice(("link", "connection")), "link|connection"),
            "link",
            "What --bandwidth limits: all connections together (link), or each one.",
        ),
        (
            "--protocol",
            "protocol",
            (click.Choice(PROTOCOLS), "NAME"),
            PROTOCOLS[0],
            "HTTP protocol: keep-alive, http/1.0 or pipelining. [keep-alive]",
        ),
        (
            "--pause",
            "pause",
            (seconds(words={W: W}), "TIME|w"),
            None,
            "Pause between two pages of a visit; w: same as --delay. [1 s, or --delay if less]",
        ),
        (
            "--failed",
            "failed",
            _SHARE,
            0.0,
            "Share of fetches that fail and may be retried; model: that of --servers.",
        ),
        (
            "--refused",
            "refused",
            _SHARE,
            0.0,
            "Share of fetches that fail and are never retried; model: that of --servers.",
        ),
        ("--timeout", "timeout_s", seconds(), 30.0, "Time that a failed fetch takes (with --failed)."),
        ("--robots/--no-robots", "robots", None, True, "Fetch robots.txt in the first visit to a site. [yes]"),
    ),
)
SERVERS = Section(
    "Servers",
    (
        (
            "--servers",
            "servers",
            (str, "NAME|FILE"),
            None,
            "Server model: measured, measured-tcp, thesis, constant, or a file. [measured]",
        ),
        ("--page-seconds", "page_seconds", seconds(1e-6), None, "Time per page; implies --servers constant. [1 s]"),
        (
            "--requests",
            "requests",
            count(0),
            None,
            "Maximum number of requests per connection; 0: unlimited. [set by --servers]",
        ),
        (
            "--keep-alive",
            "keep_alive_s",
            seconds(),
            None,
            "Idle time after which servers close a connection. [set by --servers]",
        ),
    ),
)
WEB_SECTIONS = (NETWORK, SERVERS)


# ---- The conditions of a crawl.

_WIDTH = 79
_IN_SUMMARY = {
    "--connections", "--delay", "--per-connection", "--bandwidth", "--bandwidth-per", "--protocol", "--servers",
    "--page-seconds",
}  # fmt: skip
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_PATH = click.Path(path_type=Path, exists=True)

QUALITY = Section(
    "Quality and history",
    (
        (
            "--quality",
            "quality",
            (str, "NAME"),
            QUALITY_OF_A_CRAWL,
            "Quality: content, opic, pagerank, zipf, FILE, MODULE:FUNCTION. [opic-by-directory]",
        ),
        (
            "--history",
            "history",
            (_PATH, "PATH"),
            None,
            "Old crawl for historical-* strategies: a graph, or a file of values.",
        ),
    ),
)
CRAWL = Section(
    "Crawl",
    (
        (
            "--connections",
            "connections",
            count(1),
            CONNECTIONS,
            "Maximum number of connections open at once (r in the papers).",
        ),
        ("--max-pages", "max_pages", count(1), None, "Stop after this many pages. [unlimited]"),
        (
            "--max-time",
            "max_seconds",
            seconds(1e-3),
            None,
            "Stop after this simulated time. [unlimited]",
        ),
        ("--seeds", "seeds", (_FILE, "FILE"), None, "File with one seed URL or page number per line. [all home pages]"),
        ("--seed", "seed", count(0), 0, "Random seed of strategies, servers and failures."),
        (
            "--harvest-quality",
            "harvest_quality",
            (real(), "Q"),
            None,
            "Count pages of at least this quality for the harvest rate. [median of all pages]",
        ),
        (
            "--speed-up",
            "speed_up",
            None,
            False,
            "Also crawl with one connection and unlimited bandwidth, and show the speed-up.",
        ),
    ),
)


SECTIONS = (CRAWL, QUALITY, *scheduling.SECTIONS, *WEB_SECTIONS)


SETTINGS = {
    field: flag.removeprefix("--").replace("-", "_")
    for section in SECTIONS
    for flag, field in zip(section.flags, section.fields, strict=True)
}
"""The settings of a simulated crawl (`SimulationSettings`), which are named like the options, by the fields of these options."""


def _conditions(**given: Any) -> "CrawlConditions":
    """Check all options and return them as one value. Options that a command does not have get their defaults."""
    from trapline.simulator.settings import SimulationSettings

    return SimulationSettings(**_settings(given)).conditions()


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    return {SETTINGS[field]: value for field, value in given.items()}


# ---- Sweeps: crawls under several conditions, from lists of values.

# The settings that `trapline.simulator.settings` lets be lists, repeated for --help. A test compares the two.
SWEPT = ("connections", "bandwidth", "delay_s", "per_connection", "protocol")
SWEEP_SECTIONS = tuple(section.listed(*SWEPT) for section in SECTIONS)


def _variants(**given: Any) -> "list[Variant]":
    from trapline.simulator.settings import variants

    return variants(_settings(given))


def sweep_options() -> Decorator:
    """Return a decorator that passes the conditions of a command as its argument `variants`, from options that may be lists."""
    return bundled("variants", _variants, *SWEEP_SECTIONS)


def condition_options(*sections: Section) -> Decorator:
    """Return a decorator that passes these sections, all or some of SECTIONS, to a command as its argument `conditions`."""
    return bundled("conditions", _conditions, *sections)


# ---- Conditions as options.


def options_of(conditions: "CrawlConditions") -> dict[str, str]:
    """Return all conditions as a user could type them, value by flag, without options that are None or at an empty default.

    >>> from trapline.simulator.settings import SimulationSettings
    >>> options_of(SimulationSettings().conditions())["--delay"]
    '15s'
    """
    values = conditions.parameters()
    return {flag: value for section in SECTIONS for flag, value in section.typed(values)}


def common_options(variants: "Sequence[Variant]") -> dict[str, str]:
    """Return all conditions as a user could type them, with lists of those that differ."""
    every = [options_of(variant.conditions) for variant in variants]
    flags = dict.fromkeys(flag for options in every for flag in options)
    return {flag: ",".join(dict.fromkeys(options.get(flag, "") for options in every)) for flag in flags}


def other_options(conditions: "CrawlConditions") -> str:
    """Return the options that are not in the summary and not at their defaults, as a user would type them.

    >>> from trapline.simulator.settings import SimulationSettings
    >>> other_options(SimulationSettings(batch=50, pause=2.0, max_pages=9).conditions())
    '--max-pages 9 --batch 50 --pause 2s'
    """
    from trapline.simulator.settings import SimulationSettings

    world, rules = conditions.world, conditions.rules
    # The defaults that depend on other options: pause, and the first estimates of constant servers.
    usual = SimulationSettings(protocol=world.protocol, delay=rules.delay_s, page_seconds=world.constant_s)
    default = options_of(usual.conditions())
    changed = {flag: value for flag, value in options_of(conditions).items() if default.get(flag) != value}
    return " ".join(f"{flag} {value}".strip() for flag, value in changed.items() if flag not in _IN_SUMMARY)


def heading(conditions: "CrawlConditions") -> str:
    """Return the summary, followed by lines with all other options that are not at their defaults.

    Two crawls under different conditions have different headings.
    """
    lines = textwrap.wrap(other_options(conditions), _WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join((conditions.summary(), *lines))
