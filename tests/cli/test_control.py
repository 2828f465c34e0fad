"""`trapline control`: each command sends one action and prints the answer of the crawl, or one line that says why there is none."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from trapline.cli import run
from trapline.crawler.files.control_mailbox import MOST_BYTES, Action, Mailbox
from trapline.crawler.files.lock import take

Captured = pytest.CaptureFixture[str]


class FakeCrawl:
    """Answers every action with its number."""

    def __init__(self, folder: Path) -> None:
        self._mailbox, self._over = Mailbox(folder), threading.Event()
        self.actions: list[Action] = []
        self.thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        while not self._over.wait(0.005):
            for number, action in self._mailbox.take():
                self.actions.append(action)
                self._mailbox.answer(number, f"answer {len(self.actions)}", refused=action.name == "continue")

    def end(self) -> None:
        self._over.set()
        self.thread.join()


@pytest.fixture
def crawl(tmp_path: Path) -> Iterator[FakeCrawl]:
    lock, crawl = take(tmp_path), FakeCrawl(tmp_path)
    crawl.thread.start()
    yield crawl
    crawl.end()
    lock.release()


@pytest.mark.parametrize(
    ("words", "name", "values"),
    [
        (["pause"], "pause", {}),
        (["stop"], "stop", {}),
        (["block", "a.org", "*.b.org"], "block", {"sites": ["a.org", "*.b.org"]}),
        (["unblock", "a.org"], "unblock", {"sites": ["a.org"]}),
        (["delay", "a.org", "2min"], "delay", {"site": "a.org", "delay_s": 120.0}),
        (["add-seeds", "a.org", "http://a.org/"], "add_seeds", {"urls": ["http://a.org/"]}),
    ],
)
def test_a_command_gives_one_action_and_prints_the_answer(
    crawl: FakeCrawl, tmp_path: Path, capsys: Captured, words: list[str], name: str, values: dict[str, object]
) -> None:
    command, *rest = words
    assert run(["control", command, str(tmp_path), *rest]) == 0
    assert capsys.readouterr().out == f"{tmp_path}: answer 1\n"
    assert [(action.name, action.values) for action in crawl.actions] == [(name, values)]
    assert crawl.actions[0].by.endswith(f"@{os.uname().nodename}, command")


def test_a_refusal_is_one_line_and_exit_code_2(crawl: FakeCrawl, tmp_path: Path, capsys: Captured) -> None:
    assert run(["control", "continue", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"trapline: error: {tmp_path}: answer 1\n"


def test_many_seeds_are_sent_in_several_actions(crawl: FakeCrawl, tmp_path: Path, capsys: Captured) -> None:
    urls = [f"http://a.org/{number:0100d}" for number in range(MOST_BYTES // 100)]
    (tmp_path / "seeds").write_text("\n".join(urls))
    assert run(["control", "add-seeds", str(tmp_path), "--seeds", str(tmp_path / "seeds")]) == 0
    assert len(crawl.actions) > 1
    assert [url for action in crawl.actions for url in action.values["urls"]] == urls


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["pause", "{dir}"], "is not running"),
        (["delay", "{dir}", "a.org", "soon"], "seconds"),
        (["add-seeds", "{dir}"], "no seed URL"),
        (["block", "{dir}"], "SITE"),
        (["resume", "{dir}"], "unknown command"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, capsys: Captured, words: list[str], reason: str) -> None:
    assert run(["control", *(word.format(dir=tmp_path) for word in words)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert reason in line
