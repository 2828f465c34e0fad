"""Crawls in virtual time over a web graph: the same frontier and strategies as live, and the metrics of the papers."""

from typing import TYPE_CHECKING, Any

from trapline.simulate.audit import politeness_violations
from trapline.simulate.log import Log
from trapline.simulate.servers import PROTOCOLS, Network, Servers, constant_servers

if TYPE_CHECKING:
    from trapline.simulate.driver import Crawl, simulate

__all__ = ["PROTOCOLS", "Crawl", "Log", "Network", "Servers", "constant_servers", "politeness_violations", "simulate"]


def __getattr__(name: str) -> Any:
    """The driver is loaded when it is first asked for: who judges a crawl need not compile what simulates one."""
    if name not in ("Crawl", "simulate"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from trapline.simulate import driver

    return getattr(driver, name)
