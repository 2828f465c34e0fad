"""Which partition of a live crawl owns a site: the partition that owns the site's address, so that one partition alone
keeps the delay of an address.

If the address is known without DNS (a name in the user's `--hosts`, an address in the URL), every partition can compute
the owner. The answers of name servers differ from partition to partition and from hour to hour. In that case one
partition decides: the *registrar* of the host, which is a function of the host name. Other partitions send the
registrar all links and messages that concern the host. The registrar looks the name up once (owner_lookup.py), keeps
the answer, tells it to the owner, and forwards all messages to the owner. The host is then *settled*. The answer is
final, also if the crawl grows: the owner is a function of that address and of the number of partitions, and there is
never a second owner.

With the other partition functions (`--partition`), every partition can compute the owner from the host name or, with
`url-hash`, from the URL. All sites of one host have one owner: the robots.txt of one often redirects to that of another,
from http to https. Only `url-hash` divides the pages of a host among partitions.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from trapline.fetch.dns import Resolver
from trapline.fetch.urls import host_port
from trapline.parallel.partition import BY_ADDRESS, BY_URL, Partitioning

_BY_NAME = "rendezvous"


class SiteOwners:
    """The owners of sites and pages, as one partition knows them. A `url` is a canonical URL or, except with `url-hash`, a
    site. `settle` adds a host that this partition decided, `learn` a host that another one decided. The caller must store
    new hosts (`fresh`), and send our decisions to the owners (`take_decided`)."""

    def __init__(
        self,
        partitioning: Partitioning,
        hosts: Mapping[str, Sequence[str]],
        own: int,
        assigned: Mapping[str, str],
        sizes: Sequence[int] = (),
        size: int = 0,
    ) -> None:
        """`assigned`: the addresses of settled hosts, as stored. `sizes`: the numbers of partitions that the crawl has
        had so far; the last one is the present number. `size`: the number of partitions for which we last handed over
        sites that are not ours any more; 0: the number when this partition was added."""
        self.own, self.partitions = own, partitioning.partitions
        self._partitioning = partitioning
        self._by_address, self._by_url = partitioning.kind == BY_ADDRESS, partitioning.kind == BY_URL
        self._table = Resolver(hosts)  # used only for addresses that are known without DNS
        self._addresses = dict(assigned)  # of settled hosts; "": the host has none
        self._owners: dict[str, int] = {}
        self._registrars: dict[str, int] = {}
        self._settled: dict[str, int] = {}  # owners of sites whose hosts are settled
        self.fresh: list[tuple[str, str]] = []  # hosts settled since the last batch, here or by another partition
        self._decided: list[tuple[str, str]] = []  # hosts settled here
        sizes = sizes or [self.partitions]
        self.elders = max((n for n in sizes if n <= own), default=0)  # number of older partitions
        self.size = size or min(n for n in sizes if n > own)
        self.has_grown = len(sizes) > 1
        self.is_whole = True  # we have received all that became ours when the crawl grew (handover.py)

    def owns(self, url: str) -> bool | None:
        """Return whether the page is ours; None: we are the registrar of its host, which is not settled yet."""
        owner = self.settled_owner(url)
        if owner is not None:
            return owner == self.own and (self._by_url or self.is_whole)
        return None if self.is_whole and self._where(host_of(url)) == self.own else False

    def settled_owner(self, url: str) -> int | None:
        """Return the owner of the page, which does not change until the crawl grows. None: its host is not settled yet."""
        if self._by_url:
            return self._partitioning.owner_of(url.encode(), b"", b"")
        end = url.find("/", 8)
        site = url if end < 0 else url[:end]
        owner = self._settled.get(site)
        if owner is None and self._key(host := host_of(site)) is not None:
            owner = self._settled[site] = self._where(host)
        return owner

    def is_registrar(self, url: str) -> bool:
        """Return whether partitions that do not know the owner of the page send us everything about it."""
        return self._by_address and _rendezvous(host_of(url), self.partitions) == self.own

    def where(self, url: str) -> int:
        """Return the partition to which everything about the page is sent: its owner, or the registrar of its host."""
        owner = self.settled_owner(url)
        return self._where(host_of(url)) if owner is None else owner

    def _where(self, host: str) -> int:
        found = self._owners.get(host)
        if found is None:
            known = self._owners if self._key(host) is not None else self._registrars
            found = known.get(host)
            if found is None:
                found = known[host] = self._responsible(host, self.partitions)
        return found

    def has_moved(self, site: str) -> bool:
        """Return whether we were the owner or registrar of the site before the hand-over, and another partition is now."""
        host = host_of(site)
        return self._responsible(host, self.size) == self.own != self._where(host)

    def newcomers(self) -> range:
        """Return the partitions that were added since our last hand-over."""
        return range(self.size, self.partitions)

    def hosts_for_newcomers(self) -> Iterator[tuple[int, str, str]]:
        """Yield the settled hosts that new partitions must know, as owners or registrars: partition, host, address."""
        for host, address in self._addresses.items():
            for partition in {_rendezvous(name, self.partitions) for name in (address or host, host)}:
                if partition in self.newcomers():
                    yield partition, host, address

    def settle(self, site: str, addresses: Sequence[str]) -> None:
        """Settle the host of a site, as its registrar, by the addresses that DNS returned. If there are none, the site
        becomes ours, to be abandoned."""
        host = host_of(site)
        if host not in self._addresses:  # another site of the host may have been looked up at the same time
            self.learn(host, addresses[0] if addresses else "")
            self._decided.append((host, self._addresses[host]))

    def take_decided(self) -> dict[int, list[tuple[str, str]]]:
        """Return the hosts that we settled since the last call and that other partitions own: owner -> hosts and their
        addresses."""
        found: dict[int, list[tuple[str, str]]] = {}
        for host, address in self._decided:
            owner = self._responsible(host, self.partitions)
            if owner != self.own:
                found.setdefault(owner, []).append((host, address))
        self._decided = []
        return found

    def learn(self, host: str, address: str) -> None:
        """Take over the address of a host that its registrar settled. The first address stays, whatever comes later."""
        if host not in self._addresses:
            self._addresses[host] = address
            self.fresh.append((host, address))

    def _responsible(self, host: str, partitions: int) -> int:
        """Return the partition that is responsible for a host in a crawl of `partitions`: its owner, or its registrar
        if the address is not known or the host has none."""
        if self._by_address:
            return _rendezvous(self._key(host) or host, partitions)
        return replace(self._partitioning, partitions=partitions).owner_of(b"", host.encode(), b"")

    def _key(self, host: str) -> str | None:
        """Return the text from which the owner of the host follows: its address; "": its name decides; None: it is not
        settled yet."""
        if not self._by_address:
            return ""
        found = self._addresses.get(host)
        if found is None and (answer := self._table.known(host)) and answer.addresses:
            found = answer.addresses[0]
        return found


def host_of(url: str) -> str:
    """Return the host of a canonical URL or of a site.

    >>> host_of("http://a.org:80/b/c"), host_of("https://a.org")
    ('a.org', 'a.org')
    """
    end = url.find("/", 8)
    return host_port(url if end < 0 else url[:end])[1]


def _rendezvous(name: str, partitions: int) -> int:
    return Partitioning(_BY_NAME, partitions).owner_of(b"", name.encode(), b"")
