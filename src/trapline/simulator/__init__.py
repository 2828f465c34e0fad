"""Simulated crawls of a web graph in virtual time, with the frontier and strategies of the live crawl, and the metrics
of the papers."""

from typing import TYPE_CHECKING, Any

from trapline.servers.sampled import Servers, constant_servers
from trapline.simulator.log import FetchLog, politeness_violations
from trapline.simulator.network import PROTOCOLS, Network

if TYPE_CHECKING:
    from trapline.simulator.driver import SimulatedCrawl, simulate

__all__ = [
    "PROTOCOLS",
    "FetchLog",
    "Network",
    "Servers",
    "SimulatedCrawl",
    "constant_servers",
    "politeness_violations",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """Import the driver when it is first used: a program that only evaluates crawls need not compile the simulator."""
    if name not in ("SimulatedCrawl", "simulate"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from trapline.simulator import driver

    return getattr(driver, name)
