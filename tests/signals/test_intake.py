"""What is said twice within a minute goes to the inbox twice at most: at once, and once more when the minute is over."""

import asyncio
from pathlib import Path

from trapline.refresh.core.evidence import SAME_S
from trapline.signals.endpoint.intake import REPEATED_S, Intake, SenderRates, SignalTally
from trapline.signals.inbox import Inbox, InboxWriter, Signal

URL = "http://a.test/x"


def heard(folder: Path, moments: list[float], vouched: bool = True) -> list[float]:
    """The page is said to have changed at these moments; when signals were received."""
    return [signal.received for signal in signals(folder, moments, vouched)]


def signals(folder: Path, moments: list[float], vouched: bool = True) -> list[Signal]:
    clock = [0.0]

    async def say() -> None:
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

    asyncio.run(say())
    inbox = Inbox(folder)
    found = inbox.take(0, 1000)
    inbox.close()
    return found


def test_the_last_of_many_is_not_lost(tmp_path: Path) -> None:
    assert heard(tmp_path, [0.0, 5.0, 5.0, 40.0]) == [0.0, REPEATED_S]


def test_what_is_said_once_more_counts_only_after_a_crawl_in_between(tmp_path: Path) -> None:
    """A crawl may miss what happened less than SAME_S before it: of a repetition it may miss nothing."""
    first, again = signals(tmp_path, [0.0, 5.0, 40.0])
    assert first.moment == 0.0
    assert again.moment == 40.0 - SAME_S


def test_one_is_said_once(tmp_path: Path) -> None:
    assert heard(tmp_path, [0.0]) == [0.0]


def test_a_flood_is_one_a_minute(tmp_path: Path) -> None:
    assert heard(tmp_path, [float(second) for second in range(200)] * 3) == [0.0, 60.0, 120.0, 180.0, 240.0]


def test_who_is_not_vouched_for_is_not_said_again(tmp_path: Path) -> None:
    assert heard(tmp_path, [0.0, 5.0], vouched=False) == [0.0]


def test_what_counts_as_the_same_is_known_by_a_secret_of_the_process(tmp_path: Path) -> None:
    """Else whoever finds two URLs of one hash has the one stand for the other, which is then never heard."""
    inbox = Inbox(tmp_path)
    several = [Intake(InboxWriter(inbox), SignalTally(float), SenderRates(), float) for _ in range(2)]
    first, second = (one._key("indexnow", URL, True) for one in several)
    assert first != second and len(first) >= 16
    assert first == several[0]._key("indexnow", URL, True) != several[0]._key("indexnow", URL, False)
    inbox.close()
