"""Where a crawl did not go, and why: told by its summary, `status`, `explain`, the report and its closing lines, and kept over a resume."""

import json
import re
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.crawling import name_server
from tests.crawl.kill_world import options_of, rows, served
from trapline.cli import run
from trapline.cli.crawl_end import closing_lines
from trapline.crawl.folder import opened
from trapline.crawl.options import live_rules
from trapline.crawl.run import open_crawl, resume_crawl
from trapline.crawl.standing import Standing
from trapline.crawl.summary import left_out_of
from trapline.report.live_page import live_page
from trapline.report.live_record import MOST_GIVEN_UP, live_record

Captured = pytest.CaptureFixture[str]
NOWHERE = [f"http://nowhere{number}.test" for number in range(MOST_GIVEN_UP + 20)]
REFUSED = "http://0.0.0.0"  # also by --allow-private
DEAF = "http://127.0.0.9:9"  # where nobody listens
KINDS = {"dns": len(NOWHERE), "address": 1, "visits": 1}


class World(NamedTuple):
    folder: Path
    broken_off: dict[str, Any]  # the summary at a goal
    left_out: dict[str, int]  # links, then
    summary: dict[str, Any]  # at the end
    shown: list[Standing]  # from the resume on


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A crawl that keeps to some hosts, many of which are not to be had. It is stopped and goes on."""
    folder, shown = tmp_path_factory.mktemp("crawls") / "c", list[Standing]()
    with served(300, 12) as server, name_server({}) as nameserver:
        options = options_of(
            server,
            seeds=(*server.seed_urls[:3], *(f"{site}/" for site in (REFUSED, DEAF, *NOWHERE))),
            nameservers=(nameserver,),
            rules=live_rules(delay_s=0.0, backoff_s=0.0),
            scope="host",
            exclude=("/p/3",),
            give_up=1,
            pause_s=0.0,
            max_pages=20,
        )
        broken_off = open_crawl(options, folder, nullcontext(lambda standing: None))
        with closing(opened(folder)) as database:
            left_out = left_out_of(database)
        summary = resume_crawl(folder, nullcontext(shown.append), max_pages=1e9)
        yield World(folder, broken_off, left_out, summary, shown)


def test_a_site_is_given_up_once_and_says_why(world: World) -> None:
    assert world.summary["sites_given_up_by_kind"] == KINDS and world.summary["sites_given_up"] == sum(KINDS.values())
    told = {origin: (kind, why) for origin, kind, why in rows(
        world.folder, "select origin, kind, why from given_up join site on site.id = given_up.site"
    )}  # fmt: skip
    assert [told.pop(site) for site in NOWHERE] == [("dns", "no such name")] * len(NOWHERE)
    assert told == {
        REFUSED: ("address", "its address 0.0.0.0 is refused: unspecified"),
        DEAF: ("visits", "1 failed visit in a row"),
    }


def test_sites_given_up_are_no_errors_of_pages(world: World) -> None:
    (errors,) = rows(world.folder, "select errors from progress order by rowid desc limit 1")[0]
    assert world.summary["errors"] == errors < len(NOWHERE) and "dns" not in world.summary["errors_by_kind"]


def test_links_left_out_are_counted_over_all_runs(world: World) -> None:
    before, after = world.left_out, world.summary["links_left_out"]
    assert before == world.broken_off["links_left_out"] and set(before) <= set(after) == {"host", "exclude"}
    assert before["host"] > 0 and all(after[reason] >= links for reason, links in before.items())
    assert sum(after.values()) > sum(before.values())


def test_the_view_of_a_resumed_crawl_goes_on_from_what_was_counted(world: World) -> None:
    first = world.shown[0]
    for shown, before, after in (
        (first.given_up, world.broken_off["sites_given_up_by_kind"], KINDS),
        (first.left_out, world.left_out, world.summary["links_left_out"]),
    ):
        assert before and all(number <= dict(shown)[what] <= after[what] for what, number in before.items())


def test_the_closing_lines_say_it(world: World) -> None:
    said = closing_lines(world.summary, world.folder)
    assert (
        f"\nsites given up: {len(NOWHERE)} (no address), 1 (no address that may be connected to), 1 (failed visits)"
        in said
    )
    assert f"{world.summary['links_left_out']['host']:,} (another host)" in said
    nothing = {**world.summary, "sites_given_up": 0, "sites_given_up_by_kind": {}, "links_left_out": {}}
    assert closing_lines(nothing, world.folder).count("\n") == said.count("\n") - 2


def test_status_says_it(world: World, capsys: Captured) -> None:
    assert run(["status", str(world.folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["given_up"] == KINDS and found["left_out"] == world.summary["links_left_out"]
    assert run(["status", str(world.folder)]) == 0
    said = capsys.readouterr().out
    assert f"\nsites given up        {len(NOWHERE)} (no address), " in said and "(an --exclude fits)" in said


@pytest.mark.parametrize(
    ("what", "begins", "why"),
    [
        (NOWHERE[0], "given up", "no such name"),
        (f"{NOWHERE[1]}/", "its site was given up", "no such name"),
        (REFUSED, "given up", "its address 0.0.0.0 is refused: unspecified"),
        (DEAF, "given up", "1 failed visit in a row"),
    ],
)
def test_explain_says_why_of_one(world: World, what: str, begins: str, why: str, capsys: Captured) -> None:
    assert run(["explain", str(world.folder), what]) == 0
    said = capsys.readouterr().out
    assert re.search(rf"  {begins} (when|.* s after) the crawl began: {re.escape(why)}\n", said)
    assert "last commit" not in said and ("never visited" in said) == (what in (NOWHERE[0], REFUSED))


@pytest.mark.parametrize(
    ("url", "why"), [("http://elsewhere.test/a", "another host"), ("{seed}p/3", "an --exclude fits")]
)
def test_explain_says_why_a_page_is_left_out(world: World, url: str, why: str, capsys: Captured) -> None:
    ((seed,),) = rows(world.folder, "select url from page where id = 0")
    assert run(["explain", str(world.folder), url.format(seed=seed)]) == 2
    assert capsys.readouterr().err.endswith(f"does not know this page; it leaves out links to it: {why}\n")


def test_the_report_has_numbers_and_the_first_names(world: World) -> None:
    page = live_page(live_record(world.folder))
    assert f"known, {sum(KINDS.values())} given up" in page and "<h2>Sites given up</h2>" in page
    assert f"The first {MOST_GIVEN_UP} of {sum(KINDS.values())}." in page
    assert page.count('<td class="why">no such name</td>') >= MOST_GIVEN_UP - 2
    assert "<caption>Links left out</caption>" in page and "another host" in page
