"""Actions to a crawl of several partitions: all partitions obey them, also those that were away or die, and the answer adds them up."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.effort import slow
from tests.parallel.processes_world import PAGES, PAGES_A_SITE, crawl, fetched, has, rows, served, wait_for
from trapline.crawler.control.action_handler import ActionHandler
from trapline.crawler.files.control_mailbox import Action, send
from trapline.crawler.files.lock import holder, take
from trapline.errors import ConfigError
from trapline.fetch.urls import host_port, origin
from trapline.parallel.folder.manifest import read
from trapline.parallel.live.action_relay import ActionRelay
from trapline.testweb import Served

COMMAND = "import sys; from trapline.cli import run; sys.exit(run(sys.argv[1:]))"
NOBODY: frozenset[int] = frozenset()


class Relay:
    """A relay with the mailbox of a folder, and a record of what it sends to three partitions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept: list[Action] = []
        self.sent: list[tuple[int, Mapping[str, Any]]] = []
        self.stopped: list[str] = []
        self.answers: list[str] = []
        self.relay = ActionRelay(
            ActionHandler(folder), range(3), self._keep, lambda to, action: self.sent.append((to, action))
        )

    def _keep(self, action: Action) -> None:
        if action.values.get("site") == "":
            raise ConfigError("not a host name")
        self.kept.append(action)

    def action(
        self, name: str, absent: frozenset[int] = NOBODY, is_ending: bool = False, **values: Any
    ) -> threading.Thread:
        """Send an action, and let the relay take it."""
        control = self.folder / "live" / "control"

        def give() -> None:
            try:
                self.answers.append(send(self.folder, Action(name, "me", values)))
            except ConfigError as error:
                self.answers.append(f"refused: {error}")

        thread = threading.Thread(target=give)
        thread.start()
        wait_for(lambda: any(name[0] != "." and name.endswith(".request") for name in os.listdir(control)))
        self.relay.poll(absent, is_ending, self.stopped.append)
        return thread

    def obey(self, partition: int, refused: str = "", **counts: int) -> None:
        """Answer the last action that was sent to the partition."""
        number = [action["number"] for to, action in self.sent if to == partition][-1]
        self.relay.answered(partition, {"number": number, "counts": counts, "refused": refused})


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Relay]:
    lock = take(tmp_path)
    yield Relay(tmp_path)
    lock.release()


def test_the_answer_adds_up_those_of_all_partitions(world: Relay) -> None:
    giving = world.action("block", site="a.org")
    assert [action.values for action in world.kept] == [{"site": "a.org"}]
    assert [to for to, _ in world.sent] == [0, 1, 2]
    world.obey(0, sites=1)
    world.obey(1, sites=0)
    world.obey(1, sites=7)  # the partition was sent the action twice
    assert world.answers == []
    world.obey(2, sites=2)
    giving.join()
    assert world.answers == ["blocked a.org: 3 known sites are no longer visited"]


def test_a_partition_that_was_away_gets_its_actions_when_it_is_back(world: Relay) -> None:
    giving = world.action("pause", absent=frozenset({1}))
    world.obey(0, visits=1)
    world.obey(2, visits=1)
    giving.join()
    assert world.answers == ["the crawl is paused; 2 visits under way end after their current page"]
    assert world.relay.is_paused
    world.relay.admitted(1)
    world.relay.admitted(0)
    assert [to for to, _ in world.sent] == [0, 2, 1]
    world.obey(1)
    world.relay.admitted(1)
    assert [to for to, _ in world.sent] == [0, 2, 1]


def test_a_site_is_blocked_only_when_a_partition_that_starts_has_obeyed(world: Relay) -> None:
    giving = world.action("block", absent=frozenset({1, 2}), site="a.org")
    assert [to for to, _ in world.sent] == [0]
    world.obey(0, sites=1)
    world.relay.admitted(1)
    world.obey(1, sites=1)
    assert world.answers == []
    world.relay.admitted(2)
    world.obey(2)
    giving.join()
    assert world.answers == ["blocked a.org: 2 known sites are no longer visited"]


