"""Several real processes fetch the same pages as one process, each once and politely, whatever happens to one of them."""

import json
import os
import shutil
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.crawling import name_server
from tests.effort import slow
from tests.fetch.name_server import Name
from tests.parallel.processes_world import (
    PAGES,
    PROMISE,
    SITES,
    crawl,
    fetched,
    has,
    meanwhile,
    requests_of_pages,
    rows,
    served,
    wait_for,
)
from trapline.cli import run
from trapline.crawler.files.lock import holder
from trapline.crawler.files.status_file import read_status
from trapline.frontier import FETCHED
from trapline.parallel.folder.manifest import read
from trapline.testweb import check

Captured = pytest.CaptureFixture[str]
PARTS = 3  # so that the finder of a site, its registrar and its owner may be three partitions


def urls_of(links: bytes, pages: dict[int, str]) -> set[str]:
    return {pages[int.from_bytes(links[at : at + 4], "little")] for at in range(0, len(links), 4)}


def web_found(folder: Path) -> dict[str, set[str]]:
    """Return the links of each page, by URL."""
    pages: dict[int, str] = dict(rows(folder, "select id, url from page"))
    return {
        pages[page]: urls_of(links, pages)
        for page, links in rows(folder, f"select page, links from fetch where result = {FETCHED}")
    }


def test_the_processes_fetch_what_one_process_fetches_each_page_once(tmp_path: Path) -> None:
    alone, together = tmp_path / "alone", tmp_path / "together"
    with served(tmp_path) as (_, arguments):
        assert crawl(*arguments, "-o", alone) == 0
    with served(tmp_path) as (server, arguments):
        assert crawl(*arguments, "-o", together, "--processes", PARTS) == 0
        findings = check(server.log(), PROMISE)
        assert requests_of_pages(server) == Counter(range(PAGES))
    assert (findings.overlaps, findings.early, findings.disallowed) == ([], [], [])
    assert {_path(url): n for url, n in fetched(together).items()} == {_path(url): 1 for url in fetched(alone)}
    assert _paths(web_found(together)) == _paths(web_found(alone))
    check_summaries(alone, together)
    check_parts(together)
    check_live_status(alone, together)


def _path(url: str) -> str:
    """Return the path without the port, which differs from web to web."""
    return url.partition("://")[2].replace(":" + url.split(":")[2].partition("/")[0], "")


def _paths(web: dict[str, set[str]]) -> dict[str, set[str]]:
    return {_path(url): set(map(_path, links)) for url, links in web.items()}


def check_live_status(alone: Path, together: Path) -> None:
    """Check what the crawls have left in live/status: the coordinator has written the whole folder's, each partition its own."""
    one, every = read_status(alone), read_status(together)
    parts = [read_status(part) for part in read(together).parts]
    assert one is not None and one["stopped_by"] == "drained" and one["partitions"] is None
    assert every is not None and every["stopped_by"] == "drained" and not every["failure"]
    assert [part["partition"] for part in every["partitions"]] == [0, 1, 2]
    assert every["connections"]["limit"] == PARTS * one["connections"]["limit"]
    assert all(part is not None and part["phase"] == "closing" and part["partitions"] is None for part in parts)


def check_summaries(alone: Path, together: Path) -> None:
    one, other = (json.loads((folder / "summary.json").read_text()) for folder in (alone, together))
    same = (
        "pages_fetched",
        "errors",
        "bytes",
        "links",
        "sites",
        "urls_known",
        "statuses",
        "types",
        "requests",
        "stopped_by",
    )
    assert {name: other[name] for name in same} == {name: one[name] for name in same}
    assert (other["stopped_by"], other["politeness_violations"]) == ("drained", 0)


def check_parts(folder: Path) -> None:
    """Check that every partition fetched its share, and that all sent batches arrived."""
    parts = read(folder).parts
    assert all(sum(fetched(part).values()) > 0 for part in parts)
    traffic = [
        {id: (made, got) for id, made, got in rows(part, "select id, made, received from partition")} for part in parts
    ]
    for sender in range(PARTS):
        for receiver in set(range(PARTS)) - {sender}:
            assert traffic[sender][receiver][0] == traffic[receiver][sender][1] > 0


@slow
def test_a_partition_without_a_page_to_fetch_visits_no_site(tmp_path: Path) -> None:
    """A goal is divided step by step. A partition starts a visit only if it may fetch a page. Otherwise the site would be delayed for
    nothing."""
    with served(tmp_path) as (server, arguments):
        seeds = tmp_path / "seeds"
        seeds.write_text("".join(f"{url}\n" for url in server.seed_urls))
        arguments = ["--seeds", str(seeds), *arguments[1:]]
        assert crawl(*arguments, "-o", tmp_path / "c", "--processes", PARTS, "--max-pages", 5) == 0
        assert sum(requests_of_pages(server).values()) == 5 < SITES
        assert len(set(server.log().site.tolist())) <= 5


