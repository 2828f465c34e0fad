"""The names that a registrar looks up: no name delays another, and none is abandoned before the usual number of tries."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.crawler.stage import VirtualLoop
from tests.effort import examples
from trapline.crawler.discovery.site_resolver import RETRY_S, TRIES
from trapline.fetch import failure
from trapline.fetch.dns import DnsAnswer
from trapline.parallel.live.owner_lookup import PATIENCE_S, OwnerLookup
from trapline.parallel.live.site_owner import SiteOwners
from trapline.parallel.partition import Partitioning
from trapline.parallel.transport.url_batches import LinkRow, decode, encode

FAILS = DnsAnswer((), 0.0, failure.DNS, True, "no answer in time")
ABSENT = DnsAnswer((), 0.0, failure.DNS, False, "no such name")
HERE = DnsAnswer(("10.0.0.1",), 0.0)
SILENT_S = 15.0


class NameServers:
    """Name servers. Each name has a list of answers, the last of which repeats, and a lookup may take some time."""

    def __init__(self, say: Mapping[str, Sequence[DnsAnswer]], slow: Mapping[str, float]) -> None:
        self._say, self._slow = say, slow
        self.lookups: Counter[str] = Counter()

    async def addresses(self, name: str) -> DnsAnswer:
        said = self._say.get(name, [HERE])
        at = min(self.lookups[name], len(said) - 1)
        self.lookups[name] += 1
        await asyncio.sleep(self._slow.get(name, 0.0))
        return said[at]


class LookupStage:
    """Message batches of a partition to itself. Names that are unresolved at a delivery go into the next batch, as in
    parallel/live/exchange.py."""

    def __init__(self, message_batches: Sequence[Sequence[str]], servers: NameServers, partitions: int = 1) -> None:
        self.loop = VirtualLoop()
        self.site_owners = SiteOwners(Partitioning("address", partitions), {}, 0, {})
        self.servers = servers
        self._disk: list[tuple[int, bytes]] = []
        self.delivered: list[int] = []
        self.found: dict[str, float] = {}  # by name: when
        for names in message_batches:
            self.add(names)
        self.owner_lookup = OwnerLookup(servers, self.site_owners, self._after, self._deliver, 0)  # type: ignore[arg-type]
        self._task = self.loop.create_task(self.owner_lookup.run())

    def add(self, names: Sequence[str]) -> None:
        rows = [LinkRow(f"http://{name}/".encode(), 1, 0) for name in names]
        self._disk.append((len(self._disk) + 1, encode(rows)))

    def _after(self, _: int, number: int, most: int) -> list[tuple[int, bytes]]:
        return self._disk[number:][:most]

    def _deliver(self, _: int, number: int, data: bytes) -> None:
        self.delivered.append(number)
        names = [row.url.decode().split("/")[2] for row in decode(data).rows]
        late = [name for name in names if self.site_owners.owns(f"http://{name}") is None]
        self.found |= {name: self.loop.time() for name in names if name not in late and name not in self.found}
        if late:
            self.add(late)
            self.owner_lookup.news.set()

    def passes(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))

    def close(self) -> None:
        self._task.cancel()
        self.loop.run_until_complete(asyncio.gather(self._task, return_exceptions=True))
        self.passes(0.0)
        self.loop.close()


def test_hundreds_of_batches_with_silent_names_wait_together() -> None:
    silent = {f"silent-{number}.test": SILENT_S for number in range(300)}
    stage = LookupStage([(name, f"here-{name}") for name in silent], NameServers({}, silent))
    stage.passes(6 * PATIENCE_S)  # 300 batches, read by 64
    assert all(f"here-{name}" in stage.found for name in silent)
    assert max(stage.found.values()) <= 6 * PATIENCE_S
    stage.passes(2 * SILENT_S)
    assert len(stage.found) == 600 and stage.delivered == list(range(1, len(stage.delivered) + 1))
    stage.close()


def test_a_failed_lookup_is_repeated_and_its_answer_counts() -> None:
    name = next(
        name
        for name in (f"n{number}.test" for number in range(99))
        if SiteOwners(Partitioning("address", 2), {}, 0, {}).owns(f"http://{name}") is None
    )
    elsewhere = next(
        address
        for address in (f"10.0.0.{last}" for last in range(1, 99))
        if Partitioning("address", 2).owner_of(b"", b"", address.encode()) == 1
    )
    servers = NameServers({name: [FAILS, DnsAnswer((elsewhere,), 0.0)]}, {})
    stage = LookupStage([[name]], servers, partitions=2)
    stage.passes(RETRY_S - 1.0)
    # No other batch waits, so it need not go round
    assert stage.site_owners.owns(f"http://{name}") is None and stage.delivered == []
    stage.passes(2.0)
    assert stage.site_owners.where(f"http://{name}") == 1 and stage.delivered == [1]
    assert servers.lookups == {name: 2}
    stage.close()


def test_a_name_without_an_answer_is_abandoned_after_the_usual_number_of_tries() -> None:
    servers = NameServers({"dead.test": [FAILS], "absent.test": [ABSENT]}, {})
    stage = LookupStage([["dead.test", "absent.test"]], servers)
    stage.passes(PATIENCE_S)
    assert stage.found.keys() == {"absent.test"}
    stage.passes(TRIES * RETRY_S)
    assert stage.found.keys() == {"absent.test", "dead.test"}
    assert servers.lookups == {"dead.test": TRIES, "absent.test": 1}
    stage.close()


NAMES = st.sampled_from([f"{letter}.test" for letter in "abcdefgh"])


@settings(deadline=None, max_examples=examples(60))
@given(
    st.lists(st.lists(NAMES, min_size=1, max_size=4, unique=True), max_size=12),
    st.dictionaries(NAMES, st.floats(0.0, 20.0)),
    st.dictionaries(NAMES, st.lists(st.sampled_from([FAILS, ABSENT, HERE]), min_size=1, max_size=4)),
)
def test_every_batch_is_delivered_once_in_order_and_every_name_is_resolved(
    message_batches: list[list[str]], slow: dict[str, float], say: dict[str, list[DnsAnswer]]
) -> None:
    stage = LookupStage(message_batches, NameServers(say, slow))
    stage.passes(TRIES * (RETRY_S + 20.0))
    assert stage.delivered == list(range(1, len(stage.delivered) + 1))
    assert stage.found.keys() == {name for names in message_batches for name in names}
    stage.close()
