"""Abandoned sites and rejected links, with reasons: in the summary, `status`, `explain`, the report and the closing lines, and after a
resume."""

import json
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.crawling import name_server
from tests.crawler.kill_world import options_of, rows, served
from trapline.cli import run
from trapline.cli.crawl.end import closing_lines
from trapline.crawler.engine.options import live_rules
from trapline.crawler.engine.run import open_crawl, resume_crawl
from trapline.crawler.engine.status import CrawlStatus
from trapline.crawler.inspect.database_reader import open_database
from trapline.crawler.inspect.summary import rejected_links_of
from trapline.report.live_page import live_page
from trapline.report.live_record import MOST_ABANDONED, live_record

Captured = pytest.CaptureFixture[str]
NOWHERE = [f"http://nowhere{number}.test" for number in range(MOST_ABANDONED + 20)]
REFUSED = "http://0.0.0.0"  # --allow-private does not allow it either
DEAF = "http://127.0.0.9:9"  # nothing listens there
KINDS = {"dns": len(NOWHERE), "address": 1, "visits": 1}


class World(NamedTuple):
    folder: Path
    broken_off: dict[str, Any]  # the summary when the goal is reached
    rejected_links: dict[str, int]  # rejected links at that time
    summary: dict[str, Any]  # the summary at the end
    shown: list[CrawlStatus]  # since the resume


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Crawl some hosts, many of them unreachable. Stop the crawl and resume it."""
    folder, shown = tmp_path_factory.mktemp("crawls") / "c", list[CrawlStatus]()
    with served(300, 12) as server, name_server({}) as nameserver:
        options = options_of(
            server,
            seeds=(*server.seed_urls[:3], *(f"{site}/" for site in (REFUSED, DEAF, *NOWHERE))),
            nameservers=(nameserver,),
            rules=live_rules(delay_s=0.0, backoff_s=0.0),
            scope="host",
            exclude=("/p/3",),
            abandon=1,
            pause_s=0.0,
            max_pages=20,
        )
        broken_off = open_crawl(options, folder, nullcontext(lambda standing: None))
        with closing(open_database(folder)) as database:
            rejected_links = rejected_links_of(database)
        summary = resume_crawl(folder, nullcontext(shown.append), max_pages=1e9)
        yield World(folder, broken_off, rejected_links, summary, shown)


def test_a_site_is_abandoned_once_with_a_reason(world: World) -> None:
    assert world.summary["abandoned_sites_by_kind"] == KINDS and world.summary["abandoned_sites"] == sum(KINDS.values())
    reasons = {origin: (kind, why) for origin, kind, why in rows(
        world.folder, "select origin, kind, why from abandoned_site join site on site.id = abandoned_site.site"
    )}  # fmt: skip
    assert [reasons.pop(site) for site in NOWHERE] == [("dns", "no such name")] * len(NOWHERE)
    assert reasons == {
        REFUSED: ("address", "its address 0.0.0.0 is refused: unspecified"),
        DEAF: ("visits", "1 failed visit in a row"),
    }


def test_abandoned_sites_are_not_counted_as_errors_of_pages(world: World) -> None:
    (errors,) = rows(world.folder, "select errors from progress order by rowid desc limit 1")[0]
    assert world.summary["errors"] == errors < len(NOWHERE) and "dns" not in world.summary["errors_by_kind"]


def test_rejected_links_are_counted_over_all_runs(world: World) -> None:
    before, after = world.rejected_links, world.summary["rejected_links"]
    assert before == world.broken_off["rejected_links"] and set(before) <= set(after) == {"host", "exclude"}
    assert before["host"] > 0 and all(after[reason] >= links for reason, links in before.items())
    assert sum(after.values()) > sum(before.values())


def test_the_view_of_a_resumed_crawl_continues_the_counts(world: World) -> None:
    first = world.shown[0]
    for shown, before, after in (
        (first.abandoned_sites, world.broken_off["abandoned_sites_by_kind"], KINDS),
        (first.rejected_links, world.rejected_links, world.summary["rejected_links"]),
    ):
        assert before and all(number <= dict(shown)[what] <= after[what] for what, number in before.items())


def test_the_closing_lines_show_them(world: World) -> None:
    said = closing_lines(world.summary, world.folder)
    assert (
        f"\nabandoned sites: {len(NOWHERE)} (no address), 1 (no address that may be connected to), 1 (failed visits)"
        in said
    )
    assert f"{world.summary['rejected_links']['host']:,} (another host)" in said
    nothing = {**world.summary, "abandoned_sites": 0, "abandoned_sites_by_kind": {}, "rejected_links": {}}
    assert closing_lines(nothing, world.folder).count("\n") == said.count("\n") - 2


def test_status_shows_them(world: World, capsys: Captured) -> None:
    assert run(["status", str(world.folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["abandoned_sites"] == KINDS and found["rejected_links"] == world.summary["rejected_links"]
    assert run(["status", str(world.folder)]) == 0
    said = capsys.readouterr().out
    assert f"\nabandoned sites       {len(NOWHERE)} (no address), " in said and "(an --exclude fits)" in said


@pytest.mark.parametrize(
    ("what", "begins", "why"),
    [
        (NOWHERE[0], "abandoned", "no such name"),
        (f"{NOWHERE[1]}/", "its site was abandoned", "no such name"),
        (REFUSED, "abandoned", "its address 0.0.0.0 is refused: unspecified"),
        (DEAF, "abandoned", "1 failed visit in a row"),
    ],
)
def test_explain_gives_the_reason_for_a_site(world: World, what: str, begins: str, why: str, capsys: Captured) -> None:
    assert run(["explain", str(world.folder), what]) == 0
    said = capsys.readouterr().out
    assert re.search(rf"  {begins} (when|.* s after) the crawl began: {re.escape(why)}\n", said)
    assert "last commit" not in said and ("never visited" in said) == (what in (NOWHERE[0], REFUSED))


@pytest.mark.parametrize(
    ("url", "why"), [("http://elsewhere.test/a", "another host"), ("{seed}p/3", "an --exclude fits")]
)
def test_explain_gives_the_reason_for_a_rejected_url(world: World, url: str, why: str, capsys: Captured) -> None:
    ((seed,),) = rows(world.folder, "select url from page where id = 0")
    assert run(["explain", str(world.folder), url.format(seed=seed)]) == 2
    assert capsys.readouterr().err.endswith(
        f"does not know this page, because its rules reject the URL (reason: {why})\n"
    )


def test_explain_names_links_that_were_left_out_whatever_their_urls(
    world: World, tmp_path: Path, capsys: Captured
) -> None:
    shutil.copytree(world.folder, tmp_path / "c")
    with closing(sqlite3.connect(tmp_path / "c" / "crawl.db")) as database, database:
        database.execute("insert into rejected_link values ('too many', 1234)")
        ((seed,),) = database.execute("select url from page where id = 0").fetchall()
    assert run(["explain", str(tmp_path / "c"), f"{seed}unheard-of"]) == 2
    hint = "it may be one of the rejected links: 1,234 (too many new ones on one page)"
    assert hint in capsys.readouterr().err


def test_a_site_is_found_without_its_port(world: World, capsys: Captured) -> None:
    assert run(["explain", str(world.folder), "127.0.0.9"]) == 0
    assert capsys.readouterr().out.startswith(DEAF)


def test_the_report_shows_the_numbers_and_the_first_names(world: World) -> None:
    page = live_page(live_record(world.folder))
    assert f"known, {sum(KINDS.values())} abandoned" in page and "<h2>Abandoned sites</h2>" in page
    assert f"The first {MOST_ABANDONED} of {sum(KINDS.values())}." in page
    assert page.count('<td class="why">no such name</td>') >= MOST_ABANDONED - 2
    assert "<caption>Rejected links</caption>" in page and "another host" in page
