"""A member whose coordinator does not answer, or answers wrongly."""

import asyncio
import json
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from trapline.crawler.engine.crawler import Crawler
from trapline.fetch.dns import Resolver
from trapline.parallel.live import member as members
from trapline.parallel.live.coordinator import COORDINATOR
from trapline.parallel.live.member import Lead, LiveMember
from trapline.parallel.live.site_owner import SiteOwners
from trapline.parallel.partition import Partitioning
from trapline.parallel.transport import wire
from trapline.parallel.transport.wire import Address, Pass, Refused, SecureStream, listen


def member(coordinator: Address, patience_s: float) -> tuple[LiveMember, list[str]]:
    """Return a member and the list of the reasons that stopped its crawl."""
    lead = Lead(coordinator, "127.0.0.1", "", patience_s, limited=False)
    site_owners = SiteOwners(Partitioning("rendezvous", 1), {}, 0, {})
    made, stops = (
        LiveMember(Pass("crawl", b"token", 0), site_owners, Resolver({}), Path("c"), lead, ("a file was removed",)),
        list[str](),
    )
    made._crawler, made._port = cast(Crawler, SimpleNamespace(stop=stops.append)), 9
    return made, stops


@pytest.fixture(autouse=True)
def _short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "_FIRST_S", 0.2)
    monkeypatch.setattr(members, "_PAUSE_S", 0.01)
    monkeypatch.setattr(wire, "_HELLO_S", 0.05)


async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Accept the connection and never answer, like a command that was stopped by Ctrl-Z."""
    await reader.read()
    writer.close()


@pytest.mark.parametrize("patience_s", [300.0, inf])
def test_a_member_stops_its_crawl_unless_its_supervisor_would_end_it(patience_s: float) -> None:
    async def obey() -> None:
        async with await asyncio.start_server(hang, "127.0.0.1", 0) as server:
            one, stops = member(server.sockets[0].getsockname()[:2], patience_s)
            _, waits = await asyncio.wait({obeying := asyncio.ensure_future(one._obey())}, timeout=1.0)
            assert bool(waits) == (patience_s == inf) != one.is_lost
            assert stops == ([] if waits else ["interrupted"])
            obeying.cancel()

    asyncio.run(obey())


def test_a_member_reconnects_and_reports_its_state_each_time() -> None:
    calls: list[SecureStream] = []

    async def hang_up(line: SecureStream) -> None:
        frame = await line.receive()
        assert frame is not None and json.loads(frame[1])["notes"] == ["a file was removed"]
        calls.append(line)
        line.close()

    async def obey() -> None:
        server, address = await listen("127.0.0.1", Pass("crawl", b"token", COORDINATOR), hang_up)
        one, stops = member(address, inf)
        obeying = asyncio.ensure_future(one._obey())
        async with asyncio.timeout(20):
            while len(calls) < 3:
                await asyncio.sleep(0.01)
        assert not stops and not one.is_lost
        obeying.cancel()
        server.close()

    asyncio.run(obey())


def test_a_member_does_not_retry_forever_after_a_refusal() -> None:
    async def refuse(line: SecureStream) -> None:
        assert await line.receive() is not None
        line.refuse("not understood")

    async def obey() -> None:
        server, address = await listen("127.0.0.1", Pass("crawl", b"token", COORDINATOR), refuse)
        with pytest.raises(Refused, match="refused by the coordinator: not understood"):
            await asyncio.wait_for(member(address, inf)[0]._obey(), 20)
        server.close()

    asyncio.run(obey())
