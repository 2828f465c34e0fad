"""Why a crawl is not faster: one answer for each record of live/status, with a sentence and with what would help."""

import re
import subprocess
import sys
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.cli import trapline
from trapline.crawler.engine.status import CLOSING, CRAWLING, PAUSED, PREPARING, STOPPING
from trapline.crawler.inspect import folder_status, why_not_faster
from trapline.crawler.inspect.speed_suggestions import _WORDS, Suggestion
from trapline.crawler.inspect.why_not_faster import SpeedAnswer
from trapline.crawler.speed.connection_states import STATES

OPTIONS = {
    "connections": 64,
    "pause_s": 1.0,
    "bandwidth": 30e3,
    "site_bandwidth": float("inf"),
    "rules": {"delay_s": 15.0, "ip_delay_s": None, "per_connection": 10},
}
PLENTY = 1 << 40


def record(limit: int = 64, **given_: Any) -> dict[str, Any]:
    """Return a record of a crawl with 1,000 pages. Numbers of states and of waiting sites may be given by their names."""
    states = {name: given_.pop(name, 0) for name in STATES}
    waiting = {"pages": 2_900, "sites": 80, "addresses": 80, "ready_addresses": 0, "by_reason": {}, "next_s": None}
    waiting |= {name: given_.pop(name) for name in waiting if name in given_}
    progress = {"pages": 1_000, "errors": 0, "waiting": waiting["pages"], "active": given_.pop("active", 1)}
    return {
        "at": 0.0,
        "phase": CRAWLING,
        "doing": "",
        "progress": {**progress, **given_.pop("progress", {})},
        "connections": {"limit": limit, "now": states, "lately": states},
        "waiting": waiting,
        "goal": None,
        "failure": "",
        "stopped_by": "",
        **given_,
    }


def what_if(option: str, value: float, factor: float) -> dict[str, Any]:
    return {"option": option, "value": value, "factor": factor}


def answer(
    status: dict[str, Any] | None, disk: int = PLENTY, state: str = "running", age_s: float = 0.0
) -> SpeedAnswer:
    return why_not_faster.why_not_faster(status, OPTIONS, disk, state, age_s)


