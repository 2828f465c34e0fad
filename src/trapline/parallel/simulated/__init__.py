"""Parallel crawls in simulated time: the modes firewall, cross-over and exchange, with their measures and costs."""
