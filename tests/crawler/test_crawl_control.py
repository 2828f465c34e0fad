"""Actions to a running crawl: what they promise holds for the requests that servers see, after a kill, and in every check of the folder."""

import json
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.crawler.controlled_crawl import IN_FLIGHT_S, Terminal, crawl, host_of, quick_ticks, small_web
from tests.crawler.kill_world import Run, fetches, options_of, prepared
from tests.effort import slow
from tests.frontier.test_replay import assert_same_state
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.files import resume
from trapline.crawler.files.control_mailbox import Action, send
from trapline.crawler.files.reading import Reading
from trapline.crawler.files.run_options import SITES, options_of_runs
from trapline.crawler.files.verify import verify
from trapline.crawler.inspect.audit import audit, manners_of, origins
from trapline.crawler.inspect.database_reader import open_database
from trapline.errors import ConfigError
from trapline.testweb import Served

pytestmark = pytest.mark.usefixtures(quick_ticks.__name__)
__all__ = ["quick_ticks"]
DELAY_S = 0.05


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    yield from small_web()


@pytest.fixture
def terminal(server: Served, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "c", server)


def options(server: Served, **changes: Any) -> CrawlOptions:
    given = options_of(server, seeds=tuple(server.seed_urls), scope="host", connections=6, snapshot_pages=1_000_000)
    rules = replace(given.rules, delay_s=DELAY_S, ip_delay_s=DELAY_S / 2, per_connection=4)
    return replace(given, rules=rules, **changes)


def check_folder(folder: Path) -> None:
    """Check that nothing is damaged, no visit was impolite, and a replay of the log gives the state of the snapshot."""
    assert [str(problem) for problem in verify(folder).problems] == []
    with closing(open_database(folder)) as database:
        assert audit(database).by_rule == {"apart": 0, "delay": 0, "pause": 0, "robots": 0}
    with closing(Reading(folder)) as reading:
        whole = resume.rebuilt(reading)[0]
        (newest,) = (folder / "snapshot").iterdir()
        shutil.move(newest, folder.parent / "snapshot")
        assert_same_state(resume.rebuilt(reading)[0], whole)
        shutil.move(folder.parent / "snapshot", newest)


def events(folder: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (folder / "crawl.log").read_text().splitlines()]
    return [event for event in found if event["event"].startswith("action")]


@slow
def test_a_paused_crawl_sends_nothing_until_it_continues(terminal: Terminal) -> None:
    def script(user: Terminal) -> None:
        user.wait_for(lambda: user.requests() > 20)
        assert user.action("pause").startswith("the crawl is paused")
        user.assert_no_requests()
        before = user.requests()
        assert user.action("continue") == "the crawl continues"
        assert user.action("continue") == "the crawl was not paused"
        user.wait_for(lambda: user.requests() > before + 20)

    summary = crawl(terminal, script, options(terminal.server))
    assert summary["stopped_by"] == "terminated"
    check_folder(terminal.folder)
    assert [event["event"] for event in events(terminal.folder)] == [
        "action_pause",
        "action_continue",
        "action_continue",
        "action_stop",
    ]
    assert {event["by"] for event in events(terminal.folder)} == {"a test"}


def test_a_blocked_site_gets_no_request_until_it_is_unblocked(terminal: Terminal) -> None:
    url = terminal.server.seed_urls[0]
    host = host_of(url)

    def script(user: Terminal) -> None:
        user.wait_for(lambda: user.requests(host) > 5)
        assert user.action("block", site=host) == f"blocked {host}: 1 known site is no longer visited"
        user.assert_no_requests(host)
        assert user.rows("select kind, why from abandoned_site") == [("blocked", "blocked by a test")]
        with pytest.raises(ConfigError, match="is blocked"):
            user.action("add_seeds", urls=[url])
        before = user.requests(host)
        assert user.action("unblock", site=url) == f"unblocked {url}: 1 known site is visited again"
        assert user.rows("select * from abandoned_site") == []
        user.wait_for(lambda: user.requests(host) > before + 5)

    summary = crawl(terminal, script, options(terminal.server))
    assert summary["abandoned_sites"] == 0
    assert summary["politeness_violations"] == 0
    check_folder(terminal.folder)
    actions = [(event["event"], event["by"]) for event in events(terminal.folder)]
    done = ("action_block", "action_refused", "action_unblock", "action_stop")
    assert actions == [(event, "a test") for event in done]


