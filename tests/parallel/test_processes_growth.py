"""A crawl of real processes grows: nothing is lost, no page is fetched twice, and no site has two visitors, even if processes are
killed.

These tests do not show that a site keeps its delay when it moves, because starting a process takes longer than the delay.
test_handover.py shows it in virtual time.
"""

import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from functools import partial
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
    meanwhile,
    requests_of_pages,
    rows,
    served,
    wait_for,
)
from trapline.cli import run
from trapline.crawler.files.lock import holder
from trapline.parallel.folder.manifest import MANIFEST, read
from trapline.testweb import Served, check

Captured = pytest.CaptureFixture[str]


def check_whole(folder: Path, server: Served) -> None:
    """Check that the merged database has each page once, and that each site had one visitor at a time."""
    assert check(server.log(), PROMISE).overlaps == []
    assert set(requests_of_pages(server)) == set(range(PAGES))
    assert set(fetched(folder).values()) == {1}
    assert len(fetched(folder)) == PAGES
    assert rows(folder, "select count(*), count(distinct url), max(id) from page") == [(PAGES, PAGES, PAGES - 1)]
    assert rows(folder, "select count(*) - count(distinct origin) from site") == [(0,)]
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["pages_fetched"], summary["urls_known"], summary["stopped_by"]) == (PAGES, PAGES, "drained")
    assert summary["politeness_violations"] == 0
    assert rows(folder, "select known, sites, waiting from progress order by rowid desc limit 1") == [(PAGES, SITES, 0)]


@slow
def test_two_partitions_become_three_and_then_five(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "c"
    with served(tmp_path) as (server, arguments):
        assert crawl(*arguments, "-o", folder, "--processes", 2, "--max-pages", 30) == 0
        assert crawl("--resume", folder, "--processes", 3, "--max-pages", 70) == 0
        assert sum(fetched(folder).values()) == 70
        check_explained(folder, capsys)
        assert crawl("--resume", folder, "--processes", 5, "--max-pages", 100_000) == 0
        assert requests_of_pages(server) == Counter(range(PAGES))
        check_whole(folder, server)
    assert read(folder).sizes == (2, 3, 5)
    assert sum(any(fetched(part).values()) for part in read(folder).parts[2:]) >= 2
    assert max(len(set(fetched(part))) for part in read(folder).parts) < PAGES
    check_older_manifest_is_refused(folder, capsys)


def check_older_manifest_is_refused(folder: Path, capsys: Captured) -> None:
    """The older manifest does not know the two new partitions, so their pages would be missing."""
    was = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**was, "sizes": [2, 3], "stopped_by": ""}))
    capsys.readouterr()
    assert crawl("--resume", folder) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "partition-0: belongs to a crawl of 5 processes or more, not of 3; restore parallel.json" in line


def check_explained(folder: Path, capsys: Captured) -> None:
    """Check that `explain` shows what the present owner knows of a page that has moved and waits."""
    moved = {url for (url,) in rows(folder / "partition-2", "select url from page")}
    fetch_counts = fetched(folder)
    waiting = [url for url in moved if url not in fetch_counts]
    before = [url for url in moved if url in fetch_counts and url not in fetched(folder / "partition-2")]
    assert waiting and before
    capsys.readouterr()
    assert run(["explain", str(folder), waiting[0]]) == 0
    assert "at the last commit: waiting" in capsys.readouterr().out
    assert run(["explain", str(folder), before[0]]) == 0
    assert "fetched" in capsys.readouterr().out


@slow
def test_a_partition_that_is_killed_during_the_hand_over_loses_nothing(tmp_path: Path) -> None:
    """The addresses of sites are not known before name servers are asked, so registrars move too."""
    folder = tmp_path / "c"
    with served(tmp_path) as (server, arguments):
        names = {name: Name((address,)) for name, address in server.hosts.items()}
        without_hosts = [arg for at, arg in enumerate(arguments) if "--hosts" not in arguments[max(at - 1, 0) : at + 1]]
        with name_server(names) as where:
            arguments = [*without_hosts, "--nameserver", where]
            assert crawl(*arguments, "-o", folder, "--processes", 2, "--max-pages", 40) == 0
            with meanwhile(killer(folder)):
                assert crawl("--resume", folder, "--processes", 4, "--max-pages", 100_000) == 0
        check_whole(folder, server)
    parts = read(folder).parts
    visited = [{address for (address,) in rows(part, "select distinct address from fetch")} for part in parts]
    assert any(visited[2] | visited[3])
    assert {
        (sender, ended) for part in parts[2:] for sender, ended in rows(part, "select id, ended from partition")
    } >= {
        (0, 1),
        (1, 1),
    }


def killer(folder: Path) -> Callable[[], None]:
    """Return a function that kills an old partition as soon as it runs again, then a new one, then an old one that may have handed
    over."""

    def kill() -> None:
        for number in (0, 2, 1, 3):
            wait_for(partial(kill_worker, folder / f"partition-{number}"))

    return kill


def kill_worker(part: Path) -> bool:
    """Kill the worker of this folder if it is our child. A new lock may still contain the process id of its previous holder. That id
    may belong to any process by now, or be 0, which would kill all of us."""
    process = holder(part)
    try:
        is_ours = bool(process) and f"\nPPid:\t{os.getpid()}\n" in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False
    if process and is_ours:
        os.kill(process, signal.SIGKILL)
    return is_ours