RUNNING: list[tuple[dict[str, Any], str, str]] = [
    (
        record(store=30, fetching=34),
        "store",
        "30 of 64 connections wait for the store, which has 0 B to write.",
    ),
    (
        record(store=64) | {"store": {"batches": 300, "bytes": 16_500_000, "warc_bytes": 0}},
        "store",
        "All 64 connections wait for the store, which has 16.5 MB to write.",
    ),
    (record(handler=20, fetching=44), "handler", "20 of 64 connections wait for the handler, which takes pages more"),
    (record(bandwidth=60, fetching=4), "bandwidth", "60 of 64 connections wait for --bandwidth 30 kB/s."),
    (
        record(fetching=60, connecting=4, ready_addresses=9) | {"processor": {"loop": 0.97}},
        "processor",
        "The processor is the limit: the loop of the crawl uses 97% of a core.",
    ),
    (
        record(2, fetching=2, ready_addresses=58, sites=60, addresses=60),
        "connections",
        "Both connections are in use, and 58 more sites could be visited now.",
    ),
    (
        record(1, fetching=1, ready_addresses=1, sites=9, addresses=3),
        "connections",
        "1 of 1 connections are in use, and 1 more address could be visited now.",
    ),
    (
        record(2, site_delay=2, active=2, ready_addresses=58),
        "connections",
        "Both connections are in use, most of them in the pause between two pages of a visit, and 58 more sites",
    ),
    (record(fetching=60, robots=4), "answers", "All 64 connections wait for the answers of servers."),
    (record(connecting=60, fetching=4), "answers", "60 of 64 connections are being opened, and the servers have not"),
    (
        record(dns=20, nothing_to_do=44, by_reason={"dns": 20}),
        "dns",
        "20 of 64 connections wait for DNS: name servers have not answered for 20 sites yet.",
    ),
    (
        record(robots=60, fetching=4, active=64),
        "robots",
        "60 of 64 connections wait for the robots.txt of their sites.",
    ),
    (
        record(back_off=30, nothing_to_do=34, by_reason={"back_off": 30}, sites=30, addresses=30, next_s=42.0),
        "back-off",
        "All 30 sites with waiting pages are in back-off after failed visits; the next visit is in 42 s.",
    ),
    (
        record(back_off=1, nothing_to_do=63, by_reason={"back_off": 1}, sites=1, addresses=1),
        "back-off",
        "The only site with waiting pages is in back-off after failed visits.",
    ),
    (
        record(back_off=50, fetching=14, by_reason={"back_off": 60}),
        "back-off",
        "50 of 64 connections wait for 60 sites in back-off after failed visits.",
    ),
    (
        record(address_delay=50, fetching=14),
        "address-delay",
        "50 of 64 connections wait for the delay of addresses that",
    ),
    (
        record(nothing_to_do=63, site_delay=1, sites=1, addresses=1)
        | {"pace": {"visit_pages": 5, "visit_every_s": 2.1}},
        "few-sites",
        "63 of 64 connections have nothing to do: all 2,900 waiting pages are on one site, which gives 5 pages every 2.1 s.",
    ),
    (
        record(nothing_to_do=60, fetching=4, sites=14, addresses=3),
        "few-sites",
        "60 of 64 connections have nothing to do: all 2,900 waiting pages are on 14 sites of 3 addresses.",
    ),
    (
        record(nothing_to_do=60, fetching=4, sites=2, addresses=1, pages=1),
        "few-sites",
        "60 of 64 connections have nothing to do: the waiting page is on 2 sites of one address.",
    ),
    (record(site_delay=58, fetching=6), "site-delay", "58 of 64 connections wait for the delay of their sites."),
    (
        record(site_delay=20, fetching=2, nothing_to_do=10, active=21, limit=32, sites=20, addresses=20),
        "site-delay",
        "20 of 32 connections wait for the pause between two pages of a visit.",
    ),
    (
        record(site_delay=64, active=0, next_s=3.0),
        "site-delay",
        "All 64 connections wait for the delay of their sites; the next visit is in 3 s.",
    ),
    (
        record(site_delay=58, fetching=6)
        | {"what_if": [what_if("per-connection", 20, 1.8)], "pace": {"visit_pages": 1}},
        "per-connection",
        "58 of 64 connections wait for the delay of their sites, which follows every visit of 1 page.",
    ),
    (
        record(nothing_to_do=60, sites=0, addresses=0, pages=0, active=4),
        "drained",
        "Nothing is left to fetch except the pages of 4 visits under way.",
    ),
    (
        record(nothing_to_do=60, sites=0, pages=0, active=4) | {"refetches": {"fetched": 1}},
        "refresh",
        "No new page is waiting. The crawl refetches pages that are due, in 4 visits",
    ),
    (
        record(nothing_to_do=60, sites=0, pages=0, progress={"pages": 0}),
        "starting",
        "The crawl has just begun: the first pages",
    ),
    (record(nothing_to_do=64, sites=0, active=0), "starting", "The crawl has just found pages: the first visits"),
    (record(fetching=5) | {"goal": 1_001}, "goal", "The last pages of --max-pages are being fetched."),
    (
        record(paused=64, phase=PAUSED) | {"paused": True},
        "paused",
        "The crawl is paused, and sends no request.",
    ),
    (
        record(phase=PREPARING, doing="reading", active=0, progress={"pages": 0}),
        "preparing",
        "The crawl is preparing its first visit: reading.",
    ),
    (record(phase=PREPARING, doing="reading"), "preparing", "The crawl is starting: reading."),
    (record(fetching=45, robots=1, store=18, ready_addresses=9), "connections", "46 of 64 connections are in use"),
    (record(paused=60, robots=4), "starting", "The crawl has just been continued after a pause"),
    (record(paused=30, fetching=34, ready_addresses=9), "connections", "34 of 64 connections are in use"),
    (record(phase=STOPPING, doing="stopping (max-time)"), "stopped", "The crawl is ending: stopping (max-time)."),
    (record(phase=CLOSING, doing="closing: writing"), "stopped", "The crawl is ending: writing."),
]


@pytest.mark.parametrize(("status", "limit", "sentence"), RUNNING)
def test_a_running_crawl(status: dict[str, Any], limit: str, sentence: str) -> None:
    found = answer(status)
    assert found.limit == limit and found.sentence.startswith(sentence)
    assert found.shares == status["connections"]["lately"]


NOT_RUNNING: list[tuple[dict[str, Any], str, str, str]] = [
    ({"stopped_by": "drained"}, "ended", "drained", "Nothing is left to fetch."),
    ({"stopped_by": "max-pages"}, "ended", "goal", "The crawl has ended, because it has reached --max-pages."),
    ({"stopped_by": "interrupted"}, "ended", "stopped", "The crawl was stopped by Ctrl-C."),
    ({}, "broken off", "broken-off", "The crawl was broken off: its process has ended without closing the folder."),
    (
        {"failure": "/a/b: the disk is full; make room and continue with --resume /a/b"},
        "broken off",
        "disk",
        "The crawl has stopped because the disk is full; make room and continue with --resume /a/b.",
    ),
    ({"failure": "c: the store ended"}, "broken off", "failed", "The crawl has failed: c: the store ended."),
]