@slow
def test_a_longer_delay_holds_at_once_and_is_no_violation(terminal: Terminal) -> None:
    host = host_of(terminal.server.seed_urls[0])
    longer_s, since = 0.5, 0.0

    def script(user: Terminal) -> None:
        nonlocal since
        user.wait_for(lambda: user.requests(host) > 8)
        answer = user.action("delay", site=host, delay_s=longer_s)
        assert answer == f"the delay of {host} is 0.5 s from now on"
        since = time.time()
        with pytest.raises(ConfigError, match="--ip-delay"):
            user.action("delay", site=host, delay_s=0.01)
        before = user.requests(host)
        user.wait_for(lambda: user.requests(host) > before + 8)

    crawl(terminal, script, options(terminal.server, pause_s=0.0))
    folder, arrivals = terminal.folder, terminal.arrivals(host)
    later = arrivals[arrivals > since + IN_FLIGHT_S]
    between = np.diff(later)
    assert len(between[between > 0.1]) >= 1, "there was only one visit"
    assert between[between > 0.1].min() > longer_s - 0.01
    check_folder(folder)
    with closing(open_database(folder)) as database:  # the audit needs the times of the actions to see that
        kept = dict(database.execute("select key, value from meta"))
        without = {key: value for key, value in kept.items() if not key.startswith(SITES)}
        site = {name: number for number, name in origins(database)}[f"http://{host}:{terminal.server.port}"]
        before, after = manners_of(options_of_runs(without), origins(database)), audit(database)
    assert before.own_delays_us == [{site: 500_000}]
    assert after.violations == 0


@slow
def test_an_added_seed_is_fetched_and_widens_the_scope(terminal: Terminal) -> None:
    first, second = terminal.server.seed_urls[:2]

    def script(user: Terminal) -> None:
        user.wait_for(lambda: user.requests(host_of(first)) > 3)
        assert user.action("add_seeds", urls=[first, second, second]) == "added 1 seed; 1 already known"
        user.wait_for(lambda: user.requests(host_of(second)) > 5)  # links of the new seed are followed
        with pytest.raises(ConfigError, match="mailto"):
            user.action("add_seeds", urls=["mailto:x"])

    summary = crawl(terminal, script, options(terminal.server, seeds=(first,)))
    assert summary["scope_followed"] == []
    check_folder(terminal.folder)
    assert events(terminal.folder)[-2]["event"] == "action_refused"

    def again(user: Terminal) -> None:
        user.wait_for(lambda: user.requests(host_of(second)) > 5)

    crawl(terminal, again, None)
    assert len(terminal.rows("select distinct site from page")) == 2


@slow
def test_actions_hold_after_a_kill(server: Served, tmp_path: Path) -> None:
    """The answer comes when the action is on disk. A kill right after it changes nothing."""
    folder = tmp_path / "c"
    urls = [server.seed_urls[site] for site in (0, 4, 3, 2)]
    blocked, unblocked, delayed, added = map(host_of, urls)
    prepared(folder, options(server, seeds=tuple(urls[:3])))
    with Run("--resume", folder) as run:
        assert run.wait_for(lambda: fetches(folder) > 30)
        for name, values in {
            "pause": {},  # a resume does not keep it
            "block": {"sites": [blocked, unblocked]},
            "delay": {"site": delayed, "delay_s": 0.7},
            "add_seeds": {"urls": urls[3:]},
            "unblock": {"site": unblocked},
        }.items():
            send(folder, Action(name, "a test", values))
        run.poll()
        run.send(signal.SIGKILL, run.loop, run.store)
        run.ended()
    terminal = Terminal(folder, server)

    def script(user: Terminal) -> None:
        for host in (unblocked, delayed, added):
            user.wait_for(lambda host=host: user.requests(host) > 12)
        assert user.requests(blocked) == 0

    summary = crawl(terminal, script, None)
    gaps = np.diff(terminal.arrivals(delayed))
    assert len(gaps[gaps > 0.2]) >= 1
    assert gaps[gaps > 0.2].min() > 0.69
    assert summary["politeness_violations"] == 0
    assert summary["abandoned_sites_by_kind"] == {"blocked": 1}
    check_folder(folder)
