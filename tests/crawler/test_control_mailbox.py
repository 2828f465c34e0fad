"""The mailbox delivers each action once, to the process for which it is meant, and its answer to the sender; nothing else gets in."""

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trapline.crawler.discovery.site_settings import SiteSettings, SiteTables, with_settings
from trapline.crawler.files.control_mailbox import MOST_BYTES, Action, Mailbox, control_folder, send
from trapline.crawler.files.lock import share, take
from trapline.errors import ConfigError

NUMBER = "00000000000000000001-0123456789abcdef"
PAUSE = Action("pause", "me")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The folder of a crawl that this process runs."""
    lock = take(tmp_path)
    yield tmp_path
    lock.release()


@contextmanager
def answering(mailbox: Mailbox, answer: Callable[[str, Action], None]) -> Iterator[None]:
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            for number, action in mailbox.take():
                answer(number, action)
            time.sleep(0.001)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def put(folder: Path, name: str = f"{NUMBER}.request", **changes: Any) -> Path:
    """Write a request as a sender does, with these changes."""
    own = f"{os.getpid()} {socket.gethostname()}"
    request = {"process": own, "action": "pause", "by": "me", "values": {}, **changes}
    path = control_folder(folder) / name
    path.write_text(json.dumps(request))
    return path


def files(folder: Path) -> list[str]:
    return sorted(os.listdir(control_folder(folder)))


def test_an_action_arrives_and_is_answered(folder: Path) -> None:
    mailbox = Mailbox(folder)
    got: list[Action] = []

    def answer(number: str, action: Action) -> None:
        got.append(action)
        mailbox.answer(number, "paused", refused=False)

    with answering(mailbox, answer):
        assert send(folder, Action("block", "me", {"site": "a.org\n\u2028"})) == "paused"
    assert got == [Action("block", "me", {"site": "a.org\n\u2028"})]
    assert files(folder) == []


def test_a_refusal_is_an_error_of_the_sender(folder: Path) -> None:
    mailbox = Mailbox(folder)
    with (
        answering(mailbox, lambda number, action: mailbox.answer(number, "not now", refused=True)),
        pytest.raises(ConfigError, match="not now"),
    ):
        send(folder, PAUSE)
    assert files(folder) == []


def test_two_senders_at_once_get_their_own_answers(folder: Path) -> None:
    mailbox = Mailbox(folder)
    with (
        answering(mailbox, lambda number, action: mailbox.answer(number, f"for {action.by}")),
        ThreadPoolExecutor(8) as pool,
    ):
        answers = list(pool.map(lambda n: send(folder, Action("pause", str(n))), range(24)))
    assert answers == [f"for {n}" for n in range(24)]
    assert files(folder) == []


def test_only_the_owner_of_the_folder_may_look_into_it(folder: Path) -> None:
    control_folder(folder).mkdir(parents=True, mode=0o777)
    Mailbox(folder)
    assert control_folder(folder).stat().st_mode & 0o777 == 0o700


def test_actions_are_taken_oldest_first_and_once(folder: Path) -> None:
    mailbox = Mailbox(folder)
    for second in (3, 1, 2):
        put(folder, f"{second:020d}-0123456789abcdef.request", by=str(second))
    assert [action.by for _, action in mailbox.take()] == ["1", "2", "3"]
    assert mailbox.take() == []


def test_an_action_that_was_sent_before_the_mailbox_was_made_arrives(folder: Path) -> None:
    """The sender has read our process id from the lock, so it means this run."""
    control_folder(folder).mkdir(parents=True)
    put(folder)
    assert [action for _, action in Mailbox(folder).take()] == [PAUSE]


@pytest.mark.parametrize(
    "changes",
    [{"process": "1 elsewhere"}, {"process": None}, {"process": f"{os.getpid()} other-machine"}],
)
def test_an_action_for_another_process_is_void(folder: Path, changes: dict[str, Any]) -> None:
    mailbox = Mailbox(folder)
    put(folder, **changes)
    assert mailbox.take() == []
    assert files(folder) == []


@pytest.mark.parametrize(
    "changes", [{"action": "explode"}, {"action": None}, {"by": 7}, {"values": [1]}, {"action": ["pause"]}]
)
def test_an_action_that_is_not_understood_is_refused(folder: Path, changes: dict[str, Any]) -> None:
    mailbox = Mailbox(folder)
    put(folder, **changes)
    assert mailbox.take() == []
    (answer,) = control_folder(folder).iterdir()
    assert answer.name == f"{NUMBER}.answer"
    assert json.loads(answer.read_text())["refused"] is True


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "[" * 100_000, "\udcff", "{" + " " * MOST_BYTES + "}"])
def test_a_malformed_or_oversized_request_is_deleted(folder: Path, text: str) -> None:
    mailbox = Mailbox(folder)
    (control_folder(folder) / f"{NUMBER}.request").write_bytes(text.encode(errors="surrogateescape"))
    assert mailbox.take() == []
    assert files(folder) == []


def test_a_symlink_a_pipe_or_a_folder_is_not_read(folder: Path, tmp_path: Path) -> None:
    mailbox = Mailbox(folder)
    real = put(folder).rename(tmp_path / "elsewhere")
    box = control_folder(folder)
    (box / f"{NUMBER}.request").symlink_to(real)
    os.mkfifo(box / f"{NUMBER.replace('1', '2')}.request")
    (box / f"{NUMBER.replace('1', '3')}.request").mkdir()
    assert mailbox.take() == []
    assert real.exists()


def test_an_old_request_is_void_and_an_old_answer_is_deleted(folder: Path) -> None:
    mailbox = Mailbox(folder)
    hour_ago = time.time() - 3600.0
    for path in (put(folder), put(folder, "00000000000000000002-00.answer"), put(folder, ".partial")):
        os.utime(path, (hour_ago, hour_ago))
    put(folder, "00000000000000000003-00.answer")
    assert mailbox.take() == []
    assert files(folder) == ["00000000000000000003-00.answer"]


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, which may write files of other users")
def test_a_request_of_another_user_is_not_read(folder: Path) -> None:
    mailbox = Mailbox(folder)
    os.chown(put(folder), 12345, 12345)
    assert mailbox.take() == []


def test_no_answer_in_time_leaves_no_file(folder: Path) -> None:
    mailbox = Mailbox(folder)
    with pytest.raises(ConfigError, match="fg"):
        send(folder, PAUSE, wait_s=0.05)
    assert files(folder) == []
    assert mailbox.take() == []


def test_an_action_that_was_taken_is_still_answered_after_the_first_wait(folder: Path) -> None:
    mailbox = Mailbox(folder)

    def answer_late(number: str, action: Action) -> None:
        time.sleep(0.3)
        mailbox.answer(number, "late")

    with answering(mailbox, answer_late):
        assert send(folder, PAUSE, wait_s=0.2) == "late"


def test_an_action_that_was_taken_but_is_not_finished_is_not_called_withdrawn(folder: Path) -> None:
    with answering(Mailbox(folder), lambda number, action: None), pytest.raises(ConfigError, match="not finished"):
        send(folder, PAUSE, wait_s=0.1)
    assert files(folder) == []


def test_a_crawl_that_ends_meanwhile_is_named(tmp_path: Path) -> None:
    lock = take(tmp_path)
    mailbox = Mailbox(tmp_path)

    def end(number: str, action: Action) -> None:
        lock.release()

    with answering(mailbox, end), pytest.raises(ConfigError, match="ended before it answered"):
        send(tmp_path, PAUSE)
    assert files(tmp_path) == []


@pytest.mark.parametrize(("name", "reason"), [("", "is not running"), ("none", "no such folder")])
def test_a_crawl_that_does_not_run_is_named(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        send(tmp_path / name, PAUSE)


def test_a_folder_that_is_being_repaired_takes_no_actions(tmp_path: Path) -> None:
    lock = take(tmp_path, doing="repaired")
    with pytest.raises(ConfigError, match="repaired"):
        send(tmp_path, PAUSE)
    lock.release()


def test_a_crawl_that_takes_no_actions_yet_is_starting(folder: Path) -> None:
    with pytest.raises(ConfigError, match="starting"):
        send(folder, PAUSE)


def test_an_action_that_is_too_long_is_not_sent(folder: Path) -> None:
    Mailbox(folder)
    with pytest.raises(ConfigError, match="several parts"):
        send(folder, Action("add_seeds", "me", {"urls": ["x" * MOST_BYTES]}))
    assert files(folder) == []


def test_without_a_folder_or_with_one_that_cannot_be_written_there_are_no_actions(tmp_path: Path) -> None:
    assert Mailbox(None).take() == []
    (tmp_path / "live").write_text("a file")
    assert Mailbox(tmp_path).take() == []


def test_a_mailbox_that_is_a_symlink_is_not_used(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "others").mkdir(mode=0o755)
    (folder / "live").mkdir()
    control_folder(folder).symlink_to(tmp_path / "others")
    assert Mailbox(folder).take() == []
    assert (tmp_path / "others").stat().st_mode & 0o777 == 0o755


def test_a_look_at_the_lock_keeps_no_crawl_out(tmp_path: Path) -> None:
    take(tmp_path).release()
    look = share(tmp_path)  # as `holding` takes it, in a process that then has to wait for a processor
    assert look is not None
    timer = threading.Timer(0.1, look.release)
    timer.start()
    take(tmp_path).release()
    timer.join()


def test_many_sites_in_one_action_have_the_settings_of_many_actions() -> None:
    names = ["a.org", "*.a.org", "b.a.org", "*.org", "c.net", "a.org"]
    before: SiteTables = {"*.net": SiteSettings(blocked=True), "b.a.org": SiteSettings(delay_s=9.0)}
    for blocked in (True, False):

        def change(own: SiteSettings, blocked: bool = blocked) -> SiteSettings:
            return replace(own, blocked=blocked)

        single = before
        for name in names:
            single = with_settings(single, [name], change)
        assert with_settings(before, names, change) == single
