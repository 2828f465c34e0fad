"""Partitions on two hosts are one crawl, over a line that is slow and loses packets, and even if the line is cut for a while.

`TRAPLINE_CUT_SECONDS` sets the length of the cut; `make proof` uses 20.
"""

import asyncio
import os
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.effort import slow
from tests.parallel.hosts_world import Cut, chained_web, crawl_on, cut_off, options_for, served_to
from tests.parallel.namespaces import FAR, NEAR, Hosts, missing, two_hosts
from tests.parallel.processes_world import fetched, meanwhile, requests_of_pages, rows
from trapline.parallel.folder.manifest import Manifest
from trapline.parallel.transport import wire
from trapline.testweb import Promise, check

CUT_S = float(os.environ.get("TRAPLINE_CUT_SECONDS", "3"))
DELAY_S, LOSS = 0.1, 0.01
SITES, PAGES_A_SITE = 24, 10
PAGES = SITES * PAGES_A_SITE
PROMISE = Promise(delay_s=0.1, per_connection=4)


@pytest.fixture
def hosts(request: pytest.FixtureRequest) -> Iterator[Hosts]:
    """Yield two hosts, by delay and loss."""
    if why := missing():
        pytest.skip(why)
    with two_hosts(*request.param) as made:
        yield made


@pytest.fixture
def ends(hosts: Hosts) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Yield a socket on each host."""
    made = []
    for host, address in ((hosts.near, NEAR), (hosts.far, FAR)):
        with host.entered():
            made.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            made[-1].bind((address, 7_000))
    near, far = made
    with near, far:
        yield near, far


@pytest.mark.parametrize("hosts", [(0.05, 0.0)], indirect=True)
def test_packets_that_are_sent_during_a_cut_are_lost(hosts: Hosts, ends: tuple[socket.socket, socket.socket]) -> None:
    near, far = ends
    for order, said in ((hosts.line.cut, b"cut"), (hosts.line.join, b"joined")):
        order()
        hosts.line.counts()  # the order has been obeyed
        near.sendto(said, (FAR, 7_000))
    far.settimeout(10.0)
    assert far.recvfrom(100) == (b"joined", (NEAR, 7_000))
    assert hosts.line.counts()[0]["cut_off"] >= 1


@slow
@pytest.mark.parametrize("hosts", [(0.0, 0.2)], indirect=True)
def test_the_share_of_lost_packets_is_right(hosts: Hosts, ends: tuple[socket.socket, socket.socket]) -> None:
    _, far = ends
    for _ in range(1_000):
        far.sendto(b"hello", (NEAR, 7_000))
        hosts.line.counts()  # slowly, so that no queue on the way overflows
    back = hosts.line.counts()[1]
    assert back["packets"] + back["lost"] >= 1_000
    assert 0.1 < back["lost"] / (back["packets"] + back["lost"]) < 0.3


@pytest.mark.parametrize("hosts", [(0.0, 0.0)], indirect=True)
@pytest.mark.parametrize("says", [b"", b"something"])
def test_a_silent_connection_ends_on_both_hosts(hosts: Hosts, says: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds whether or not there is something to send."""
    monkeypatch.setattr(wire, "_SILENT_S", 2.0)

    async def fall_silent() -> None:
        lines = await line_between(hosts)
        hosts.line.cut()
        hosts.line.counts()  # the order has been obeyed
        for line in lines if says else ():
            line.send(wire.FrameKind.STATUS, says)
        assert await asyncio.wait_for(asyncio.gather(*(line.receive() for line in lines)), 60.0) == [None, None]

    asyncio.run(fall_silent())


async def line_between(hosts: Hosts) -> tuple[wire.SecureStream, wire.SecureStream]:
    called: asyncio.Queue[wire.SecureStream] = asyncio.Queue()
    with hosts.near.entered():
        server, address = await wire.listen(NEAR, wire.Pass("crawl", b"token", 0), called.put)
    with hosts.far.entered():
        streams = await asyncio.open_connection(*address)
    far = await wire.greet(*streams, wire.Pass("crawl", b"token", 1), called=True)
    near = await called.get()
    server.close()
    return near, far


@slow
@pytest.mark.parametrize("hosts", [(DELAY_S, LOSS)], indirect=True)
def test_a_host_that_is_cut_off_returns_and_nothing_is_lost(hosts: Hosts, tmp_path: Path) -> None:
    folder, cut = tmp_path / "c", Cut()
    with served_to(hosts, chained_web(SITES, PAGES_A_SITE)) as server:
        options = options_for(server, 1, PROMISE.delay_s, PROMISE.per_connection, connections=20)
        with meanwhile(lambda: cut_off(hosts, folder, PAGES // 4, CUT_S, cut)):
            ended = crawl_on(hosts, folder, options)
        requests, findings = requests_of_pages(server), check(server.log(), PROMISE)
    assert cut.pages_before <= cut.pages_at_end < PAGES  # neither host could finish the crawl alone
    assert cut.passed == 0
    assert requests == Counter(range(PAGES))  # no process died, so no request was repeated
    assert set(fetched(folder)) == {server.web.url(page) for page in range(PAGES)}
    assert (ended.stopped_by, findings.overlaps, findings.early, findings.disallowed) == ("drained", [], [], [])
    check_groups(ended)


def check_groups(ended: Manifest) -> None:
    """Check that every partition fetched its part of the web, and that none was restarted."""
    for part in ended.parts:
        assert sum(fetched(part).values()) > 0
        assert rows(part, "select value from meta where key = 'runs'") == [("1",)]
