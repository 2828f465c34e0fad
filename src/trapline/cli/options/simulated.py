"""Options for the conditions of simulated crawls: connections, seeds, scheduling rules, servers and network.

The conditions are everything that two strategies must share to be comparable, and nothing about the strategies themselves. All checks
that do not need the graph are made here, before anything that takes long.
"""

import math
import re
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.options import scheduling
from trapline.cli.options.sections import Decorator, Section, bundled, refuse
from trapline.cli.options.values import Number, count, rate, seconds, share
from trapline.errors import ConfigError
from trapline.servers.model import model_named
from trapline.units import byte_rate

if TYPE_CHECKING:
    from trapline.frontier import Rules
    from trapline.graph import Graph
    from trapline.servers.sampled import Servers
    from trapline.simulator.network import Network

# ---- Options that describe the simulated web: its servers, and the network between servers and crawler.
#
# This part turns the options into `Servers` and `Network`, and knows no strategy. docs/simulator.md explains the values.

PROTOCOLS = ("keep-alive", "http/1.0", "pipelining")
"""The protocols of simulate.network, repeated because importing it would load numpy for --help. A test compares the two."""
UNLIMITED = float("inf")
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
            0.0,
            "Pause between two pages of a visit; w: same as --delay.",
        ),
        ("--failed", "failed", _SHARE, 0.0, "Share of fetches that fail and may be retried."),
        ("--refused", "refused", _SHARE, 0.0, "Share of fetches that fail and are never retried."),
        ("--timeout", "timeout_s", seconds(), 30.0, "Time that a failed fetch takes (with --failed)."),
        ("--robots", "robots", None, False, "Fetch robots.txt in the first visit to a site, as a live crawl does."),
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
        ("--page-seconds", "page_seconds", seconds(1e-6), None, "Time per page of constant servers. [1 s]"),
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


