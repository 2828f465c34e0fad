"""Partition functions: which of n partitions owns a page. They work on names and numbers, and know nothing about crawls.

    url-hash      hash of the URL mod n           spreads the pages of a site over all partitions: no partition can be polite by itself
    site-hash     hash of the site mod n          (Cho and Garcia-Molina 2002)
    rendezvous    the partition with the largest hash of (site, partition)      a new partition takes its share, and no other site moves
    address       rendezvous by the address of the site                         keeps sites on one address together
    suffix        by a table of host name suffixes, other hosts by rendezvous   a partition is near its pages: "hierarchical" in the paper

A site is `scheme://host:port`. All hashes are XXH3 of the text, so that every machine computes the same owner.
Rendezvous hashing: Thaler and Ravishankar 1998.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import xxhash
from numpy.typing import NDArray

from trapline.errors import ConfigError, nearest
from trapline.graph import Graph
from trapline.graph.strings import encoded
from trapline.parallel import MOST_PARTITIONS

Owners = NDArray[np.int32]
BY_ADDRESS, BY_URL = "address", "url-hash"
KINDS = ("site-hash", BY_URL, "rendezvous", BY_ADDRESS, "suffix")


@dataclass(frozen=True, slots=True)
class Partitioning:
    kind: str = "site-hash"
    partitions: int = 1
    suffixes: Mapping[str, int] = field(default_factory=dict)  # host name suffix -> partition

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(f"unknown partition function {self.kind!r}; {nearest(self.kind, KINDS)}")
        if not 1 <= self.partitions <= MOST_PARTITIONS:
            raise ConfigError(f"{self.partitions} partitions: the number must be from 1 to {MOST_PARTITIONS}")
        if (self.kind == "suffix") != bool(self.suffixes):
            cure = "omit the table of suffixes; only 'suffix' uses one" if self.suffixes else "give a table of suffixes"
            raise ConfigError(f"partition function {self.kind!r}: {cure}")
        for suffix, partition in self.suffixes.items():
            if not 0 <= partition < self.partitions:
                raise ConfigError(
                    f"suffix {suffix!r}: there is no process {partition}; give a number from 0 to {self.partitions - 1}"
                )

    def owner_of(self, url: bytes, site: bytes, address: bytes) -> int:
        """Return the owner of one page. Arguments that this kind of function does not use may have any value."""
        if self.kind == BY_URL:
            return _hash(url) % self.partitions
        if self.kind == "site-hash":
            return _hash(site) % self.partitions
        if self.kind == "suffix":
            near = self._near(site)
            return _rendezvous(site, self.partitions) if near is None else near
        return _rendezvous(address if self.kind == BY_ADDRESS else site, self.partitions)

    def _near(self, site: bytes) -> int | None:
        """Return the partition of the longest suffix that the host ends in; None if no suffix matches."""
        host = site.decode(errors="replace").split("://")[-1].split("/")[0].rsplit(":", 1)[0]
        labels = host.split(".")
        for first in range(len(labels)):
            if (found := self.suffixes.get(".".join(labels[first:]))) is not None:
                return found
        return None

    def owners(self, graph: Graph) -> Owners:
        """Return the owner of every page of a graph: [pages]. For a graph without names, the numbers as text take their
        place."""
        if self.partitions == 1:
            return np.zeros(graph.pages, np.int32)
        if self.kind == "url-hash":
            return _owners(self.owner_of(url, b"", b"") for url in _texts(graph.urls, graph.pages))
        addresses = (b"%d" % number for number in graph.ips.tolist())
        sites = zip(_texts(graph.site_names, graph.sites), addresses, strict=True)
        return _owners(self.owner_of(b"", site, address) for site, address in sites)[graph.site]


def most_linked(graph: Graph, most: int) -> Owners:
    """Return the `most` pages with the most links to them, the most linked first; of equally linked pages, those with
    the smallest numbers. Partitions that replicate pages know these from the start."""
    links = np.bincount(graph.targets, minlength=graph.pages)
    return np.argsort(-links, kind="stable")[:most].astype(np.int32)


def _texts(strings: "object | None", count: int) -> Iterable[bytes]:
    return (b"%d" % number for number in range(count)) if strings is None else encoded(strings)  # type: ignore[arg-type]


def _owners(numbers: Iterable[int]) -> Owners:
    return np.fromiter(numbers, np.int32)


def _hash(text: bytes) -> int:
    return xxhash.xxh3_64_intdigest(text)


def _rendezvous(text: bytes, partitions: int) -> int:
    """Return the partition with the largest hash of the text. The partition is the seed of the hash instead of a part
    of the text, so that each partition has a hash of its own, and none is a function of another."""
    return max(range(partitions), key=lambda partition: xxhash.xxh3_64_intdigest(text, partition))
