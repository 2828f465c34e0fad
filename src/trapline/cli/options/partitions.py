"""Options that divide a crawl into partitions, and set what the partitions send each other: simulated crawls (`SECTIONS`)
and live ones (`LIVE`).

This module checks the options against each other and turns them into a `ParallelPlan`, or into the partition function and
link policy of a live crawl. It crawls nothing.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trapline.cli.options.sections import Many, Section, is_given, refuse
from trapline.cli.options.values import count, seconds
from trapline.errors import ConfigError
from trapline.parallel import CROSS_OVER, FIREWALL, MOST_PROCESSES
from trapline.parallel import EXCHANGE as EXCHANGE_MODE
from trapline.units import bytes_shown, counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trapline.crawler.engine.options import CrawlOptions
    from trapline.parallel.folder.link_policy import LinkPolicy
    from trapline.parallel.partition import Partitioning
    from trapline.parallel.simulated.crawl import ParallelPlan

DYNAMIC, INDEPENDENT = "dynamic", "independent"
_SENDING = (EXCHANGE_MODE, DYNAMIC)
MOST_REPLICATED = 100_000  # as in the paper; all of them are in the memory of every process
# Options that have an effect only in these modes. `ParallelPlan`, which takes time to import, decides whether a mode exists.
_ONLY_IN = {
    "grain": (DYNAMIC,),
    "partition": (EXCHANGE_MODE, FIREWALL, CROSS_OVER, INDEPENDENT),
    "exchange_every": _SENDING,
    "filter_size": _SENDING,
}
PARTITIONS = Section(
    "Partitions",
    (
        (
            "--processes",
            "processes",
            count(1, MOST_PROCESSES),
            4,
            "Number of partitions, each with --connections connections (n in the papers).",
        ),
        (
            "--mode",
            "mode",
            (str, "NAME"),
            "exchange",
            "How to treat URLs of other partitions: firewall, cross-over, exchange, independent or dynamic. [exchange]",
        ),
        (
            "--partition",
            "partition",
            (str, "NAME"),
            "site-hash",
            "How to choose the process of a page: site-hash, url-hash, rendezvous, address or suffix. [site-hash]",
        ),
        (
            "--suffixes",
            "suffixes",
            (str, "END=P,..."),
            "",
            "Process number per host name suffix, such as edu=0,org=1 (--partition suffix).",
        ),
        (
            "--random-seeds",
            "random_seeds",
            count(1),
            None,
            "Number of random seed pages per partition. [all home pages]",
        ),
        ("--grain", "grain", (str, "site|page"), "site", "Unit that the coordinator assigns in mode dynamic."),
        ("--step", "step_s", seconds(1e-6), 1.0, "Interval at which exchanged URLs arrive."),
    ),
)
EXCHANGE = Section(
    "URL exchange",
    (
        ("--exchange-every", "exchange_every", count(1), 1, "Pages that a partition fetches between two exchanges."),
        (
            "--filter",
            "filter_size",
            count(0),
            0,
            "Number of sent URLs that a partition remembers. It does not send these again.",
        ),
        (
            "--filter-policy",
            "filter_policy",
            (str, "lru|popular"),
            "lru",
            "Which remembered URLs to drop first: those found least recently (lru) or least often (popular).",
        ),
        (
            "--replicate",
            "replicate",
            count(0),
            0,
            "Number of most-linked URLs that every partition knows from the start (m in the papers).",
        ),
    ),
)
MEASURE = Section(
    "Measure",
    (
        (
            "--top",
            "top",
            (str, "backlinks|pagerank"),
            "backlinks",
            "How to choose the best pages; the result shows the share of them that was fetched.",
        ),
    ),
)
SECTIONS = (PARTITIONS, EXCHANGE, MEASURE)
LIVE = Section(
    "Several processes",
    (
        (
            "--mode", "mode", (str, "NAME"), EXCHANGE_MODE,
            "What a process does with links to pages of other processes: exchange, firewall or cross-over. [exchange]",
        ),
        (
            "--partition", "partition", (str, "NAME"), None,
            "How to choose the process of a page: address, rendezvous, site-hash, url-hash or suffix. "
            "[address; rendezvous with --ip-delay 0 or with a --mode other than exchange]",
        ),
        *(row for row in PARTITIONS.rows if row[1] == "suffixes"),
        (
            "--exchange-every", "exchange_every", count(1), None,
            "Pages per process between two exchanges. [exchange after 48 to 384 pages, or 0.5 s]",
        ),
        (
            "--replicate", "replicate", count(1, MOST_REPLICATED), None,
            "Number of most-linked URLs of --in-links that all processes know and never send.",
        ),
        (
            "--in-links", "in_links", (click.Path(path_type=Path, exists=True), "DIR"), None,
            "Folder of an older crawl, or a graph with URLs; --replicate counts the links in it.",
        ),
        (
            "--own-hosts", "own_hosts", Many("HOST"), (),
            "Your own HOST with its subdomains: crawl only these (docs/parallel.md). Repeatable.",
        ),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PartitionOptions:
    processes: int
    mode: str
    partition: str
    suffixes: str
    random_seeds: int | None
    grain: str
    step_s: float
    exchange_every: int
    filter_size: int
    filter_policy: str
    replicate: int
    top: str

    def __post_init__(self) -> None:
        if self.top not in ("backlinks", "pagerank"):
            raise ConfigError(f"--top {self.top}: not a known quality; give backlinks or pagerank")
        _check_suffixes(self.partition, self.suffixes)
        if not self.filter_size and self.filter_policy in ("lru", "popular"):
            refuse(("filter_policy",), "has no effect without a filter; omit it, or also give --filter")
        self._check_mode()

    def _check_mode(self) -> None:
        """Refuse options that have no effect in the mode: a user who gave one expects an effect."""
        every = {mode for modes in _ONLY_IN.values() for mode in modes}
        for flag, field, *_ in (*PARTITIONS.rows, *EXCHANGE.rows):
            modes = _ONLY_IN.get(field, every)
            if is_given(field) and self.mode in every and self.mode not in modes:
                value, only = getattr(self, field), " or ".join(modes)
                raise ConfigError(f"{flag} {value} has no effect in mode {self.mode}; omit it, or give --mode {only}")

    def plan(self, replicated: "NDArray[np.int32] | None" = None) -> "ParallelPlan":
        from trapline.parallel.partition import Partitioning
        from trapline.parallel.simulated.crawl import ExchangeRules, ParallelPlan

        exchange = ExchangeRules(self.exchange_every, self.filter_size, self.filter_policy, replicated)
        partitioning = Partitioning(self.partition, self.processes, _table(self.suffixes))
        self._check_filters()
        return ParallelPlan(self.mode, partitioning, exchange, self.grain, self.step_s)

    def _check_filters(self) -> None:
        from trapline.parallel.simulated.url_exchange import filter_bytes

        needed, has = self.processes * filter_bytes(self.filter_size), _memory_bytes()
        if needed > has:
            needs = f"the filters of {counted(self.processes, 'partition')} need {bytes_shown(needed)}"
            raise ConfigError(
                f"--filter {self.filter_size}: {needs}, but this machine has {bytes_shown(has)}; give a smaller number"
            )


def _check_suffixes(partition: str, suffixes: str) -> None:
    if partition == "suffix" and not suffixes:
        raise ConfigError(
            "--partition suffix needs the number of the process for each suffix; give --suffixes, such as edu=0,org=1"
        )
    if suffixes and partition != "suffix":
        raise ConfigError(
            "--suffixes has an effect only with --partition suffix; also give --partition suffix, or omit --suffixes"
        )


@dataclass(frozen=True, slots=True)
class LivePartitionOptions:
    """The options of `LIVE`, as typed, without --own-hosts, which belongs to the scope of the crawl."""

    mode: str
    partition: str | None
    suffixes: str
    exchange_every: int | None
    replicate: int | None
    in_links: Path | None

    def __post_init__(self) -> None:
        _check_suffixes(self.partition or "", self.suffixes)
        if self.mode in (FIREWALL, CROSS_OVER) and self.exchange_every is not None:
            raise ConfigError(
                f"--exchange-every has no effect in mode {self.mode}, which sends no links; omit it, or use --mode exchange"
            )
        if self.replicate is not None and self.in_links is None:
            raise ConfigError("--replicate needs the in-links of an older crawl; also give --in-links DIR")
        if self.in_links is not None and self.replicate is None:
            raise ConfigError("--in-links has an effect only with --replicate; omit it, or also give --replicate N")

    def partitioning(self, options: "CrawlOptions", processes: int) -> "Partitioning":
        from trapline.parallel.folder.manifest import partitioning_for
        from trapline.parallel.partition import Partitioning

        if self.partition is not None:
            return Partitioning(self.partition, processes, _table(self.suffixes))
        # Only mode exchange can look up the addresses of hosts in one process for all.
        by_default = partitioning_for(options.rules, processes)
        return by_default if self.mode == EXCHANGE_MODE else Partitioning("rendezvous", processes)

    def policy(self, options: "CrawlOptions", partitioning: "Partitioning") -> "LinkPolicy":
        """Return what the partitions do with links to each other's pages. Raises `ConfigError` if the crawl cannot work
        in this way."""
        from trapline.parallel.folder.link_policy import LinkPolicy, check, replicated_urls
        from trapline.parallel.folder.merged import brought_up

        policy = LinkPolicy(self.mode, self.exchange_every or 0)
        check(policy, partitioning, options)
        if self.replicate is None or self.in_links is None:
            return policy
        older = brought_up(self.in_links)
        urls = replicated_urls(older, self.replicate, options.scope_of_crawl(), options.seeds)
        return replace(policy, replicated=urls)


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _table(text: str) -> dict[str, int]:
    """
    >>> _table("edu=0,ac.uk=1")
    {'edu': 0, 'ac.uk': 1}
    """
    table = {}
    for part in filter(None, text.split(",")):
        suffix, _, partition = part.partition("=")
        if not suffix or not partition.isdecimal():
            raise ConfigError(f"--suffixes {text}: {part!r} is not END=PROCESS; give a list such as edu=0,org=1")
        table[suffix.strip(".").lower()] = int(partition)
    return table
