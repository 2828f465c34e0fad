"""Which partition of a live crawl owns a site: the one that owns its address, so that politeness to an address has one owner too.

Where everybody knows the address without asking (a name in the user's `--hosts`, an address in the URL), everybody knows the owner. What
name servers answer differs from partition to partition and from hour to hour; there, one partition decides, the *registrar* of the
host, which goes by its name. Others send the registrar what they meet of the host; it looks the name up once (settling.py), keeps
the answer, tells it to the owner, and passes all of it on. The answer stands for ever, also if the crawl grows: so the owner is a
function of that address and of the number of partitions, and there is never a second one.

With no rest of addresses to keep, sites go by their names alone. Sites of one host have one owner: the robots.txt of one often leads to
that of the other, http to https.
"""

from collections.abc import Iterator, Mapping, Sequence

from trapline.fetch.dns import Resolver
from trapline.fetch.urls import host_port
from trapline.frontier import Rules
from trapline.parallel.partition import Partitioning

_BY_ADDRESS, _BY_NAME = "address", "rendezvous"


def partitioning_for(rules: Rules, partitions: int) -> Partitioning:
    return Partitioning(_BY_ADDRESS if rules.address_rest_s > 0.0 else _BY_NAME, partitions)


class Places:
    """As one partition sees them. Who fills it: whoever settles a host (`settle`) or is told of it (`learn`); what is new is to be kept
    (`fresh`), and what we decided to be told to its owner (`take_decided`)."""

    def __init__(
        self,
        partitioning: Partitioning,
        hosts: Mapping[str, Sequence[str]],
        own: int,
        assigned: Mapping[str, str],
        sizes: Sequence[int] = (),
        size: int = 0,
    ) -> None:
        """`assigned`: the addresses of hosts that had to be asked for. `sizes`: the numbers of partitions that the crawl has had; the
        last is the present. `size`: the one for which we last handed over what was not ours any more; 0: as when we came to be."""
        self.own, self.partitions = own, partitioning.partitions
        self._by_address = partitioning.kind == _BY_ADDRESS
        self._table = Resolver(hosts)  # never asked for more than it knows at once
        self._addresses = dict(assigned)  # of hosts that are settled; "": it has none
        self._owners: dict[str, int] = {}
        self._registrars: dict[str, int] = {}
        self.fresh: list[tuple[str, str]] = []  # settled since the last batch, here or by who told us
        self._decided: list[tuple[str, str]] = []  # those that were settled here
        sizes = sizes or [self.partitions]
        self.elders = max((n for n in sizes if n <= own), default=0)  # partitions that were there before us
        self.size = size or min(n for n in sizes if n > own)
        self.has_grown = len(sizes) > 1
        self.is_whole = True  # we have all that became ours when the crawl grew (handover.py)

    def owns(self, site: str) -> bool | None:
        """Whether the site is ours; None: that is ours to find out."""
        host = host_of(site)
        return self.is_whole and self._where(host) == self.own and (host in self._owners or None)

    def where(self, site: str) -> int:
        """The partition to which all goes that concerns the site: its owner, or whoever knows more."""
        return self._where(host_of(site))

    def _where(self, host: str) -> int:
        found = self._owners.get(host)
        if found is None:
            known = self._owners if self._key(host) is not None else self._registrars
            found = known.get(host)
            if found is None:
                found = known[host] = self._responsible(host, self.partitions)
        return found

    def has_moved(self, site: str) -> bool:
        """Whether all went to us that concerns the site, before we handed over, and goes to another now."""
        host = host_of(site)
        return self._responsible(host, self.size) == self.own != self._where(host)

    def newcomers(self) -> range:
        """The partitions that were not there when we last handed over."""
        return range(self.size, self.partitions)

    def to_tell(self) -> Iterator[tuple[int, str, str]]:
        """Of the hosts that are settled, those that newcomers must know of, as owners or registrars; each with its address."""
        for host, address in self._addresses.items():
            for partition in {_rendezvous(name, self.partitions) for name in (address or host, host)}:
                if partition in self.newcomers():
                    yield partition, host, address

    def settle(self, site: str, addresses: Sequence[str]) -> None:
        """We are its registrar, and it has these addresses. None: it is ours, to be given up."""
        host = host_of(site)
        if host not in self._addresses:  # another site of it may have been asked for at the same time
            self.learn(host, addresses[0] if addresses else "")
            self._decided.append((host, self._addresses[host]))

    def take_decided(self) -> dict[int, list[tuple[str, str]]]:
        """What we settled since the last time of hosts that are others', by their owners."""
        found: dict[int, list[tuple[str, str]]] = {}
        for host, address in self._decided:
            owner = self._responsible(host, self.partitions)
            if owner != self.own:
                found.setdefault(owner, []).append((host, address))
        self._decided = []
        return found

    def learn(self, host: str, address: str) -> None:
        """Its registrar, or who had it from that, says that it has this address. What was said first stands."""
        if host not in self._addresses:
            self._addresses[host] = address
            self.fresh.append((host, address))

    def _responsible(self, host: str, partitions: int) -> int:
        """In a crawl of so many: the owner of a host, or its registrar where its address must be asked for, or it has none."""
        return _rendezvous(self._key(host) or host, partitions)

    def _key(self, host: str) -> str | None:
        """What the owner of the host goes by; "": its name; None: that must be found out."""
        if not self._by_address:
            return ""
        found = self._addresses.get(host)
        if found is None and (answer := self._table.known(host)) and answer.addresses:
            found = answer.addresses[0]
        return found


def host_of(site: str) -> str:
    return host_port(site)[1]


def _rendezvous(name: str, partitions: int) -> int:
    return Partitioning(_BY_NAME, partitions).owner_of(b"", name.encode(), b"")