@slow
def test_a_killed_partition_is_restarted_and_nothing_is_lost(tmp_path: Path) -> None:
    """Sites on one address have one visitor, although their addresses are not known before name servers are asked."""
    folder = tmp_path / "c"
    victim = folder / "partition-1"
    killed: list[int] = []

    def kill() -> None:
        wait_for(lambda: has(victim, 12))
        process = holder(victim)
        assert process is not None
        os.kill(process, signal.SIGKILL)
        killed.append(process)

    with served(tmp_path, latency_s=0.02) as (server, arguments):
        names = {name: Name((address,)) for name, address in server.hosts.items()}
        without_hosts = [arg for at, arg in enumerate(arguments) if "--hosts" not in arguments[max(at - 1, 0) : at + 1]]
        with name_server(names) as where, meanwhile(kill):
            assert crawl(*without_hosts, "--nameserver", where, "-o", folder, "--processes", PARTS) == 0
        requests, findings = requests_of_pages(server), check(server.log(), PROMISE)
    assert killed
    assert set(fetched(folder).values()) == {1}  # a repeated request was not committed before
    assert len(fetched(folder)) == PAGES == len(requests)
    assert (findings.overlaps, findings.early) == ([], [])
    twice = [page for page, times in requests.items() if times > 1]
    assert len(twice) < sum(fetched(victim).values()) - 12 + 1
    assert all(server.web.url(page) in fetched(victim) for page in twice)
    assert rows(victim, "select value from meta where key = 'runs'") == [("2",)]
    check_owners(folder, set(server.hosts.values()))


def check_owners(folder: Path, addresses: set[str]) -> None:
    parts = read(folder).parts
    visited = [{address for (address,) in rows(part, "select distinct address from fetch")} for part in parts]
    assert all(visited)
    assert sorted(address for own in visited for address in own) == sorted(addresses)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """Return a crawl that stopped at its goal of pages, and its number of pages."""
    place = tmp_path_factory.mktemp("stopped")
    folder = place / "c"
    with served(place) as (server, arguments):
        assert crawl(*arguments, "-o", folder, "--processes", PARTS, "--max-pages", 31) == 0
        assert sum(fetched(folder).values()) == 31 == sum(requests_of_pages(server).values())
    return folder, 31


def check_stopped(folder: Path, pages: int, runs: int) -> None:
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["pages_fetched"], summary["runs"], summary["stopped_by"]) == (pages, runs, "max-pages")
    assert max(fetched(folder).values()) == 1


def test_a_goal_holds_for_all_partitions_together(stopped: tuple[Path, int]) -> None:
    check_stopped(*stopped, runs=1)


@slow
def test_a_resume_continues_to_a_higher_goal(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    with served(tmp_path) as (server, arguments):
        assert crawl(*arguments, "-o", folder, "--processes", PARTS, "--max-pages", 31) == 0
        assert crawl("--resume", folder) == 0  # nothing to do
        assert sum(requests_of_pages(server).values()) == 31
        assert crawl("--resume", folder, "--max-pages", 60, "--processes", PARTS) == 0
        assert sum(fetched(folder).values()) == 60 == sum(requests_of_pages(server).values())
    check_stopped(folder, 60, runs=2)


def test_status_covers_all_partitions(stopped: tuple[Path, int], capsys: Captured) -> None:
    folder, pages = stopped
    assert run(["status", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["state"], found["pages"], found["stopped_by"]) == ("ended", pages, "max-pages")
    assert found["known"] == rows(folder, "select count(*) from page")[0][0]


def test_a_report_covers_all_partitions(stopped: tuple[Path, int]) -> None:
    folder, _ = stopped
    assert run(["report", str(folder)]) == 0
    text = (folder / "report.html").read_text()
    assert "No rule was broken" in text and f", {PARTS} partitions; began " in text
    for (origin,) in rows(
        folder, "select distinct origin from fetch join page on page.id = page join site on site.id = site"
    ):
        assert origin in text


def test_any_page_is_explained(stopped: tuple[Path, int], capsys: Captured) -> None:
    folder, _ = stopped
    waiting = "select url from page where id not in (select page from fetch)"
    for part in read(folder).parts:
        assert run(["explain", str(folder), rows(part, waiting)[0][0]]) == 0
        assert "  its site: " in capsys.readouterr().out
        assert run(["explain", str(folder), next(iter(fetched(part)))]) == 0
        assert "fetch " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["--resume", "{folder}", "--processes", "1"], "is a crawl of 3 processes; it can grow, but not shrink"),
        (["--resume", "{folder}/partition-1"], "is one partition of the crawl in"),
        (["http://a.test/", "-o", "{folder}"], "exists and holds a crawl"),
        (["http://a.test/", "-o", "{folder}", "--processes", "2"], "exists and holds a crawl"),
    ],
)
def test_impossible_commands_are_refused_in_one_line(
    stopped: tuple[Path, int], args: list[str], complaint: str, capsys: Captured
) -> None:
    folder, _ = stopped
    before = rows(folder, "select * from meta")
    given = [arg.format(folder=folder) for arg in args]
    assert run(["crawl", *given]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and complaint in lines[0]
    assert rows(folder, "select * from meta") == before


def test_a_partition_cannot_be_resumed_alone_wherever_its_folder_is(
    stopped: tuple[Path, int], tmp_path: Path, capsys: Captured
) -> None:
    shutil.copytree(stopped[0] / "partition-1", tmp_path / "moved")
    assert run(["crawl", "--resume", str(tmp_path / "moved")]) == 2
    assert "is one partition of a crawl of several processes; move this folder back" in capsys.readouterr().err
