"""Real processes that become more: nothing is lost, nothing is fetched twice, and no site has two visitors, whoever is killed on the way.

That a site rests also when it moves is not seen here: it takes longer to start a process than it has to rest. test_growing.py sees it,
in virtual time.
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
from trapline.crawl.files.lock import holder
from trapline.parallel.live.manifest import MANIFEST, read
from trapline.testweb import Served, check

Captured = pytest.CaptureFixture[str]


def check_whole(folder: Path, server: Served) -> None:
    """All pages, each once in the database of all, and one visitor at a time."""
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
def test_two_become_three_and_then_five(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "c"
    with served(tmp_path) as (server, told):
        assert crawl(*told, "-o", folder, "--processes", 2, "--max-pages", 30) == 0
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
    """The two that it does not know of would never be asked what they have."""
    was = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**was, "sizes": [2, 3], "stopped_by": ""}))
    capsys.readouterr()
    assert crawl("--resume", folder) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "partition-0: belongs to a crawl of 5 processes or more, not of 3; restore parallel.json" in line


def check_explained(folder: Path, capsys: Captured) -> None:
    """Of a page that has moved and waits, what its present owner knows."""
    moved = {url for (url,) in rows(folder / "partition-2", "select url from page")}
    had = fetched(folder)
    waiting = [url for url in moved if url not in had]
    before = [url for url in moved if url in had and url not in fetched(folder / "partition-2")]
    assert waiting and before
    capsys.readouterr()
    assert run(["explain", str(folder), waiting[0]]) == 0
    assert "at the last commit: waiting" in capsys.readouterr().out
    assert run(["explain", str(folder), before[0]]) == 0
    assert "fetched" in capsys.readouterr().out


@slow
def test_who_is_killed_while_it_hands_over_or_takes_over_loses_nothing(tmp_path: Path) -> None:
    """Nobody knows the addresses of sites before name servers are asked: registrars move too."""
    folder = tmp_path / "c"
    with served(tmp_path) as (server, told):
        names = {name: Name((address,)) for name, address in server.hosts.items()}
        without_hosts = [arg for at, arg in enumerate(told) if "--hosts" not in told[max(at - 1, 0) : at + 1]]
        with name_server(names) as where:
            told = [*without_hosts, "--nameserver", where]
            assert crawl(*told, "-o", folder, "--processes", 2, "--max-pages", 40) == 0
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
    """An old one as soon as it runs again, then a new one, then an old one that has perhaps handed over."""

    def kill() -> None:
        for number in (0, 2, 1, 3):
            wait_for(partial(kill_worker, folder / f"partition-{number}"))

    return kill


def kill_worker(part: Path) -> bool:
    """The process that crawls there, if it is a child of ours: a lock that was just taken still has the number of whoever had it before,
    which may be anybody's by now, or 0, which would be all of us."""
    process = holder(part)
    try:
        is_ours = bool(process) and f"\nPPid:\t{os.getpid()}\n" in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False
    if process and is_ours:
        os.kill(process, signal.SIGKILL)
    return is_ours