@dataclass(frozen=True, slots=True)
class WebOptions:
    """The values of the options; `None` means that the option was not given."""

    bandwidth: float | None = None
    bandwidth_per: str = "link"
    protocol: str = "keep-alive"
    pause: float | str = 0.0
    failed: float | str = 0.0
    refused: float | str = 0.0
    timeout_s: float = 30.0
    robots: bool = False
    servers: str | None = None
    page_seconds: float | None = None
    requests: int | None = None
    keep_alive_s: float | None = None

    def __post_init__(self) -> None:
        model_named(self.model)
        if self.page_seconds is not None and self.model != "constant":
            raise ConfigError(
                f"--page-seconds has no effect with --servers {self.servers}; omit it, or give --servers constant"
            )
        # Defaults may be typed: the settings that a report prints contain them.
        if self.bandwidth in (None, UNLIMITED) and self.bandwidth_per != "link":
            refuse(("bandwidth_per",), "has no effect without a limit; also give --bandwidth")
        if not (self.failed or self.refused) and self.timeout_s != 30.0:
            refuse(("timeout_s",), "has no effect if no fetch fails; also give --failed")

    @property
    def model(self) -> str:
        """Name of the server model: the given one, else constant if --page-seconds was given, else measured.

        Measured servers are the default because strategies differ in time as much as in order, and a web whose servers are all
        equally fast shows no difference in time.
        """
        return self.servers or ("measured" if self.page_seconds is None else "constant")

    @property
    def constant_s(self) -> float | None:
        """Seconds that every page takes with constant servers, where only the order counts; None with other models."""
        return None if self.model != "constant" else self.page_seconds or 1.0

    def summary(self) -> str:
        """Return bandwidth, server times and protocol in a few words.

        >>> WebOptions(bandwidth=20e3).summary(), WebOptions(page_seconds=2.0).summary()
        ('B = 20 kB/s, measured servers, keep-alive', 'B unlimited, 2 s a page, keep-alive')
        """
        per = " a connection" if self.bandwidth_per == "connection" else ""
        limit = "unlimited" if self.bandwidth in (None, UNLIMITED) else f"= {byte_rate(self.bandwidth or 0)}{per}"
        times = f"{Path(self.model).stem} servers" if self.constant_s is None else f"{self.constant_s:g} s a page"
        return f"B {limit}, {times}, {self.protocol}"

    def network(self, delay_s: float) -> "Network":
        from trapline.simulator.network import Network

        return Network(
            bandwidth=UNLIMITED if self.bandwidth is None else self.bandwidth,
            per_connection=self.bandwidth_per == "connection",
            protocol=self.protocol,
            pause_s=delay_s if self.pause == W else float(self.pause),
            failed=self._share("failed"),
            refused=self._share("refused"),
            timeout_s=self.timeout_s,
            robots=self.robots,
        )

    def servers_of(self, graph: "Graph", seed: int) -> "Servers":
        import numpy as np

        from trapline.servers.sampled import constant_servers, modelled_servers

        drawn = modelled_servers(graph, model_named(self.model), seed)
        # Constant servers have random sizes too: the log has a size column, and a link can be saturated.
        if self.constant_s is not None:
            drawn = replace(constant_servers(self.constant_s), size=drawn.size)
        overrides: dict[str, Any] = {}
        if self.requests is not None:
            overrides["requests"] = np.full(1, self.requests, np.int32)
        if self.keep_alive_s is not None:
            overrides["keep_alive_s"] = np.full(1, self.keep_alive_s)
        return replace(drawn, **overrides)

    def _share(self, name: str) -> float:
        value = getattr(self, name)
        return getattr(model_named(self.model), name) if value == MODEL else value


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
            "pagerank",
            "Source of page quality: pagerank, zipf, opic, FILE or MODULE:FUNCTION. [pagerank]",
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
        ("--connections", "connections", count(1), 1, "Connections open at once (r in the papers)."),
        ("--max-pages", "max_pages", count(1), None, "Stop after this many pages. [unlimited]"),
        ("--seeds", "seeds", (_FILE, "FILE"), None, "File with one seed URL or page number per line. [all home pages]"),
        ("--seed", "seed", count(0), 0, "Random seed of strategies, servers and failures."),
        (
            "--speed-up",
            "speed_up",
            None,
            False,
            "Also crawl with one connection and unlimited bandwidth, and show the speed-up.",
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class CrawlConditions:
    rules: "Rules"
    world: WebOptions = field(default_factory=WebOptions)
    connections: int = 1
    max_pages: int | None = None
    seeds: Path | None = None
    seed: int = 0
    speed_up: bool = False
    quality: str = "pagerank"
    history: Path | None = None

    def parameters(self, rules: "Rules | None" = None) -> dict[str, Any]:
        """Return all conditions by name, for JSON. `rules`: the rules of one strategy, if it changed some.

        Infinity, which means no limit and which JSON does not have, becomes None.
        """
        own = {"connections", "max_pages", "seeds", "seed", "speed_up", "quality", "history"}
        every = {name: value for name, value in asdict(self).items() if name in own}
        every |= asdict(rules or self.rules) | asdict(self.world) | {"servers": self.world.model}
        every["page_seconds"] = self.world.constant_s
        return {name: _plain(value) for name, value in every.items()}

    def options(self) -> dict[str, str]:
        """Return all conditions as a user could type them, value by flag, without options that are None or at an empty default.

        >>> from trapline.frontier import Rules
        >>> CrawlConditions(Rules(), connections=64).options()["--delay"]
        '15s'
        """
        values = self.parameters()
        return {flag: value for section in SECTIONS for flag, value in section.typed(values)}

    def for_reference(self) -> "CrawlConditions":
        """Return the conditions of the crawl that the speed-up is relative to: one connection with unlimited bandwidth."""
        return replace(self, connections=1, world=replace(self.world, bandwidth=None, bandwidth_per="link"))

    def summary(self) -> str:
        """Return the main conditions of a crawl in one line.

        >>> from trapline.frontier import Rules
        >>> CrawlConditions(Rules(), connections=64).summary()
        'r = 64 connections, w = 15 s, k = 1; B unlimited, measured servers, keep-alive'
        """
        return f"{self.connections_and_rules()}; {self.world.summary()}"

    def heading(self) -> str:
        """Return the summary, followed by lines with all other options that are not at their defaults.

        Two crawls under different conditions have different headings.
        """
        lines = textwrap.wrap(self.others(), _WIDTH, break_long_words=False, break_on_hyphens=False)
        return "\n".join((self.summary(), *lines))

    def others(self) -> str:
        """Return the options that are not in the summary and not at their defaults, as a user would type them.

        >>> from trapline.frontier import Rules
        >>> CrawlConditions(Rules(batch=50), WebOptions(pause=2.0), max_pages=9).others()
        '--max-pages 9 --batch 50 --pause 2s'
        """
        default_rules = scheduling.rules_of(scheduling.defaults(), self.world.protocol, self.world.constant_s)
        default = CrawlConditions(default_rules).options()
        changed = {flag: value for flag, value in self.options().items() if default.get(flag) != value}
        return " ".join(f"{flag} {value}".strip() for flag, value in changed.items() if flag not in _IN_SUMMARY)

    def connections_and_rules(self) -> str:
        plural = "" if self.connections == 1 else "s"
        k = f"= {self.rules.per_connection}" if self.rules.per_connection else "as servers allow"
        return f"r = {self.connections:,} connection{plural}, w = {self.rules.delay_s:g} s, k {k}"


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    return None if isinstance(value, float) and math.isinf(value) else value


def _conditions(**given: Any) -> CrawlConditions:
    """Check all options and return them as one value. Options that a command does not have get their defaults."""
    from trapline.strategies.base.inputs import check_quality

    world = WebOptions(**_taken(given, WEB_SECTIONS))
    rule_options = scheduling.defaults() | _taken(given, scheduling.SECTIONS)
    conditions = CrawlConditions(scheduling.rules_of(rule_options, world.protocol, world.constant_s), world, **given)
    check_quality(conditions.quality)
    world.network(conditions.rules.delay_s)  # checked now: otherwise an error would only appear after the long part
    return conditions


def _taken(given: dict[str, Any], sections: tuple[Section, ...]) -> dict[str, Any]:
    return {field: given.pop(field) for section in sections for field in section.fields if field in given}


SECTIONS = (CRAWL, QUALITY, *scheduling.SECTIONS, *WEB_SECTIONS)


# ---- Sweeps: crawls under several conditions, from lists of values.

_SYMBOLS = {"connections": "r = ", "bandwidth": "B = ", "delay_s": "w = ", "per_connection": "k = ", "protocol": ""}
SWEPT = tuple(_SYMBOLS)
"""Fields that can be lists: those that the papers vary."""
SWEEP_SECTIONS = tuple(section.listed(*SWEPT) for section in SECTIONS)
_ROWS = {field: (flags.split()[-1], kind) for section in SECTIONS for flags, field, kind, *_ in section.rows}


@dataclass(frozen=True, slots=True)
class Variant:
    """The conditions of one crawl of a sweep, and what they have different from the others."""

    conditions: CrawlConditions
    values: dict[str, str] = field(default_factory=dict)  # by option
    label: str = ""


def _variants(**given: Any) -> list[Variant]:
    """Return the conditions for each combination of the listed values; the first list varies most slowly."""
    lists = {name: given[name] or (None,) for name in SWEPT}  # None: not given, and without a default
    swept = [name for name, values in lists.items() if len(values) > 1]
    return [_variant({**given, **dict(zip(lists, values, strict=True))}, swept) for values in product(*lists.values())]


def _variant(given: dict[str, Any], swept: list[str]) -> Variant:
    texts = {name: _text(name, given[name]) for name in swept}
    values = {_ROWS[name][0].removeprefix("--"): text for name, text in texts.items()}
    return Variant(_conditions(**given), values, ", ".join(_SYMBOLS[name] + text for name, text in texts.items()))


def _text(name: str, value: Any) -> str:
    kind = _ROWS[name][1]
    return kind.typed(value) if isinstance(kind, Number) else str(value)


def common_summary(variants: Sequence[Variant]) -> str:
    """Return the summary of the conditions, with all values of those that differ.

    >>> from trapline.frontier import Rules
    >>> common_summary([Variant(CrawlConditions(Rules(), connections=n)) for n in (1, 64)])
    'r = 1 connection | 64 connections, w = 15 s, k = 1; B unlimited, measured servers, keep-alive'
    """
    parts = [re.split("([,;] )", variant.conditions.summary()) for variant in variants]
    return "".join(_either(list(dict.fromkeys(texts))) for texts in zip(*parts, strict=True))


def _either(texts: list[str]) -> str:
    """
    >>> _either(["B = 2 kB/s", "B = 20 kB/s"])
    'B = 2 kB/s | 20 kB/s'
    """
    symbol, equals, _ = texts[0].partition(" = ")
    same = equals and all(text.startswith(symbol + equals) for text in texts)
    return " | ".join([texts[0], *(text.removeprefix(symbol + equals) if same else text for text in texts[1:])])


def common_options(variants: Sequence[Variant]) -> dict[str, str]:
    """Return all conditions as a user could type them, with lists of those that differ."""
    every = [variant.conditions.options() for variant in variants]
    flags = dict.fromkeys(flag for options in every for flag in options)
    return {flag: ",".join(dict.fromkeys(options.get(flag, "") for options in every)) for flag in flags}


def sweep_options() -> Decorator:
    """Return a decorator that passes the conditions of a command as its argument `variants`, from options that may be lists."""
    return bundled("variants", _variants, *SWEEP_SECTIONS)


def condition_options(*sections: Section) -> Decorator:
    """Return a decorator that passes these sections, all or some of SECTIONS, to a command as its argument `conditions`."""
    return bundled("conditions", _conditions, *sections)
