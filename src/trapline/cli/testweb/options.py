"""Options of `trapline testweb`: sites, servers, changes and providers, turned into values. This module serves nothing."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.options.sections import Section, refuse
from trapline.cli.options.values import SHARES, Number, check_history, count, rate, real, seconds, share, trace_of
from trapline.errors import ConfigError
from trapline.servers.model import model_named

if TYPE_CHECKING:
    from trapline.graph import Graph
    from trapline.servers.sampled import Servers
    from trapline.testweb import PageChanges, Providers, SignalSettings

MEASURED = -1
# Repeated from testweb.web.behaviour, which takes long to import. A test compares the two.
FAULTS = (
    "chunked, gzip, no-length, not-found, gone, error, unavailable, unavailable-once, too-many, empty, silent, reset, short-body,"
    " long-body, dribble, bad-chunks, broken-gzip, gzip-bomb, endless-body, endless-headers, garbage"
)
FAULTS_OF_MODEL = (("model", 1.0),)
_SET_BY_MODEL = (
    "latency_s",
    "latency_spread",
    "connection_s",
    "bandwidth",
    "bandwidth_spread",
    "requests",
    "http10",
    "keep_alive_s",
)
_WITH_RULES = {"rules", "redirect", "away", "huge"}  # kinds of robots.txt that contain rules
_FILE = (click.Path(path_type=Path), "FILE")
_REQUESTS = (
    Number(int, 0, 1_000_000, "n", what="a whole number or measured", words={"measured": MEASURED}),
    "N|measured",
)

GRAPH = Section(
    "Graph",
    (
        ("--dangling", "dangling", None, False, "Include pages that a crawl did not fetch but found as link targets."),
        (
            "--ids-per-site",
            "ids_per_site",
            count(1),
            None,
            "Treat every N consecutive pages of a graph without URLs as one site. [all pages are one site]",
        ),
    ),
)
SITES = Section(
    "Sites",
    (
        ("--port", "port", count(0, 65_535), 0, "Port of all sites; 0: any free port."),
        (
            "--names",
            "names",
            (click.Choice(("host", "address")), "host|address"),
            "host",
            "Names of sites: host (as in the graph's URLs; without URLs, site-N.test) or address. [host]",
        ),
        (
            "--sites-per-address",
            "sites_per_address",
            count(1),
            None,
            "Number of sites per IP address. [as in the graph, or 1]",
        ),
        ("--tls", "certificate", _FILE, None, "Serve HTTPS with this certificate (PEM)."),
        ("--tls-key", "key", _FILE, None, "File with the key of the certificate (PEM). [same as --tls]"),
        ("--seed", "seed", count(0), 0, "Random seed of the behaviour of sites and pages."),
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
            "Server model: measured, measured-tcp, thesis, constant, or a file. [set by the options below]",
        ),
        ("--latency", "latency_s", seconds(), 0.0, "Median latency of a site."),
        (
            "--latency-spread",
            "latency_spread",
            real(10),
            0.0,
            "Spread of latency between sites: standard deviation of its logarithm.",
        ),
        ("--connection-latency", "connection_s", seconds(), 0.0, "Extra latency of the first answer on a connection."),
        (
            "--bandwidth",
            "bandwidth",
            rate(),
            None,
            "Median bandwidth of a connection, in bytes or bits per second: 20kB, 1Mbit. [unlimited]",
        ),
        (
            "--bandwidth-spread",
            "bandwidth_spread",
            real(10),
            0.0,
            "Spread of bandwidth between sites: standard deviation of its logarithm.",
        ),
        (
            "--requests",
            "requests",
            _REQUESTS,
            0,
            "Maximum requests per connection; 0: unlimited; measured: as on real servers. [0]",
        ),
        ("--unannounced", "unannounced", None, False, "Do not announce the limit of requests per connection."),
        ("--http10", "http10", share(), 0.0, "Share of sites that speak HTTP/1.0."),
        ("--keep-alive", "keep_alive_s", seconds(), 15.0, "Idle time after which servers close a connection."),
    ),
)
CONDUCT = Section(
    "robots.txt, redirects, faults (docs/testweb.md explains the names)",
    (
        (
            "--robots",
            "robots",
            SHARES,
            (),
            "Shares of sites by kind of robots.txt: none, rules, redirect, away, loop, huge, error, reset."
            " [none; with --disallow or --crawl-delay: rules]",
        ),
        ("--disallow", "disallowed", share(), 0.0, "Share of paths that robots.txt rules forbid."),
        ("--crawl-delay", "crawl_delay_s", seconds(), 0.0, "Crawl-delay in robots.txt files with rules."),
        ("--redirects", "redirects", SHARES, (), "Shares of pages behind redirects: plain, chain, away, loop. [none]"),
        (
            "--faults",
            "faults",
            SHARES,
            (),
            f"Shares of pages with faults: {FAULTS}. Or `model`: the shares of the --servers model. [none]",
        ),
        ("--faulty-sites", "faulty", share(), 1.0, "Share of sites whose pages have the faults of --faults."),
    ),
)


@dataclass(frozen=True, slots=True)
class SiteOptions:
    """Values of the options on sites and servers."""

    dangling: bool
    ids_per_site: int | None
    port: int
    names: str
    sites_per_address: int | None
    certificate: Path | None
    key: Path | None
    seed: int
    servers: str | None
    latency_s: float
    latency_spread: float
    connection_s: float
    bandwidth: float | None
    bandwidth_spread: float
    requests: int
    unannounced: bool
    http10: float
    keep_alive_s: float
    robots: tuple[tuple[str, float], ...]
    disallowed: float
    crawl_delay_s: float
    redirects: tuple[tuple[str, float], ...]
    faults: tuple[tuple[str, float], ...]
    faulty: float

    def __post_init__(self) -> None:
        if self.servers is not None:
            model_named(self.servers)
            refuse(
                _SET_BY_MODEL,
                "has no effect with --servers: the server model sets this value; omit one of the two options",
            )
        elif self.faults == FAULTS_OF_MODEL:
            raise ConfigError("--faults model: there is no server model; also give --servers, such as measured")
        if not self.latency_s:
            refuse(("latency_spread",), "has no effect if the latency is 0; also give --latency")
        if self.bandwidth in (None, float("inf")):
            refuse(("bandwidth_spread",), "has no effect without a limit; also give --bandwidth")
        if not self.requests:
            refuse(("unannounced",), "has no effect without a limit of requests; also give --requests")
        if not self.faults:
            refuse(("faulty",), "has no effect without faults; also give --faults, such as reset=1%")
        if self.robots and not {name for name, _ in self.robots} & _WITH_RULES:
            refuse(
                ("disallowed", "crawl_delay_s"), "has no effect without rules; add rules to --robots, such as rules=50%"
            )

    def sampled(self, graph: "Graph") -> "Servers | None":
        """Return the servers of the model for the sites and pages of a graph; None without --servers."""
        from trapline.servers.sampled import modelled_servers

        return None if self.servers is None else modelled_servers(graph, model_named(self.servers), self.seed)

    def served_faults(self) -> tuple[tuple[str, float], ...]:
        """Return the faults, or those of the model: a failed fetch gets no answer, a refused one 404."""
        if self.servers is None or self.faults != FAULTS_OF_MODEL:
            return self.faults
        model = model_named(self.servers)
        return (("silent", model.failed), ("not-found", model.refused))

    def mix(self, validators: tuple[tuple[str, float], ...]) -> Any:
        from trapline.testweb import Behaviour, Mix

        base = Behaviour(
            latency_s=self.latency_s,
            connection_s=self.connection_s,
            bandwidth=self.bandwidth or float("inf"),
            requests_per_connection=max(self.requests, 0),
            announced=not self.unannounced,
            keep_alive_s=self.keep_alive_s,
            disallowed=self.disallowed,
            crawl_delay_s=self.crawl_delay_s,
            redirects=self.redirects,
            faults=self.served_faults(),
        )
        return Mix(
            base,
            latency_spread=self.latency_spread,
            bandwidth_spread=self.bandwidth_spread,
            measured_requests=self.requests == MEASURED,
            http10=self.http10,
            robots=self.robots or ((("rules", 1.0),) if self.disallowed or self.crawl_delay_s else ()),
            validators=validators,
            faulty=self.faulty,
        )


# ---- Options of `trapline testweb` for pages that change and for sites that announce changes.

CHANGES = Section(
    "Pages that change",
    (
        (
            "--changes",
            "changes",
            (str, "HISTORY"),
            None,
            "Change history: poisson:GAP[:LENGTH], bursty:GAP[:LENGTH] or a trace file.",
        ),
        ("--changes-speed", "speed", real(), 1.0, "Seconds of the history per second of serving."),
        ("--grows", "grows", share(), 0.0, "Share of pages that do not exist at the start and appear later."),
        ("--noise", "noise", None, False, "Change a few bytes in every answer, in a place that browsers do not show."),
        (
            "--validators",
            "validators",
            SHARES,
            (),
            "Shares of sites by validators (ETag, Last-Modified): honest, weak, date, fickle, none. [none; with --changes: honest]",
        ),
    ),
)
PROVIDERS = Section(
    "Providers: sites that announce their changes (docs/testweb.md explains the levels)",
    (
        (
            "--providers",
            "providers",
            SHARES,
            (),
            "Shares of sites by level: normal, polled, smart, super, liar. [normal]",
        ),
        ("--ping", "ping", (str, "URL"), None, "IndexNow endpoint to ping. [no pings]"),
        ("--ping-recall", "recall", share(), 1.0, "Share of updates that sites announce with a ping."),
        ("--ping-precision", "precision", share(), 1.0, "Share of pings that announce a real update."),
        ("--schedule-precision", "schedule_precision", share(), 1.0, "Share of published update times that are true."),
        (
            "--schedule-ahead",
            "ahead_s",
            seconds(),
            600.0,
            "How far ahead a schedule lists updates.",
        ),
        ("--lie-every", "lie_every_s", seconds(), 1.0, "Mean time between two pings of a liar."),
    ),
)


@dataclass(frozen=True, slots=True)
class Changing:
    """Values of the options on changes and providers."""

    changes: str | None
    speed: float
    grows: float
    noise: bool
    validators: tuple[tuple[str, float], ...]
    providers: tuple[tuple[str, float], ...]
    ping: str | None
    recall: float
    precision: float
    schedule_precision: float
    ahead_s: float
    lie_every_s: float

    def __post_init__(self) -> None:
        if self.changes is None and (self.grows or self.noise or self.speed != 1.0):
            raise ConfigError(
                "--changes-speed, --grows and --noise have no effect on pages that never change; also give --changes"
            )
        if self.providers and self.changes is None:
            raise ConfigError("--providers has no effect on pages that never change; also give --changes")
        if self.ping and not self.providers:
            raise ConfigError(f"--ping {self.ping}: no site sends pings; also give --providers, such as smart=50%")
        levels = {name for name, _ in self.providers}
        if self.ping is None or not levels & {"smart", "super"}:
            refuse(
                ("recall", "precision"),
                "has no effect without pings; also give --ping, and --providers with smart or super",
            )
        if not levels & {"super", "liar"}:
            refuse(("schedule_precision", "ahead_s"), "has no effect without schedules; also give --providers super")
        if "liar" not in levels or self.ping is None:
            refuse(("lie_every_s",), "has no effect without pings of liars; also give --ping and --providers liar")
        if self.changes is not None:
            check_history(self.changes)

    def validator_shares(self) -> tuple[tuple[str, float], ...]:
        return self.validators or ((("honest", 1.0),) if self.changes else ())

    def of(self, graph: "Graph", seed: int) -> "tuple[PageChanges | None, Providers | None]":
        from trapline.testweb import changes_of, providers_of

        if self.changes is None:
            return None, None
        trace = trace_of(self.changes, graph.pages, seed)
        changes = changes_of(graph, trace, speed=self.speed, noise=self.noise, grows=self.grows, seed=seed)
        return changes, providers_of(graph, changes, self.signal_settings(), seed) if self.providers else None

    def signal_settings(self) -> "SignalSettings":
        from trapline.testweb import SignalSettings

        names = ("recall", "precision", "schedule_precision", "ahead_s", "lie_every_s")
        return SignalSettings(levels=self.providers, **{name: getattr(self, name) for name in names})
