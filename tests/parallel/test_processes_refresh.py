"""Several processes refetch pages. Each refetches its own pages and reads the signals of its own sites only. When the crawl grows, the
new owner of a page continues where the old one was."""

import gzip
import json
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from tests.effort import slow
from tests.parallel.processes_world import crawl, fetched, has, meanwhile, rows, wait_for
from tests.testweb.changing import changing_web
from trapline.cli import run
from trapline.cli.refresh.serve import sites_of
from trapline.crawler.files.reading import Reading
from trapline.crawler.files.resume import refresher_of
from trapline.errors import ConfigError
from trapline.fetch.dns import hosts_text
from trapline.parallel.folder.folder_status import status_of_folder
from trapline.parallel.folder.manifest import MANIFEST, read
from trapline.signals.inbox import CHANGED, Inbox, Signal
from trapline.testweb import Behaviour, Promise, check, serve

Captured = pytest.CaptureFixture[str]
SITES = 6
SECONDS = 5


def ping(folder: Path, urls: list[str]) -> None:
    inbox, now = Inbox(folder), time.time()
    inbox.put([Signal(0, now, "indexnow", url, CHANGED, now, 1.0, True) for url in urls])
    inbox.close()


@slow
def test_each_partition_refetches_its_own_pages_and_reads_signals_of_its_own_sites(
    tmp_path: Path, capsys: Captured
) -> None:
    folder, hosts = tmp_path / "c", tmp_path / "hosts"
    with serve(changing_web(1.0, sites=SITES)) as server:
        homes = server.seed_urls
        hosts.write_text(hosts_text({name: [address] for name, address in server.hosts.items()}))

        def send_pings() -> None:
            wait_for(lambda: all(has(folder / f"partition-{at}", 1) for at in range(2)))
            ping(folder, [*homes, "http://nobody.test/"])

        options = ["--allow-private", "--hosts", hosts, "--delay", 0.05, "--pause", 0, "--max-time", SECONDS]
        with meanwhile(send_pings):
            assert crawl(*homes, *options, "--continuous", "--processes", 2, "-o", folder) == 0
    parts = read(folder).parts
    signalled = [
        {url for (url,) in rows(part, "select url from signal join page on page.id = signal.page where signal.id > 0")}
        for part in parts
    ]
    assert sorted(url for urls in signalled for url in urls) == sorted(homes)
    assert all(urls and urls <= set(fetched(part)) for urls, part in zip(signalled, parts, strict=True))
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["pages_fetched"] == len(fetched(folder)) == 4 * SITES
    assert summary["pages_refetched"] > 4 * SITES and summary["pages_changed"] > 0
    assert (summary["stopped_by"], summary["politeness_violations"]) == ("max-time", 0)
    # Two links each time, including those to the other partition.
    assert rows(folder, "select distinct length(links) / 4, found from fetch where result = 3 and status != 304") == [
        (2, 2)
    ]
    check_readers(folder, homes[0], capsys)


def check_readers(folder: Path, home: str, capsys: Captured) -> None:
    sites = sites_of(folder)
    assert len(sites(-1)) == SITES and sites(SITES - 1) == []
    capsys.readouterr()
    assert run(["explain", str(folder), home]) == 0
    assert "policy residual-life: value of a refetch now" in capsys.readouterr().out
    assert run(["report", str(folder)]) == 0
    assert "indexnow" in (folder / "report.html").read_text()


MANY = 16  # sites
FIRST_S, ALL_S, ENOUGH = 3, 9, 20  # seconds; fetches of a new partition
PROMISE = Promise(0.05, 4, 0.0)


@slow
def test_the_new_owner_of_a_page_continues_when_the_crawl_grows(tmp_path: Path, capsys: Captured) -> None:
    """The crawl grows from two to three partitions after a stop, and to four while it runs."""
    folder, hosts = tmp_path / "c", tmp_path / "hosts"
    with serve(changing_web(8.0, Behaviour(validators="honest"), sites=MANY)) as server:
        homes = server.seed_urls
        hosts.write_text(hosts_text({name: [address] for name, address in server.hosts.items()}))
        options = [
            "--allow-private",
            "--hosts",
            hosts,
            "--delay",
            0.05,
            "--pause",
            0,
            "--per-connection",
            4,
            "--continuous",
        ]
        options += ["--refresh-rate", 60, "--no-sitemaps"]

        def send_pings() -> None:
            wait_for(lambda: all(has(folder / f"partition-{at}", 1) for at in range(2)))
            ping(folder, homes)

        with meanwhile(send_pings):
            assert crawl(*homes, *options, "--max-time", FIRST_S, "--processes", 2, "-o", folder) == 0
        stopped = time.time()
        ping(folder, homes)

        def resize() -> None:
            wait_for(lambda: has(folder / "partition-2", ENOUGH))
            assert run(["parallel", "resize", str(folder), "4"]) == 0

        with meanwhile(resize):
            assert crawl("--resume", folder, "--processes", 3, "--max-time", ALL_S) == 0
        findings = check(server.log(), PROMISE)
        assert (findings.overlaps, findings.early) == ([], [])
    assert read(folder).sizes == (2, 3, 4)
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["pages_fetched"], summary["politeness_violations"]) == (4 * MANY, 0)
    check_one_owner(folder, stopped)
    check_evidence(folder)
    check_conditions(folder)
    check_signals(folder, homes)
    check_moved_readers(folder, homes, capsys)


