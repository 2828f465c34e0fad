"""The inbox returns all signals in order. A file that is not an inbox is reported in one line."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.effort import examples
from trapline.errors import ConfigError, InvariantError
from trapline.signals.inbox import ACCESS, CHANGED, CHANNELS, POINT, UNVERIFIED_P, Inbox, Signal

PING = Signal(0, 10.0, "indexnow", "http://a.test/x", CHANGED, 10.0, 1.0, True)

signals = st.builds(
    Signal,
    id=st.just(0),
    received=st.floats(0, 2e9),
    channel=st.sampled_from(CHANNELS),
    url=st.text(st.characters(codec="utf-8"), max_size=40),
    kind=st.sampled_from([CHANGED, POINT, ACCESS]),
    moment=st.floats(0, 2e9),
    p=st.floats(0, UNVERIFIED_P),
    verified=st.booleans(),
)


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Inbox]:
    inbox = Inbox(tmp_path)
    yield inbox
    inbox.close()


@given(st.lists(st.lists(signals, max_size=5), max_size=5), st.integers(1, 7))
@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_signals_are_taken_in_order_in_portions_of_any_size(
    tmp_path_factory: pytest.TempPathFactory, puts: list[list[Signal]], most: int
) -> None:
    inbox = Inbox(tmp_path_factory.mktemp("inbox"))
    for one in puts:
        inbox.put(one)
    taken: list[Signal] = []
    while more := inbox.take(taken[-1].id if taken else 0, most):
        assert len(more) <= most
        taken += more
    inbox.close()
    assert [signal.id for signal in taken] == list(range(1, len(taken) + 1))
    assert [signal._replace(id=0) for signal in taken] == [signal for one in puts for signal in one]


def test_another_process_sees_the_signals(tmp_path: Path, inbox: Inbox) -> None:
    inbox.put([PING])
    reader = Inbox(tmp_path)
    assert reader.take(0, 9) == [PING._replace(id=1)]
    reader.put([PING._replace(url="http://a.test/y")])
    reader.close()
    assert [signal.id for signal in inbox.take(1, 9)] == [2]


def test_a_failed_put_stores_nothing(inbox: Inbox) -> None:
    with pytest.raises(InvariantError):
        inbox.put([PING, PING._replace(verified=False)])
    assert inbox.take(0, 9) == []


def test_ids_are_not_reused_after_signals_were_deleted(inbox: Inbox) -> None:
    inbox.put([PING, PING._replace(received=20.0)])
    assert inbox.forget(15.0) == 1
    assert inbox.forget(99.0) == 1
    inbox.put([PING])
    assert [signal.id for signal in inbox.take(0, 9)] == [3]


def test_a_recreated_inbox_is_a_different_one(inbox: Inbox, tmp_path: Path) -> None:
    same = Inbox(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    other = Inbox(tmp_path / "elsewhere")
    assert inbox.identity == same.identity != other.identity
    same.close()
    other.close()


def test_a_topic_stays_the_same_if_it_moves_to_another_hub(inbox: Inbox) -> None:
    for hub in ("https://hub.test/1", "https://hub.test/2"):
        inbox.topic("http://a.test/feed", hub)
    inbox.topic("http://b.test/feed", "https://hub.test/1")
    assert inbox.topics() == [
        ("http://a.test/feed", "https://hub.test/2"),
        ("http://b.test/feed", "https://hub.test/1"),
    ]


def test_the_number_of_topics_is_limited(inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trapline.signals.inbox.MOST_TOPICS", 2)
    for number in range(4):
        inbox.topic(f"http://a.test/{number}", "https://hub.test/")
    inbox.topic("http://a.test/0", "https://hub.test/new")
    assert inbox.topics() == [("http://a.test/0", "https://hub.test/new"), ("http://a.test/1", "https://hub.test/")]


def test_one_site_does_not_use_up_the_topics_of_all(inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trapline.signals.inbox.MOST_TOPICS_OF_ONE_SITE", 2)
    for site in ("http://a.test", "http://a.test:81", "http://a.test.b", "https://a.test"):
        for number in range(4):
            inbox.topic(f"{site}/{number}", "https://hub.test/")
    inbox.topic("http://a.test/0", "https://hub.test/new")
    assert len(inbox.topics()) == 8 and ("http://a.test/0", "https://hub.test/new") in inbox.topics()


def other_database(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("create table t (x)")
    connection.close()


def newer(path: Path) -> None:
    Inbox(path.parent).close()
    with sqlite3.connect(path) as connection:
        connection.execute("update meta set value = '99' where key = 'format'")
    connection.close()


@pytest.mark.parametrize(
    "make, says",
    [
        (
            lambda path: path.write_bytes(b"no database at all, but long enough to be taken for one" * 50),
            "not a signals database",
        ),
        (other_database, "move the file away"),
        (newer, "signals database of format 99, but this version reads format 2"),
        (lambda path: path.mkdir(), "cannot be opened"),
    ],
    ids=["foreign", "other", "newer", "folder"],
)
def test_a_file_that_is_not_an_inbox_is_reported_in_one_line(tmp_path: Path, make, says: str) -> None:  # type: ignore[no-untyped-def]
    make(tmp_path / "signals.db")
    with pytest.raises(ConfigError, match=says) as raised:
        Inbox(tmp_path)
    assert "\n" not in str(raised.value) and "signals.db" in str(raised.value)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        Inbox(tmp_path / "absent")


def test_rows_that_are_not_signals_are_skipped(tmp_path: Path) -> None:
    """Rows written into the file by hand, more than are read at once."""
    inbox = Inbox(tmp_path)
    inbox.put([PING])
    wrong = [
        (1.0, 0, "http://a.test/", "changed", "abc", 1.0, 1),
        (1.0, 0, b"http://a.test/", "changed", 1.0, 1.0, 1),
        (1.0, 0, "http://a.test/\ud800", "changed", 1.0, 1.0, 1),
        (1.0, 99, "http://a.test/", "changed", 1.0, 1.0, 1),
        (1.0, 0, "http://a.test/", "rumour", 1.0, 1.0, 1),
        (1.0, 0, "http://a.test/", "changed", float("inf"), 1.0, 1),
    ]
    with sqlite3.connect(tmp_path / "signals.db") as other:
        for row in wrong:
            with suppress(sqlite3.Error, UnicodeEncodeError):
                other.execute(
                    "insert into signal (received, channel, url, kind, moment, p, verified) values (?, ?, ?, ?, ?, ?, ?)",
                    row,
                )
    inbox.put([PING])
    assert [signal.url for signal in inbox.take(0, 2)] == [PING.url]
    assert [signal.url for signal in inbox.take(1, 2)] == [PING.url]
    assert inbox.take(inbox.take(1, 2)[-1].id, 2) == []
    inbox.close()


# ---- files that are replaced while an inbox is open


def moved(tmp_path: Path, source: str, target: str) -> None:
    (tmp_path / target).mkdir(exist_ok=True)
    for file in (tmp_path / source).glob("signals.db*"):
        file.rename(tmp_path / target / file.name)


def test_an_inbox_replaced_by_a_rename_is_reopened(tmp_path: Path) -> None:
    """The files that SQLite wrote beside the old database must not be applied to the new one."""
    for name in ("c", "other"):
        (tmp_path / name).mkdir()
    inbox, other = Inbox(tmp_path / "c"), Inbox(tmp_path / "other")
    inbox.put([PING] * 40)
    other.put([PING] * 3)
    identity = other.identity
    other.close()
    (tmp_path / "other" / "signals.db").rename(tmp_path / "c" / "signals.db")
    assert inbox.is_gone
    inbox.reopen()
    assert (inbox.identity, len(inbox.take(0, 100)), inbox.is_gone) == (identity, 3, False)


def test_an_inbox_that_could_not_be_reopened_is_tried_again_when_the_old_file_is_back(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    inbox = Inbox(tmp_path / "c")
    inbox.put([PING])
    moved(tmp_path, "c", "away")
    (tmp_path / "c" / "signals.db").write_text("no database, and long enough to be seen as none" * 30)
    with pytest.raises((ConfigError, sqlite3.Error)):
        inbox.reopen()
    (tmp_path / "c" / "signals.db").unlink()
    moved(tmp_path, "away", "c")
    assert inbox.is_gone
    inbox.reopen()
    assert len(inbox.take(0, 10)) == 1


def test_a_file_without_access_does_not_count_as_deleted(inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(place: Path) -> None:
        raise PermissionError(13, "Permission denied", str(place))

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(PermissionError):
        _ = inbox.is_gone


# ---- permissions, because the inbox holds the secrets of subscriptions


def modes(folder: Path) -> dict[str, str]:
    return {file.name: f"{file.stat().st_mode & 0o777:o}" for file in sorted(folder.iterdir())}


PRIVATE = {"signals.db": "600", "signals.db-shm": "600", "signals.db-wal": "600"}


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_only_its_owner_can_read_it_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        inbox = Inbox(tmp_path)
    finally:
        os.umask(before)
    inbox.put([PING])
    assert modes(tmp_path) == PRIVATE
    inbox.close()


def test_a_file_readable_by_others_is_made_private_while_in_use(tmp_path: Path) -> None:
    first = Inbox(tmp_path)
    first.put([PING])
    for file in tmp_path.iterdir():
        file.chmod(0o644)
    second = Inbox(tmp_path)
    assert modes(tmp_path) == PRIVATE
    second.put([PING])
    first.put([PING])
    assert len(first.take(0, 10)) == 3
    first.close()
    second.close()


def test_a_file_of_another_user_that_others_can_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Inbox(tmp_path).close()
    (tmp_path / "signals.db").chmod(0o644)
    owner = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    with pytest.raises(ConfigError, match="owned by another user; let its owner run: chmod 600"):
        Inbox(tmp_path)
