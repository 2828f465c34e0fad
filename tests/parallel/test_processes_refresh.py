"""Several processes that fetch pages again: each its own, and each hears what is told of its own sites and nothing else."""

import json
import time
from pathlib import Path

import pytest

from tests.parallel.processes_world import crawl, fetched, has, meanwhile, rows, wait_for
from tests.testweb.changing import changing_web
from trapline.cli import run
from trapline.cli.refresh_serve import sites_of
from trapline.fetch.hosts import hosts_text
from trapline.parallel.manifest import read
from trapline.signals.inbox import CHANGED, Inbox, Signal
from trapline.testweb import serve

Captured = pytest.CaptureFixture[str]
SITES = 6
SECONDS = 5


def ping(folder: Path, urls: list[str]) -> None:
    inbox, now = Inbox(folder), time.time()
    inbox.put([Signal(0, now, "indexnow", url, CHANGED, now, 1.0, True) for url in urls])
    inbox.close()


def test_each_fetches_its_own_pages_again_and_hears_of_its_own_sites(tmp_path: Path, capsys: Captured) -> None:
    folder, hosts = tmp_path / "c", tmp_path / "hosts"
    with serve(changing_web(1.0, sites=SITES)) as server:
        homes = server.seed_urls
        hosts.write_text(hosts_text({name: [address] for name, address in server.hosts.items()}))

        def tell() -> None:
            wait_for(lambda: all(has(folder / f"partition-{at}", 1) for at in range(2)))
            ping(folder, [*homes, "http://nobody.test/"])

        told = ["--allow-private", "--hosts", hosts, "--delay", 0.05, "--pause", 0, "--max-time", SECONDS]
        with meanwhile(tell):
            assert crawl(*homes, *told, "--continuous", "--processes", 2, "-o", folder) == 0
    parts = read(folder).parts
    heard = [
        {url for (url,) in rows(part, "select url from signal join page on page.id = signal.page where signal.id > 0")}
        for part in parts
    ]
    assert sorted(url for urls in heard for url in urls) == sorted(homes)
    assert all(urls and urls <= set(fetched(part)) for urls, part in zip(heard, parts, strict=True))
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["pages_fetched"] == len(fetched(folder)) == 4 * SITES
    assert summary["pages_refetched"] > 4 * SITES and summary["pages_changed"] > 0
    assert (summary["stopped_by"], summary["politeness_violations"]) == ("max-seconds", 0)
    # Two links each time, those to the other partition too.
    assert rows(folder, "select distinct length(links) / 4, found from fetch where result = 3 and status != 304") == [
        (2, 2)
    ]
    check_readers(folder, homes[0], capsys)


def check_readers(folder: Path, home: str, capsys: Captured) -> None:
    sites = sites_of(folder)
    assert len(sites(-1)) == SITES and sites(SITES - 1) == []
    capsys.readouterr()
    assert run(["explain", str(folder), home]) == 0
    assert "by residual-life: worth" in capsys.readouterr().out
    assert run(["report", str(folder)]) == 0
    assert "indexnow" in (folder / "report.html").read_text()