def owners(folder: Path) -> dict[str, int]:
    """Return the owner of each page. A page moves only to a later partition."""
    parts = enumerate(read(folder).parts)
    return {url: number for number, part in parts for (url,) in rows(part, "select url from page")}


def fetches(part: Path, which: str = "result = 3") -> list[tuple[str, float]]:
    return rows(part, f"select url, started from fetch join page on page.id = fetch.page where {which} order by seq")


def check_one_owner(folder: Path, stopped: float) -> None:
    """Check that each page was fetched by one partition at a time, to the end."""
    owner, parts = owners(folder), read(folder).parts
    assert len(owner) == 4 * MANY and {2, 3} <= set(owner.values())
    last = {
        url: max((at, number) for number, part in enumerate(parts) for it, at in fetches(part) if it == url)
        for url in owner
    }
    assert {url: number for url, (_, number) in last.items()} == owner
    for number, part in enumerate(parts):
        others = [at for one in parts[:number] for url, at in fetches(one) if owner[url] == number]
        own = [at for url, at in fetches(part) if owner[url] == number]
        assert number < 2 or max(others) < min(own) > stopped
    assert {url for part in parts[2:] for url, _ in fetches(part)} == {url for url in owner if owner[url] >= 2}


def check_evidence(folder: Path) -> None:
    """Check that the present owner of a page, and no other, knows every fetch of it."""
    fetch_counts = Counter(url for part in read(folder).parts for url, _ in fetches(part))
    refresh = read(folder).options.refresh
    assert refresh is not None
    found = {}
    for part in read(folder).parts:
        with closing(Reading(part)) as reading:
            refresher, pages = refresher_of(reading, refresh), list(reading.pages())
        assert refresher.started == read(folder).began
        known = {url: refresher.explain(page, refresher.now) for page, _, url in pages if page in refresher}
        assert not known.keys() & found.keys()
        found.update(known)
    assert {url: known["crawls"] + 1 for url, known in found.items()} == fetch_counts
    assert sum(known["changes"] for known in found.values()) == sum(rows(folder, "select total(changed) from fetch")[0])


def check_conditions(folder: Path) -> None:
    """Check the conditions of each request, including the new owner's first one, whose archived answer refers to the record of the old
    owner."""
    newcomers = read(folder).parts[2:]
    assert all(
        rows(part, "select count(*) from fetch where result = 3 and changed is null") == [(0,)] for part in newcomers
    )
    first = [rows(part, "select min(seq), status from fetch where result = 3 group by page") for part in newcomers]
    assert sum(status == 304 for found in first for _, status in found) > 0
    for part in newcomers:
        archives = b"".join(gzip.decompress(file.read_bytes()) for file in sorted((part / "warc").iterdir()))
        revisits = archives.split(b"revisit/server-not-modified")[1:]
        assert revisits and all(b"WARC-Refers-To-Date: " in one[:600] for one in revisits)
    copies = "select count(*) from copy join fetch on fetch.page = copy.page and fetch.started = copy.fetched"
    assert rows(folder, copies) == rows(folder, "select count(*) from copy") == [(4 * MANY,)]


def check_signals(folder: Path, homes: list[str]) -> None:
    """Check that the two partitions read the signals before the stop, and the three read those after it, each signal once."""
    parts, sql = read(folder).parts, "select url from signal join page on page.id = signal.page where signal.id > 0"
    zero, one, two, three = (Counter(url for (url,) in rows(part, sql)) for part in parts)
    moved = Counter(homes) & Counter(url for (url,) in rows(parts[2], "select url from page"))
    assert moved and (two, three) == (moved, Counter())
    assert zero + one == Counter(homes * 2) - moved


def check_moved_readers(folder: Path, homes: list[str], capsys: Captured) -> None:
    owner = owners(folder)
    (home,) = [url for url in homes if owner[url] >= 2][:1]
    capsys.readouterr()
    assert run(["explain", str(folder), home]) == 0
    said = capsys.readouterr().out
    assert (
        "policy residual-life: value of a refetch now" in said
        and "for this page: 2," in said
        and "refetched: never" not in said
    )
    assert run(["report", str(folder)]) == 0
    together = status_of_folder(folder)
    assert together.refresh is not None and together.refresh.endswith("at most 60 a second")
    assert [(together.signals,)] == rows(folder, "select sum(signals) from signal_total") != [(len(homes),)]
    check_beginnings(folder, capsys)


def check_beginnings(folder: Path, capsys: Captured) -> None:
    was = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**was, "began": was["began"] + 1.0}))
    capsys.readouterr()
    assert crawl("--quiet", "--resume", folder, "--max-time", 2 * ALL_S) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"its start time differs from that in {MANIFEST}" in line
    del was["began"]
    (folder / MANIFEST).write_text(json.dumps(was))
    with pytest.raises(ConfigError, match="cannot grow: an earlier version began it"):
        read(folder).grown(5)
