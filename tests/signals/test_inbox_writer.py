"""The inbox writer stores signals in groups. A confirmed signal is on disk."""

import asyncio
import sqlite3
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.signals.test_inbox import PING
from trapline.signals.endpoint.intake import Intake, SenderRates, SignalTally
from trapline.signals.inbox import Inbox, InboxWriter, Signal


class Watched:
    """An inbox that records its groups, and fails on request."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox, self.groups, self.full = inbox, list[int](), False

    def put(self, signals: Iterable[Signal]) -> None:
        signals = list(signals)
        self.groups.append(len(signals))
        if self.full:
            raise sqlite3.OperationalError("database or disk is full")
        self._inbox.put(signals)


@pytest.fixture
def inbox(tmp_path: Path) -> Watched:
    return Watched(Inbox(tmp_path))


def test_simultaneous_signals_share_one_transaction(inbox: Watched) -> None:
    async def main() -> None:
        writer = InboxWriter(inbox, every_s=0.05)  # type: ignore[arg-type]
        assert all(await asyncio.gather(*(writer.put([PING]) for _ in range(500))))
        assert all(await asyncio.gather(*(writer.put([PING]) for _ in range(500))))
        await writer.close()

    asyncio.run(main())
    assert inbox.groups == [500, 500] and len(inbox._inbox.take(0, 2000)) == 1000


def test_a_full_disk_fails_all_waiting_signals_and_the_next_group_is_tried(inbox: Watched) -> None:
    async def main() -> None:
        writer = InboxWriter(inbox, every_s=0.01)  # type: ignore[arg-type]
        inbox.full = True
        assert await asyncio.gather(*(writer.put([PING]) for _ in range(3))) == [False] * 3
        assert "full" in writer.failed
        inbox.full = False
        assert await writer.put([PING]) and not writer.failed
        await writer.close()

    asyncio.run(main())
    assert len(inbox._inbox.take(0, 9)) == 1


def test_a_repeated_signal_is_not_confirmed_before_the_one_it_repeats(inbox: Watched) -> None:
    async def main() -> None:
        writer = InboxWriter(inbox, every_s=0.05)  # type: ignore[arg-type]
        intake = Intake(writer, SignalTally(lambda: 0.0), SenderRates(), lambda: 0.0)
        inbox.full = True
        both = await asyncio.gather(*(intake.changed("indexnow", [("http://a/", 0.0)], True) for _ in range(2)))
        assert both == [False, False]
        inbox.full = False
        assert await intake.changed("indexnow", [("http://a/", 0.0)], True)  # the signal counts as new again
        await writer.close()

    asyncio.run(main())
    assert len(inbox._inbox.take(0, 9)) == 1


def test_closing_writes_the_remaining_signals(inbox: Watched) -> None:
    async def main() -> None:
        writer = InboxWriter(inbox, every_s=0.05)  # type: ignore[arg-type]
        for _ in range(3):
            writer.put([PING])
            await asyncio.sleep(0)
        await writer.close()

    asyncio.run(main())
    assert len(inbox._inbox.take(0, 9)) == 3