def test_values_that_no_action_has_are_not_logged(world: Relay) -> None:
    world.action("stop", text="x", action="x", by="x", level="x", site="a.org").join()
    assert world.answers == ["the crawl is stopping"]
    logged = json.loads((world.folder / "crawl.log").read_text())
    assert (logged["event"], logged["by"], logged["site"]) == ("action_stop", "me", "a.org")


def test_one_refusal_refuses_the_action(world: Relay) -> None:
    giving = world.action("add_seeds", urls=["http://a.org/"])
    world.obey(0, new=1)
    world.obey(1, refused="its site is blocked")
    world.obey(2)
    giving.join()
    assert world.answers == [f"refused: {world.folder}: its site is blocked"]


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ({"name": "add_seeds", "urls": ["http://a.org/"], "absent": frozenset({1})}, "is starting"),
        ({"name": "block", "site": ""}, "not a host name"),
        ({"name": "pause", "is_ending": True}, "is ending"),
    ],
)
def test_what_cannot_be_obeyed_by_all_goes_to_none(world: Relay, action: dict[str, Any], reason: str) -> None:
    world.action(**action).join()
    assert reason in world.answers[0]
    assert world.sent == []


def test_stop_stops_the_whole_crawl(world: Relay) -> None:
    world.action("stop").join()
    assert (world.stopped, world.answers, world.sent) == (["terminated"], ["the crawl is stopping"], [])


# ---- with real processes


def host_of(url: str) -> str:
    return host_port(origin(url))[1]


def action(folder: Path, name: str, **values: Any) -> str:
    return send(folder, Action(name, "a test", values), wait_s=60.0)


def requests(server: Served, host: str = "") -> int:
    log = server.log()
    return sum(not host or log.host(row) == host for row in range(len(log)))


def assert_quiet(server: Served, host: str = "") -> None:
    time.sleep(0.3)  # the pages in flight
    before = requests(server, host)
    time.sleep(1.0)
    assert requests(server, host) == before


def worker_of(folder: Path) -> int:
    found = holder(folder)
    assert found
    return found


@slow
def test_partitions_obey_actions_across_deaths_and_a_resume(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    parts = [folder / "partition-0", folder / "partition-1"]
    with served(tmp_path, latency_s=0.02) as (server, arguments):
        blocked, delayed, added = server.seed_urls[1:4]
        seeds = [*arguments, blocked, delayed, "--scope", "host", "--processes", "2"]
        process = subprocess.Popen([sys.executable, "-c", COMMAND, "crawl", "--quiet", *seeds, "-o", str(folder)])
        try:
            wait_for(lambda: (folder / "live" / "control").exists() and any(has(part, 1) for part in parts))
            wait_for(lambda: all(map(holder, parts)))
            assert "paused" in action(folder, "pause")
            assert_quiet(server)
            for part in parts:
                old = worker_of(part)
                os.kill(old, signal.SIGKILL)
                wait_for(lambda part=part, old=old: holder(part) not in (None, old))  # type: ignore[misc]
            assert_quiet(server)
            action(folder, "block", site=host_of(blocked))
            action(folder, "delay", site=host_of(delayed), delay_s=0.4)
            assert read(folder).options.sites[host_of(blocked)].blocked
            wait_for(lambda: _add(folder, added) == "added 1 seed")
            before = requests(server, host_of(blocked))
            assert action(folder, "continue") == "the crawl continues"
            assert process.wait(120) == 0
        finally:
            if process.poll() is None:
                process.kill()
        assert requests(server, host_of(blocked)) == before
        assert sum(count for url, count in fetched(folder).items() if host_of(url) == host_of(added)) == PAGES_A_SITE
        assert set(fetched(folder).values()) == {1}
        assert rows(folder, "select kind, count(*) from abandoned_site group by kind") == [("blocked", 1)]
        assert violations(folder) == 0
        assert sum(fetched(folder).values()) < PAGES
        assert crawl("--resume", folder, "--scope", "any") == 0
        assert requests(server, host_of(blocked)) == before
    assert violations(folder) == 0


def _add(folder: Path, url: str) -> str:
    with suppress(ConfigError):  # partitions are starting
        return action(folder, "add_seeds", urls=[url])
    return ""


def violations(folder: Path) -> int:
    return int(json.loads((folder / "summary.json").read_text())["politeness_violations"])
