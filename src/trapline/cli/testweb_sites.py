"""Options of `trapline testweb` on sites and servers, as one value: who is where, and how they behave. It serves nothing."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from trapline.cli.numbers import Number, count, rate, real, seconds, share
from trapline.cli.sections import Section
from trapline.cli.shares import SHARES

MEASURED = -1
_FILE = (click.Path(path_type=Path), "FILE")
_REQUESTS = (
    Number(int, 0, 1_000_000, "n", what="a whole number or measured", words={"measured": MEASURED}),
    "N|measured",
)

GRAPH = Section(
    "Graph",
    (
        ("--dangling", "dangling", None, False, "Also the pages that a crawl saw links to and did not fetch."),
        ("--ids-per-site", "ids_per_site", count(1), None, "If pages have no URLs: so many in a row are a site."),
    ),
)
SITES = Section(
    "Sites",
    (
        ("--port", "port", count(0, 65_535), 0, "Of all sites; 0: any that is free."),
        (
            "--names",
            "names",
            (click.Choice(("host", "address")), "host|address"),
            "host",
            "By the URLs' hosts, else site-N.test; or by address: nothing to resolve. [host]",
        ),
        ("--sites-per-address", "sites_per_address", count(1), None, "[as the graph says, else one]"),
        ("--tls", "certificate", _FILE, None, "HTTPS, with this certificate (PEM)."),
        ("--tls-key", "key", _FILE, None, "Its key, if it is not in the same file."),
        ("--seed", "seed", count(0), 0, "Which sites and pages behave how."),
    ),
)
SERVERS = Section(
    "Servers",
    (
        ("--latency", "latency_s", seconds(), 0.0, "From a request to its answer; the median of all sites."),
        ("--latency-spread", "latency_spread", real(10), 0.0, "Standard deviation of its logarithm between sites."),
        ("--connection-latency", "connection_s", seconds(), 0.0, "Added to the first answer of a connection."),
        ("--bandwidth", "bandwidth", rate(), None, "Of a connection; the median of all sites. [unlimited]"),
        ("--bandwidth-spread", "bandwidth_spread", real(10), 0.0, "As that of latency."),
        ("--requests", "requests", _REQUESTS, 0, "Per connection; 0: no limit; measured: as cao fig. 3. [0]"),
        ("--unannounced", "unannounced", None, False, "Such a limit is not announced."),
        ("--http10", "http10", share(), 0.0, "Share of sites that speak HTTP/1.0."),
        ("--keep-alive", "keep_alive_s", seconds(), 15.0, "Idle time after which servers close."),
    ),
)
CONDUCT = Section(
    "Robots, redirects, faults (names: docs/testweb.md)",
    (
        ("--robots", "robots", SHARES, (), "Sites with robots.txt: rules, error, ... [none; rules, if given]"),
        ("--disallow", "disallowed", share(), 0.0, "Share of paths that rules forbid."),
        ("--crawl-delay", "crawl_delay_s", seconds(), 0.0, "In robots.txt with rules."),
        ("--redirects", "redirects", SHARES, (), "Pages linked so: plain, chain, away, loop. [none]"),
        ("--faults", "faults", SHARES, (), "Pages answered so: error, reset, silent, ... [none]"),
        ("--faulty-sites", "faulty", share(), 1.0, "Share of sites that have these faults."),
    ),
)


@dataclass(frozen=True, slots=True)
class Serving:
    """What the options say of the web."""

    dangling: bool
    ids_per_site: int | None
    port: int
    names: str
    sites_per_address: int | None
    certificate: Path | None
    key: Path | None
    seed: int
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
            faults=self.faults,
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
