"""Crawls in virtual time over a web graph: the same frontier and strategies as live, and the metrics of the papers."""

from trapline.simulate.audit import politeness_violations
from trapline.simulate.driver import Crawl, simulate
from trapline.simulate.log import Log
from trapline.simulate.servers import PROTOCOLS, Network, Servers, constant_servers

__all__ = ["PROTOCOLS", "Crawl", "Log", "Network", "Servers", "constant_servers", "politeness_violations", "simulate"]
