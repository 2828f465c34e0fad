"""Which partition of a live crawl owns a site: the one that owns its address, so that politeness to an address has one owner too.

Where everybody knows the address without asking (a name in the user's `--hosts`, an address in the URL), everybody knows the owner. What
name servers answer differs from partition to partition and from hour to hour; there, one partition decides, the *registrar* of the
site, which goes by its name. Others send the registrar what they meet of the site; it looks the name up once (settling.py), keeps
the answer, and passes all of it on. Who hears of a site from its registrar owns it.

With no rest of addresses to keep, sites go by their names alone. Sites of one host have one owner: the robots.txt of one often leads to
that of the other, http to https.
"""

from collections.abc import Mapping, Sequence

from trapline.fetch.dns import Resolver
from trapline.fetch.urls import host_port
from trapline.frontier import Rules
from trapline.parallel.partition import Partitioning

_BY_ADDRESS, _BY_NAME = "address", "rendezvous"


def partitioning_for(rules: Rules, partitions: int) -> Partitioning:
    rest_s = rules.delay_s if rules.ip_delay_s is None else rules.ip_delay_s
    return Partitioning(_BY_ADDRESS if rest_s > 0.0 else _BY_NAME, partitions)


class Places:
    """As one partition sees them. Who fills it: whoever settles a site (`assign`); what was settled is to be kept (`fresh`)."""

    def __init__(
        self, partitioning: Partitioning, hosts: Mapping[str, Sequence[str]], own: int, assigned: Mapping[str, int]
    ) -> None:
        self.own = own
        self._partitioning = partitioning
        self._by_name = Partitioning(_BY_NAME, partitioning.partitions)
        self._table = Resolver(hosts)  # never asked for more than it knows at once
        self._settled = dict(assigned)  # host: its owner
        self._registrars: dict[str, int] = {}
        self.fresh: list[tuple[str, int]] = []  # settled since the last batch

    def owns(self, site: str) -> bool | None:
        """Whether the site is ours; None: that is ours to find out."""
        return self.where(site) == self.own and (_host(site) in self._settled or None)

    def where(self, site: str) -> int:
        """The partition to which all goes that concerns the site: its owner, or whoever knows more."""
        host = _host(site)
        found = self._settled.get(host)
        if found is not None:
            return found
        answer = self._table.known(host)
        if self._partitioning.kind != _BY_ADDRESS or (answer and answer.addresses):
            found = self._settled[host] = self._owner(host, answer.addresses if answer else ())
            return found
        return self._registrar(host)

    def takes(self, site: str, sender: int) -> bool:
        """Whether the site is ours, now that we hear of it from that partition."""
        host = _host(site)
        if self.where(site) == self.own:
            return host in self._settled
        if host not in self._settled and sender == self._registrar(host):
            self.assign(site, self.own)
            return True
        return False

    def settle(self, site: str, addresses: Sequence[str]) -> None:
        """We are its registrar, and it has these addresses. None: it is ours, to be given up."""
        host = _host(site)
        if host not in self._settled:  # another site of it may have been asked for at the same time
            self.assign(site, self._owner(host, addresses) if addresses else self.own)

    def assign(self, site: str, owner: int) -> None:
        host = _host(site)
        self._settled[host] = owner
        self.fresh.append((host, owner))

    def _owner(self, host: str, addresses: Sequence[str]) -> int:
        return self._partitioning.owner_of(b"", host.encode(), addresses[0].encode() if addresses else b"")

    def _registrar(self, host: str) -> int:
        found = self._registrars.get(host)
        if found is None:
            found = self._registrars[host] = self._by_name.owner_of(b"", host.encode(), b"")
        return found


def _host(site: str) -> str:
    return host_port(site)[1]
