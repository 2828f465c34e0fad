"""Repeated signals within a minute enter the inbox at most twice: at once, and again when the minute is over."""

import asyncio
from pathlib import Path

from trapline.refresh.core.evidence import SAME_S
from trapline.signals.endpoint.intake import REPEATED_S, Intake, SenderRates, SignalTally
from trapline.signals.inbox import Inbox, InboxWriter, Signal

URL = "http://a.test/x"


def received_at(folder: Path, moments: list[float], vouched: bool = True) -> list[float]:
    """The times of the stored signals if the page is signalled at these moments."""
    return [signal.received for signal in signals(folder, moments, vouched)]


def signals(folder: Path, moments: list[float], vouched: bool = True) -> list[Signal]:
    clock = [0.0]

    async def send() -> None:
        inbox = Inbox(folder)
        writer = InboxWriter(inbox)
        intake = Intake(writer, SignalTally(lambda: clock[0]), SenderRates(), lambda: clock[0])
        for second in range(300):
            clock[0] = float(second)
            for _ in range(moments.count(clock[0])):
                await intake.changed("indexnow", [(URL, clock[0])], vouched)
            await intake.late()
        await writer.close()
        inbox.close()

    asyncio.run(send())
    inbox = Inbox(folder)
    found = inbox.take(0, 1000)
    inbox.close()
    return found


def test_the_last_of_many_signals_is_not_lost(tmp_path: Path) -> None:
    assert received_at(tmp_path, [0.0, 5.0, 5.0, 40.0]) == [0.0, REPEATED_S]


def test_a_repeated_signal_counts_only_if_a_crawl_came_between(tmp_path: Path) -> None:
    """A crawl may miss a change less than SAME_S before it. A repeated signal is dated earlier, so that a crawl misses nothing."""
    first, again = signals(tmp_path, [0.0, 5.0, 40.0])
    assert first.moment == 0.0
    assert again.moment == 40.0 - SAME_S


def test_a_single_signal_is_stored_once(tmp_path: Path) -> None:
    assert received_at(tmp_path, [0.0]) == [0.0]


def test_a_flood_of_signals_is_stored_once_a_minute(tmp_path: Path) -> None:
    assert received_at(tmp_path, [float(second) for second in range(200)] * 3) == [0.0, 60.0, 120.0, 180.0, 240.0]


def test_an_unverified_signal_is_not_repeated(tmp_path: Path) -> None:
    assert received_at(tmp_path, [0.0, 5.0], vouched=False) == [0.0]


def test_repetitions_are_recognised_by_a_secret_hash_of_the_process(tmp_path: Path) -> None:
    """Otherwise a sender who finds two URLs with one hash could suppress the signal of one of them."""
    inbox = Inbox(tmp_path)
    several = [Intake(InboxWriter(inbox), SignalTally(float), SenderRates(), float) for _ in range(2)]
    first, second = (one._key("indexnow", URL, True) for one in several)
    assert first != second and len(first) >= 16
    assert first == several[0]._key("indexnow", URL, True) != several[0]._key("indexnow", URL, False)
    inbox.close()
