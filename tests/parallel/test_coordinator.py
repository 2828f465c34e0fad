"""A coordinator with real connections to members whose behaviour the test controls."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.effort import slow
from trapline.crawler.control.action_handler import ActionHandler
from trapline.crawler.engine.records import CrawlProgress
from trapline.crawler.engine.status import CrawlStatus
from trapline.crawler.files.handled import HandledCounts
from trapline.crawler.speed.connection_states import ConnectionStates, CrawlSpeed, StoreBacklog, WaitingSites
from trapline.crawler.speed.what_if import WhatIf
from trapline.errors import ConfigError, InvariantError
from trapline.parallel.folder.manifest import MANIFEST
from trapline.parallel.live import coordinator as coordinators
from trapline.parallel.live.action_relay import ActionRelay
from trapline.parallel.live.control import WATCHER, WHERE, announced, ask
from trapline.parallel.live.coordinator import COORDINATOR, Coordinator, CrawlLimits
from trapline.parallel.live.page_budget import Holding
from trapline.parallel.live.partition_report import PartitionReport, Together
from trapline.parallel.live.termination import PartitionCount
from trapline.parallel.transport import wire
from trapline.parallel.transport.wire import Address, FrameKind, Pass, SecureStream, greet

CRAWL, TOKEN = "crawl", "token"
BEFORE = {0: CrawlProgress(0.0, 9.0, 500, 0, 0, 0, 40, 0, 0, 0.0)}  # progress of the partitions in the last run


def own(number: int) -> Pass:
    return Pass(CRAWL, TOKEN.encode(), number)


def at_most_six(partitions: int) -> None:
    if partitions > 6:
        raise ConfigError("six are enough")


class Member:
    """Has endless pages and fetches all that its budget allows. While it is `silent`, it does not answer."""

    def __init__(self, number: int) -> None:
        self.number, self.quota, self.used, self.silent = number, 0, 0, False
        self.stopped_by: list[str] = []

    async def obey(self, address: Address) -> None:
        self.line = line = await greet(*await asyncio.open_connection(*address), own(self.number), called=True)
        notes = ["a file was removed"] * self.number
        line.send(FrameKind.STATUS, json.dumps({"address": ["127.0.0.1", 1000 + self.number], "notes": notes}).encode())
        while (frame := await line.receive()) is not None:
            order = json.loads(frame[1])
            self.quota = max(order.get("quota", self.quota), self.used)
            self.stopped_by += [order["stop"]] if "stop" in order else []
            if "count" in order and not self.silent:
                self.answer(line, order["count"])
            self.used = self.quota

    def answer(self, line: SecureStream, round_: int) -> None:
        progress = CrawlProgress(0.0, 0.0, self.used, 0, 0, 0, 7, 0, 0, 0.0)
        report = PartitionReport(
            PartitionCount(False, 5, 3), Holding(self.used, self.quota, True, True), progress, pages_per_s=2.5
        )
        line.send(FrameKind.STATUS, json.dumps({"round": round_, "answer": report._asdict()}).encode())


def leading(
    limits: CrawlLimits,
    play: Callable[[Coordinator, list[Member], Address], Awaitable[None]],
    show: Callable[[CrawlStatus], None] = lambda status: None,
    silent: bool = False,
) -> None:
    """Run `play` with two members. If `silent`, neither of them answers at first."""

    async def main() -> None:
        coordinator = Coordinator(own(COORDINATOR), 2, limits, at_most_six, BEFORE)
        address = await coordinator.listen("127.0.0.1")
        members = [Member(number) for number in range(2)]
        for member in members:
            member.silent = silent
        tasks = [asyncio.ensure_future(member.obey(address)) for member in members]
        tasks.append(asyncio.ensure_future(coordinator.lead(show, Together("s", "f", limits.pages, 2, 2))))
        try:
            async with asyncio.timeout(30):
                await play(coordinator, members, address)
            assert not tasks[-1].done()  # the coordinator leads, whatever the members sent
        finally:
            coordinator.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


@slow
def test_a_silent_member_is_not_waited_for_and_the_goal_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinators, "_LATE_S", 0.3)

    async def play(coordinator: Coordinator, members: list[Member], address: Address) -> None:
        one, other = members
        await until(lambda: other.quota > 0)
        other.silent = True
        await until(lambda: one.quota + other.quota == 1000)  # the member that answers gets all free pages
        assert not coordinator.stopped_by
        other.silent = False
        await until(lambda: coordinator.stopped_by == "max-pages")
        assert one.used + other.used == 1000

    leading(CrawlLimits(pages=1000), play)


def test_the_status_of_the_whole_crawl_says_that_it_is_paused(tmp_path: Path) -> None:
    shown: list[CrawlStatus] = []

    async def play(coordinator: Coordinator, members: list[Member], address: Address) -> None:
        relay = ActionRelay(ActionHandler(tmp_path), coordinator.members, lambda action: None, coordinator.send_control)
        coordinator.actions = relay
        await until(lambda: any(status.phase == "crawling" for status in shown))
        relay.is_paused = True
        await until(lambda: shown[-1].phase == "paused" and shown[-1].paused)
        relay.is_paused = False
        await until(lambda: shown[-1].phase == "crawling" and not shown[-1].paused)

    leading(CrawlLimits(), play, shown.append)


class StuckMember(Member):
    """Says that it can fetch a page, and never does."""

    async def obey(self, address: Address) -> None:
        line = await greet(*await asyncio.open_connection(*address), own(self.number), called=True)
        line.send(FrameKind.STATUS, json.dumps({"address": ["127.0.0.1", 1000 + self.number]}).encode())
        while (frame := await line.receive()) is not None:
            order = json.loads(frame[1])
            self.quota = order.get("quota", self.quota)
            if "count" in order:
                self.answer(line, order["count"])


def test_a_crawl_that_could_work_and_does_not_ends_as_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinators, "_STUCK_S", 1.2)

    async def main() -> None:
        coordinator = Coordinator(own(COORDINATOR), 2, CrawlLimits(pages=9), at_most_six, {})
        address = await coordinator.listen("127.0.0.1")
        tasks = [asyncio.ensure_future(StuckMember(number).obey(address)) for number in range(2)]
        try:
            async with asyncio.timeout(30):
                await coordinator.lead(lambda status: None, Together("s", "f", 9, 2, 2))
        finally:
            coordinator.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    with pytest.raises(InvariantError, match=r"though pages are ready \(partition 0: Holding\(used=0, quota="):
        asyncio.run(main())


def folder_of(path: Path) -> Path:
    (path / MANIFEST).write_text("{}")
    return path


async def ask_coordinator(folder: Path, **said: Any) -> dict[str, Any]:
    return await asyncio.to_thread(lambda: ask(folder, **said))


def test_a_watcher_sees_each_partition_and_may_resize(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)

    async def play(coordinator: Coordinator, members: list[Member], address: Address) -> None:
        with announced(folder, CRAWL, TOKEN, address):
            assert (folder / WHERE).stat().st_mode & 0o777 == 0o600
            await until(lambda: len(coordinator.answers) == 2)
            await check_status(folder, members)
            with pytest.raises(ConfigError, match="six are enough"):
                await ask_coordinator(folder, resize=7)
            assert not coordinator.stopped_by
            assert await ask_coordinator(folder, resize=6) == {"size": 6}
            assert (coordinator.stopped_by, coordinator.size) == ("resized", 6)
            await until(lambda: members[0].stopped_by[:1] == ["resized"])
            with pytest.raises(ConfigError, match="is about to continue with 6"):
                await ask_coordinator(folder, resize=5)
            coordinator.interrupt("interrupted")  # then the crawl does not continue
            assert (coordinator.stopped_by, coordinator.size) == ("interrupted", 6)
        assert not (folder / WHERE).exists()

    leading(CrawlLimits(), play)


async def check_status(folder: Path, members: list[Member]) -> None:
    found = (await ask_coordinator(folder, status=True))["partitions"]
    said = {"pages": 0, "pages_per_second": 2.5, "waiting": 7, "batches_made": 5, "batches_received": 3}
    assert [{name: one[name] for name in said} for one in found] == [said, said]
    assert [(one["partition"], one["alive"], one["host"]) for one in found] == [
        (0, True, "127.0.0.1"),
        (1, True, "127.0.0.1"),
    ]
    members[1].line.close()
    before = found[1]["since"]
    while (one := (await ask_coordinator(folder, status=True))["partitions"][1])["alive"]:
        await asyncio.sleep(0.01)
    assert one["since"] > before and one["pages_per_second"] == 0.0


def test_a_resumed_crawl_shows_the_old_progress_until_its_partitions_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinators, "_LATE_S", 0.3)
    shown: list[CrawlStatus] = []

    async def play(coordinator: Coordinator, members: list[Member], address: Address) -> None:
        assert coordinator.doing == "2 of 2 partitions are starting"
        await until(lambda: bool(shown) and not shown[-1].doing)
        assert not coordinator.answers and shown[-1].notes == ["partition 1: a file was removed"]
        members[0].used = 503
        for member in members:
            member.silent = False
        await until(lambda: shown[-1].progress.pages == 503)
        assert {one.progress.pages for one in shown} == {500, 503}
        # Pages of earlier runs do not count for this run
        assert not any(one.pages_per_s for one in shown if one.progress.pages == 500)
        members[1].line.close()
        await until(lambda: coordinator.doing == "out of reach: 1 of 2 partitions")
        coordinator.interrupt("interrupted")
        assert coordinator.doing == "stopping (interrupted)"

    leading(CrawlLimits(), play, shown.append, silent=True)


def test_orders_without_the_token_are_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)

    async def play(coordinator: Coordinator, members: list[Member], address: Address) -> None:
        with announced(folder, CRAWL, "another", address), pytest.raises(ConfigError, match=r"tokens .* differ"):
            await ask_coordinator(folder, resize=6)
        assert not coordinator.stopped_by

    leading(CrawlLimits(), play)


def test_strangers_take_few_connections_and_keep_no_member_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_MOST_UNPROVEN", 3)

    async def play(coordinator: Coordinator, members: list[Member], address: Address) -> None:
        await until(lambda: len(coordinator.answers) == 2)
        strangers = [await asyncio.open_connection(*address) for _ in range(5)]
        for reader, _ in strangers[:2]:
            await reader.read()  # to its end: the oldest ones are closed
        line = await greet(*await asyncio.open_connection(*address), own(1), called=True)
        await strangers[2][0].read()
        assert not strangers[3][0].at_eof() and not strangers[4][0].at_eof()
        line.send(FrameKind.STATUS, json.dumps({"address": ["127.0.0.1", 1]}).encode())
        assert await line.receive() is not None
        for _, writer in strangers:
            writer.close()

    leading(CrawlLimits(), play)


async def answered(address: Address, number: int, *said: bytes) -> tuple[FrameKind, bytes] | None:
    line = await greet(*await asyncio.open_connection(*address), own(number), called=True)
    for body in said:
        line.send(FrameKind.STATUS, body)
    frame = await line.receive()
    assert frame is None or await line.receive() is None  # then it closes the connection
    return frame


def test_a_number_that_is_no_partition_is_refused_and_its_messages_are_ignored() -> None:
    async def play(coordinator: Coordinator, members: list[Member], address: Address) -> None:
        await until(lambda: len(coordinator.answers) == 2)
        for number in (99, COORDINATOR, -3):
            reader, writer = await asyncio.open_connection(*address)
            line = await greet(reader, writer, own(number), called=True)
            assert await line.receive() == (FrameKind.REFUSED, f"the crawl has no partition {number}".encode())
            assert await line.receive() is None
            behind = asyncio.StreamReader()  # the message right after the proof has arrived already
            behind.feed_data(bytes.fromhex("0000001c06") + b'{"address": ["1.2.3.4", 1]}')
            behind.feed_eof()
            await coordinator._called(SecureStream(behind, writer, number))
        assert coordinator._membership.peers.keys() == coordinator.answers.keys() == {0, 1}

    leading(CrawlLimits(), play)


NONSENSE = [b"5", b"[]", b"nonsense", b"\xff", b"", b"[" * 100_000, b'"resize"', b"null"]
NO_ANSWERS: list[dict[str, Any]] = [
    {"progress": ["1"] * 10},
    {"progress": [None] * 10},
    {"counted": [True, "1", 1]},
    {"holding": ["1", 0, True, True]},
    {"holding": [1, None, True, True]},
    {"busiest": [["a", "1"]]},
    {"errors": [[["a"], 1]]},
    {"doing": 5},
    {"refetches": [1, 2, ["3", 4], False]},
    {"pages_per_s": "fast"},
    {"speed": [1, 2]},
    {"speed": [[1] * 12, ["x"] * 12, [1, 1, 1, 1, {}, None], [1, 1, 1], 0.5]},
    {"speed": [[1] * 12, [1] * 12, [1, 1, 1, 1, [], "soon"], [1, 1, 1], 0.5]},
    {"what_ifs": [["delay", 1.0, "2"]]},
    {"what_ifs": [[5, 1.0, 2.0]]},
]
NO_ADDRESSES: list[Any] = [5, ["127.0.0.1"], [5, 5], ["127.0.0.1", "5"], ["127.0.0.1", 0], ["127.0.0.1", 65_536]]
SIZES = [b"null", b'"x"', b"2.5", b"true", b"-1", b"0", b"65", b"1e999", b"9" * 5_000]


def test_an_invalid_message_is_refused_and_harms_no_member() -> None:
    defects: list[dict[str, Any]] = []

    async def play(coordinator: Coordinator, members: list[Member], address: Address) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: defects.append(context))
        await until(lambda: len(coordinator.answers) == 2)
        for body in NONSENSE:
            frame = await answered(address, WATCHER, body)
            assert frame is not None and "does not understand" in json.loads(frame[1])["refused"]
        for body in SIZES:
            line = await greet(*await asyncio.open_connection(*address), own(WATCHER), called=True)
            line.send(FrameKind.STATUS, b'{"resize": ' + body + b"}")
            frame = await line.receive()
            assert frame is not None and "refused" in json.loads(frame[1])
            line.close()
        report = PartitionReport(PartitionCount(False, 5, 3), Holding(0, 0, True, False), BEFORE[0])._asdict()
        wrong = [{"address": one} for one in NO_ADDRESSES]
        wrong += [{"answer": one, "round": 1} for one in ({}, 5, *(report | one for one in NO_ANSWERS))]
        for body in (*NONSENSE, b"{}", *(json.dumps(one).encode() for one in wrong)):
            frame = await answered(address, 1, body)
            assert frame is not None and frame[0] == FrameKind.REFUSED, body
        await asyncio.sleep(0.6)  # it has read the message
        assert not coordinator.stopped_by

    leading(CrawlLimits(), play)
    assert not defects


def test_the_connections_and_what_ifs_of_partitions_are_added_up() -> None:
    speed = CrawlSpeed(
        ConnectionStates(fetching=3, dns=1),
        ConnectionStates(fetching=2, dns=2),
        WaitingSites(50, 5, 4, 1, {"dns": 2}, None),
        StoreBacklog(1, 2, 3),
        0.5,
    )
    report = PartitionReport(PartitionCount(False, 5, 3), Holding(0, 0, True, False), BEFORE[0])
    report = report._replace(speed=speed, what_ifs=[WhatIf("delay", 1.0, 2.0)])
    read = [PartitionReport.read(json.loads(json.dumps(report._asdict()))) for _ in range(2)]
    assert [(one.speed, one.what_ifs) for one in read] == [(report.speed, report.what_ifs)] * 2
    shown = Together("s", "f", 9, 8, 2).status([BEFORE[0]], read, 1.0, "", ())
    assert shown.speed is not None and shown.speed.now == ConnectionStates(fetching=6, dns=2)
    assert shown.speed.waiting == WaitingSites(100, 10, 8, 2, {"dns": 4}, None)
    assert shown.what_ifs == [WhatIf("delay", 1.0, 2.0)]


def test_the_pages_that_handlers_of_partitions_received_are_added_up() -> None:
    report = PartitionReport(PartitionCount(False, 5, 3), Holding(0, 0, True, False), BEFORE[0])
    reports = [report._replace(handled=HandledCounts(9, 4, 1)), report._replace(handled=HandledCounts(8, 3)), report]
    read = [PartitionReport.read(json.loads(json.dumps(one._asdict()))) for one in reports]
    shown = Together("s", "f", 9, 2, 3).status([BEFORE[0]], read, 1.0, "", ())
    assert [one.handled for one in read] == [one.handled for one in reports]
    assert shown.handled == HandledCounts(0, 7, 1)
