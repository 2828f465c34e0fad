"""Options that divide a simulated crawl into partitions, and set what the partitions send each other.

This module checks the options against each other and turns them into a `ParallelPlan`. It crawls nothing.
"""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from trapline.cli.options.sections import Section, refuse
from trapline.cli.options.values import count, seconds
from trapline.errors import ConfigError
from trapline.parallel import MOST_PROCESSES
from trapline.units import bytes_shown, counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trapline.parallel.simulated.crawl import ParallelPlan

FIREWALL, DYNAMIC, INDEPENDENT = "firewall", "dynamic", "independent"
_SENDING = ("exchange", DYNAMIC)
# Options that have an effect only in these modes. `ParallelPlan`, which takes time to import, decides whether a mode exists.
_ONLY_IN = {
    "grain": (DYNAMIC,),
    "partition": ("exchange", FIREWALL, "cross-over", INDEPENDENT),
    "batch_pages": _SENDING,
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
            "How to choose the owner of a page: site-hash, url-hash, rendezvous, address or suffix. [site-hash]",
        ),
        (
            "--suffixes",
            "suffixes",
            (str, "END=P,..."),
            "",
            "Partition number of each host name suffix, for --partition suffix: edu=0,org=1.",
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
        ("--batch-pages", "batch_pages", count(1), 1, "Pages that a partition fetches between two exchanges."),
        (
            "--filter",
            "filter_size",
            count(0),
            0,
            "Number of sent URLs that a partition remembers, so as not to send them again.",
        ),
        ("--filter-policy", "filter_policy", (str, "lru|popular"), "lru", "Which remembered URLs to drop first."),
        ("--replicated", "replicated", count(0), 0, "Number of most-linked URLs that every partition knows (m)."),
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
            "Measure of the best pages; the result has the share of them that was fetched.",
        ),
    ),
)
SECTIONS = (PARTITIONS, EXCHANGE, MEASURE)


@dataclass(frozen=True, slots=True)
class PartitionOptions:
    processes: int
    mode: str
    partition: str
    suffixes: str
    random_seeds: int | None
    grain: str
    step_s: float
    batch_pages: int
    filter_size: int
    filter_policy: str
    replicated: int
    top: str

    def __post_init__(self) -> None:
        if self.top not in ("backlinks", "pagerank"):
            raise ConfigError(f"--top {self.top}: not a known quality; give backlinks or pagerank")
        if self.partition == "suffix" and not self.suffixes:
            raise ConfigError(
                "--partition suffix needs the partition of each suffix; give --suffixes, such as edu=0,org=1"
            )
        if self.suffixes and self.partition != "suffix":
            raise ConfigError(
                "--suffixes has an effect only with --partition suffix; also give that, or omit --suffixes"
            )
        if not self.filter_size and self.filter_policy in ("lru", "popular"):
            refuse(("filter_policy",), "has no effect without a filter; also give --filter, or omit it")
        self._check_mode()

    def _check_mode(self) -> None:
        """Refuse options that have no effect in the mode: a user who gave one expects an effect."""
        source = click.get_current_context().get_parameter_source
        every = {mode for modes in _ONLY_IN.values() for mode in modes}
        for flag, field, *_ in (*PARTITIONS.rows, *EXCHANGE.rows):
            modes, is_typed = _ONLY_IN.get(field, every), source(field) is ParameterSource.COMMANDLINE
            if is_typed and self.mode in every and self.mode not in modes:
                value, only = getattr(self, field), ", ".join(modes)
                raise ConfigError(
                    f"{flag} {value} has no effect in mode {self.mode}; omit it, or choose another --mode: {only}"
                )

    def plan(self, replicated: "NDArray[np.int32] | None" = None) -> "ParallelPlan":
        from trapline.parallel.partition import Partitioning
        from trapline.parallel.simulated.crawl import ExchangeRules, ParallelPlan

        exchange = ExchangeRules(self.batch_pages, self.filter_size, self.filter_policy, replicated)
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
            raise ConfigError(f"--suffixes {text}: {part!r} is not END=PARTITION; give a list such as edu=0,org=1")
        table[suffix.strip(".").lower()] = int(partition)
    return table
