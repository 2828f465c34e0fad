"""Options that say how a simulated crawl is divided into partitions, and what these tell each other.

It turns them into a `Plan` and crawls nothing. What can be wrong with them by themselves is found here.
"""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from trapline.cli.numbers import count, seconds
from trapline.cli.sections import Section
from trapline.errors import ConfigError
from trapline.parallel import MOST_PROCESSES
from trapline.units import bytes_shown, counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trapline.parallel.in_process import Plan

FIREWALL, DYNAMIC, INDEPENDENT = "firewall", "dynamic", "independent"
_SENDING = ("exchange", DYNAMIC)
# Options that do something in these modes alone. That modes exist at all is for `Plan` to say, which takes time to import.
_ONLY_IN = {
    "grain": (DYNAMIC,),
    "partition": ("exchange", FIREWALL, "cross-over", INDEPENDENT),
    "batch_pages": _SENDING,
    "filter_size": _SENDING,
}
PARTITIONS = Section(
    "Partitions",
    (
        ("--processes", "processes", count(1, MOST_PROCESSES), 4, "n: partitions, each with --connections robots."),
        (
            "--mode",
            "mode",
            (str, "NAME"),
            "exchange",
            "firewall, cross-over, exchange, independent or dynamic. [exchange]",
        ),
        (
            "--partition",
            "partition",
            (str, "NAME"),
            "site-hash",
            "site-hash, url-hash, rendezvous, address or suffix. [site-hash]",
        ),
        ("--suffixes", "suffixes", (str, "END=P,..."), "", "For suffix: edu=0,org=1; hosts that end so go there."),
        ("--random-seeds", "random_seeds", count(1), None, "So many random pages a partition. [all home pages]"),
        ("--grain", "grain", (str, "site|page"), "site", "What a coordinator gives out, in mode dynamic."),
        ("--step", "step_s", seconds(1e-6), 1.0, "URLs arrive at the end of such a step of time."),
    ),
)
EXCHANGE = Section(
    "Exchange",
    (
        ("--batch-pages", "batch_pages", count(1), 1, "A partition sends after so many pages of its own."),
        ("--filter", "filter_size", count(0), 0, "URLs sent that it remembers, and does not send again."),
        ("--filter-policy", "filter_policy", (str, "lru|popular"), "lru", "Which of them it forgets."),
        ("--replicated", "replicated", count(0), 0, "The m most linked URLs are known everywhere."),
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
            "The quality of the result: share of the best by this.",
        ),
    ),
)
SECTIONS = (PARTITIONS, EXCHANGE, MEASURE)


@dataclass(frozen=True, slots=True)
class Asked:
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
            raise ConfigError(f"--top {self.top}: it is backlinks or pagerank")
        if self.partition == "suffix" and not self.suffixes:
            raise ConfigError("--partition suffix needs a table, as in --suffixes edu=0,org=1")
        if self.suffixes and self.partition != "suffix":
            raise ConfigError("--suffixes is for --partition suffix; give that too, or leave it away")
        if self.filter_policy == "popular" and not self.filter_size:
            raise ConfigError("--filter-policy popular is of a filter; give --filter too, or leave it away")
        self._check_mode()

    def _check_mode(self) -> None:
        """What does nothing in the mode is refused: whoever gave it expects something."""
        source = click.get_current_context().get_parameter_source
        every = {mode for modes in _ONLY_IN.values() for mode in modes}
        for flag, field, *_ in (*PARTITIONS.rows, *EXCHANGE.rows):
            modes, is_typed = _ONLY_IN.get(field, every), source(field) is ParameterSource.COMMANDLINE
            if is_typed and self.mode in every and self.mode not in modes:
                value, only = getattr(self, field), ", ".join(modes)
                raise ConfigError(f"{flag} {value} does nothing in mode {self.mode}; it is for {only}")

    def plan(self, replicated: "NDArray[np.int32] | None" = None) -> "Plan":
        from trapline.parallel.in_process import Exchange, Plan
        from trapline.parallel.partition import Partitioning

        exchange = Exchange(self.batch_pages, self.filter_size, self.filter_policy, replicated)
        partitioning = Partitioning(self.partition, self.processes, _table(self.suffixes))
        self._check_filters()
        return Plan(self.mode, partitioning, exchange, self.grain, self.step_s)

    def _check_filters(self) -> None:
        from trapline.parallel.post import filter_bytes

        needed, has = self.processes * filter_bytes(self.filter_size), _memory_bytes()
        if needed > has:
            needs = f"the filters of {counted(self.processes, 'partition')} need {bytes_shown(needed)}"
            raise ConfigError(f"--filter {self.filter_size}: {needs}, and this machine has {bytes_shown(has)}")


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
            raise ConfigError(f"--suffixes {text}: write END=PARTITION,..., for example edu=0,org=1")
        table[suffix.strip(".").lower()] = int(partition)
    return table
