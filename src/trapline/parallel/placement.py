"""Which machine of a cluster each partition runs on. It knows names of machines and counts, and nothing of Ray.

A partition stays where its folder is. Only where all machines see the crawl's folder, on shared storage, may it go on at another.

DIR/hosts.json     where each was at last, whether the folder is shared, and which machine the command ran on
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from trapline.errors import ConfigError
from trapline.output import write_json

HOSTS = "hosts.json"
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Placement:
    command: str  # the machine of the command that leads the crawl
    shared: bool  # all machines see the same folder
    hosts: Mapping[int, str] = field(default_factory=dict)  # by partition

    @property
    def elsewhere(self) -> dict[int, str]:
        """Partitions whose folders lie on other machines than the command."""
        return {} if self.shared else {number: host for number, host in self.hosts.items() if host != self.command}

    def hosts_at(self, here: str) -> dict[int, str]:
        """By partition, if the command runs on this machine now: a cluster of one machine (`--ray local`) knew it as loopback.

        >>> Placement("127.0.0.1", True, {0: "127.0.0.1"}).hosts_at("10.0.0.1")
        {0: '10.0.0.1'}
        """
        return {number: here if host == _LOOPBACK else host for number, host in self.hosts.items()}

    def having(self, partition: int, host: str | None) -> "Placement":
        """None: it is nowhere."""
        others = {number: where for number, where in self.hosts.items() if number != partition}
        return replace(self, hosts=others if host is None else {**others, partition: host})


def host_for(partition: int, placed: Placement, there: Sequence[str]) -> str | None:
    """Of the machines there are, the one for it: where it was, or else that with the fewest. None: it must wait for the one it was on.

    >>> placed = Placement("a", False, {0: "a", 1: "b"})
    >>> host_for(2, placed, ["a", "b", "c"]), host_for(1, placed, ["a", "c"])
    ('c', None)
    """
    before = placed.hosts.get(partition)
    if before in there or (before is not None and not placed.shared):
        return before if before in there else None
    busy = Counter(placed.hosts.values())
    return min(there, key=lambda host: (busy[host], there.index(host)), default=None)


def write(folder: Path, placed: Placement) -> None:
    hosts = {str(number): host for number, host in sorted(placed.hosts.items())}
    write_json(folder / HOSTS, {"command": placed.command, "shared": placed.shared, "hosts": hosts})


def read(folder: Path) -> Placement | None:
    """None: it never was on several machines."""
    try:
        found = json.loads((folder / HOSTS).read_text())
        hosts = {int(number): str(host) for number, host in found["hosts"].items()}
        return Placement(str(found["command"]), bool(found["shared"]), hosts)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{folder / HOSTS}: cannot be read ({error}); restore it from a copy") from None


def refuse_elsewhere(folder: Path) -> None:
    """`ConfigError` if the crawl cannot go on with what is on this machine."""
    placed = read(folder)
    for number, host in sorted(placed.elsewhere.items()) if placed else ():
        raise ConfigError(f"{folder}: its partition {number} is on {host}; go on with --ray")
