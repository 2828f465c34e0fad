"""What the partitions of a live crawl do with links to each other's pages, as the folder keeps it; and which modes and
partition functions a crawl may have. This module sends nothing.

Several partitions may visit one host only if the user owns the host, because no delay holds between partitions:
- in mode cross-over, because a partition without own pages fetches pages of others;
- with `url-hash`, because the pages of a host have several owners;
- with all other functions except `address`, if addresses have a delay: hosts on one address may have several owners.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trapline.crawler.discovery.scope import Scope, seeds_elsewhere
from trapline.crawler.engine.options import CrawlOptions
from trapline.errors import ConfigError, nearest
from trapline.fetch.urls import canonical
from trapline.graph.strings import encoded
from trapline.parallel import CROSS_OVER, EXCHANGE, FIREWALL
from trapline.parallel.partition import BY_ADDRESS, BY_URL, Partitioning, most_linked

MODES = (EXCHANGE, FIREWALL, CROSS_OVER)
_GROWING = (BY_ADDRESS, "rendezvous", "suffix")  # functions by which sites move only to new partitions


@dataclass(frozen=True, slots=True)
class LinkPolicy:
    mode: str = EXCHANGE
    every_pages: int = 0  # fetched pages between two exchanges; 0: links are sent with every batch of the store
    replicated: tuple[str, ...] = ()  # URLs that every partition knows from the start, and that are never sent

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ConfigError(f"--mode {self.mode}: not a mode of a live crawl; {nearest(self.mode, MODES)}")

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "LinkPolicy":
        """Read a policy from JSON. Raises `KeyError`, `TypeError`, `ValueError` or `ConfigError` if it is none."""
        mode, every, urls = found["mode"], found["every_pages"], found["replicated"]
        if type(every) is not int or every < 0 or not all(isinstance(text, str) for text in (mode, *urls)):
            raise ValueError("mode must be text, every_pages a number, replicated a list of URLs")
        return cls(mode, every, tuple(urls))


def check(policy: LinkPolicy, partitioning: Partitioning, options: CrawlOptions) -> None:
    """Raise `ConfigError` if the crawl cannot work in this way, or would be impolite to hosts of others."""
    if partitioning.kind == BY_ADDRESS and policy.mode != EXCHANGE:
        raise ConfigError(
            f"--partition address works only with --mode exchange; with --mode {policy.mode}, give --partition rendezvous"
        )
    why = why_impolite(policy, partitioning, options)
    if why and not options.own_hosts:
        raise ConfigError(why)
    if options.own_hosts and not why and not options.no_robots:
        raise ConfigError(
            "--own-hosts has no effect here, because only one process visits each host and address; omit the option"
        )
    foreign = seeds_elsewhere(options.seeds, options.own_hosts)
    if options.own_hosts and foreign:
        raise ConfigError(f"seed {foreign[0]}: its host is not in --own-hosts; add the host, or omit the seed")
    if options.refresh is not None and (policy.mode == CROSS_OVER or partitioning.kind == BY_URL):
        named = "--mode cross-over" if policy.mode == CROSS_OVER else "--partition url-hash"
        raise ConfigError(
            f"--refresh does not work with {named}, because only one process may refetch the pages of a site; omit one of them"
        )


def why_impolite(policy: LinkPolicy, partitioning: Partitioning, options: CrawlOptions) -> str:
    """Return why several partitions may visit one host or address, with advice; "": they may not."""
    if partitioning.partitions == 1:
        return ""
    own = "name your hosts with --own-hosts if they are all yours"
    together = f"several processes visit the same host, but each keeps --delay only for its own visits; {own}"
    if policy.mode == CROSS_OVER:
        return f"--mode cross-over: {together}, or use --mode exchange"
    if partitioning.kind == BY_URL:
        return f"--partition url-hash: {together}, or use --partition site-hash"
    if partitioning.kind != BY_ADDRESS and options.rules.address_delay_s > 0.0:
        cause = f"--mode {policy.mode} --partition {partitioning.kind}: several processes may visit the same address"
        return f"{cause}, but each keeps --ip-delay only for its own visits; give --ip-delay 0, or {own}"
    return ""


def shares_hosts(policy: LinkPolicy, partitioning: Partitioning) -> bool:
    """Return whether several partitions may have the same sites and pages."""
    return policy.mode == CROSS_OVER or partitioning.kind == BY_URL


def why_fixed(policy: LinkPolicy, partitioning: Partitioning) -> str:
    """Return why the number of partitions cannot change; "": it can grow."""
    if policy.mode == CROSS_OVER:
        return "in mode cross-over, partitions have fetched pages of each other"
    if partitioning.kind not in _GROWING:
        return f"with --partition {partitioning.kind}, most pages would move between the old processes"
    return ""


def replicated_urls(path: Path, most: int, scope: Scope, seeds: Sequence[str]) -> tuple[str, ...]:
    """Return the `most` URLs in scope with the most in-links in an older crawl, or in a graph with URLs. A seed is left
    out, because its owner knows it anyway."""
    from trapline.graph import (
        LoadOptions,
        load_graph,
    )  # imported late: every crawl asks this package whether it has partitions

    is_crawl = path.name == "crawl.db" or (path / "crawl.db").is_file()
    graph = load_graph(path, LoadOptions(dangling=is_crawl))
    if graph.urls is None:
        raise ConfigError(f"--in-links {path}: the graph has no URLs; give the folder of a crawl, or a graph with URLs")
    names = list(encoded(graph.urls))
    urls = (canonical(names[page].decode(errors="replace")) for page in most_linked(graph, graph.pages).tolist())
    admitted = dict.fromkeys(url for url in urls if url is not None and not scope.admits(url))
    return tuple(url for url in list(admitted)[:most] if url not in seeds)