@pytest.mark.parametrize(("status", "state", "limit", "sentence"), NOT_RUNNING)
def test_a_crawl_that_does_not_run(status: dict[str, Any], state: str, limit: str, sentence: str) -> None:
    found = answer(record(fetching=64) | status, state=state)
    assert (found.limit, found.sentence) == (limit, sentence)


def test_a_disk_that_is_almost_full() -> None:
    assert answer(record(fetching=64), disk=12_000_000).sentence.startswith("Only 12 MB are free on the disk")
    assert answer({}, disk=0, state="broken off").limit == "disk"


def test_a_crawl_that_is_silent_or_has_no_record() -> None:
    assert answer(record(fetching=64), age_s=40.0).sentence.startswith("The crawl has not written its status for 40 s")
    assert answer(None).sentence == "The crawl has not written its status yet."


def test_every_limit_has_a_sentence_and_says_what_helps() -> None:
    limits = {value for name, value in vars(why_not_faster).items() if name.isupper() and isinstance(value, str)}
    limits -= {why_not_faster.RUNNING, why_not_faster.ENDED, why_not_faster._FULL}
    found = [answer(status) for status, *_ in RUNNING] + [
        answer(status, state=state) for status, state, *_ in NOT_RUNNING
    ]
    found += [answer(record(), age_s=99.0)]
    assert {one.limit for one in found} == limits
    assert all(one.help and all(suggestion.text for suggestion in one.help) for one in found)
    assert all((one.sentence.endswith(".") and one.sentence[0].isupper()) or one.sentence[0].isdigit() for one in found)


def test_what_helps_comes_with_its_factor_and_says_for_whom() -> None:
    alternatives = [
        what_if("per-connection", 20, 1.6),
        what_if("per-connection", 100, 3.0),
        what_if("delay", 7.5, 1.9),
        what_if("delay", 0.0, 20.0),
        what_if("connections", 128, 2.0),
        what_if("pause", 0.0, 1.05),
    ]
    found = answer(record(site_delay=58, fetching=6, sites=9, addresses=9) | {"what_if": alternatives})
    assert found.help == [
        Suggestion("--delay 0 (now 15 s); for sites of your own", 20.0),
        Suggestion("--per-connection 100 (now 10); for sites of your own", 3.0),
        Suggestion("--delay 7.5s (now 15 s); for sites of your own", 1.9),
        Suggestion("--per-connection 20 (now 10); for sites of your own", 1.6),
    ]
    alone = answer(record(nothing_to_do=63, fetching=1, sites=1, addresses=1) | {"what_if": alternatives[3:4]})
    assert alone.help == [
        Suggestion("--delay 0 (now 15 s); if the site is yours", 20.0),
        Suggestion("Add seeds on other sites", None),
    ]


def test_of_two_values_with_the_same_factor_only_the_gentler_one_is_suggested() -> None:
    alternatives = [what_if("per-connection", 20, 1.5), what_if("per-connection", 100, 1.52)]
    found = answer(record(site_delay=58, fetching=6, sites=9, addresses=9) | {"what_if": alternatives})
    assert found.help == [Suggestion("--per-connection 20 (now 10); for sites of your own", 1.5)]


def test_without_a_good_alternative_it_says_that_no_option_helps() -> None:
    found = answer(record(site_delay=58, fetching=6) | {"what_if": [what_if("delay", 0.0, 1.01)]})
    assert [one.text for one in found.help] == ["No option helps much, because the delays that sites ask for remain"]


def test_commands_in_suggestions_exist() -> None:
    commands = [found for text in _WORDS.values() for found in re.findall(r"trapline ([a-z ]+) DIR", text)]
    assert commands
    for words in commands:
        command: click.Command | None = trapline
        for word in words.split():
            assert isinstance(command, click.Group)
            command = command.get_command(click.Context(command), word)
        assert command is not None, words


@given(
    st.dictionaries(st.sampled_from(STATES), st.integers(0, 64)),
    st.integers(0, 90),
    st.integers(0, 90),
    st.floats(0, 2),
)
def test_every_mix_of_states_has_an_answer(states: dict[str, int], sites: int, ready: int, loop: float) -> None:
    status = record(sum(states.values()), sites=sites, addresses=sites, ready_addresses=ready, **states)
    found = answer(status | {"processor": {"loop": loop}})
    assert found.sentence and found.help and found.as_json()["help"][0]["text"]


def test_the_states_of_a_folder_have_the_names_of_folder_status() -> None:
    assert (why_not_faster.RUNNING, why_not_faster.ENDED) == (folder_status.RUNNING, folder_status.ENDED)


def test_the_answer_needs_no_compiled_code() -> None:
    check = "import sys; import trapline.crawler.inspect.why_not_faster, trapline.crawler.files.status_file; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numba", "numpy", "uvloop"} & set(modules)
