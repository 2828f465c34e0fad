"""Programs that read a crawl count a page once, however often the crawl refetched it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.crawler.crawl_folder import simulated, write_crawl
from trapline.crawler.inspect.audit import audit
from trapline.crawler.inspect.database_reader import open_database
from trapline.crawler.inspect.page_history import found, page_account, site_account
from trapline.crawler.inspect.summary import summary_of, totals_of
from trapline.report.live_record import live_record


@pytest.fixture
def refetched(tmp_path: Path) -> Path:
    """Write a crawl that refetched its first forty pages once. Half of them were unchanged (304), and half had changed."""
    graph, crawl = simulated()
    folder = write_crawl(tmp_path / "c", graph, crawl)
    with closing(sqlite3.connect(folder / "crawl.db")) as database, database:
        names = [row[1] for row in database.execute("pragma table_info(fetch)")][1:]
        other = {"started": "started + 1e6", "visit": "visit + (1 << 40)"}
        for changed, status, where in ((0, 304, "page % 2 = 0"), (1, 200, "page % 2 = 1")):
            other |= {"changed": str(changed), "status": str(status), "links": "links" if changed else "x''"}
            values = ", ".join(other.get(name, name) for name in names)
            database.execute(
                f"insert into fetch select null, {values} from fetch where result = 3 and page < 40 and {where}"
            )
    return folder


def test_a_refetched_page_counts_once(refetched: Path) -> None:
    with closing(open_database(refetched)) as database:
        fetch_counts = dict(database.execute("select page, count(*) from fetch where result = 3 group by page"))
        summary = summary_of(database, audit(database))
        target = found(database, "http://s000000.example")
        site = site_account(database, target)
        of_site = {page for (page,) in database.execute("select id from page where site = ?", (target.site,))}
    assert (
        summary["pages_fetched"] == len(fetch_counts)
        and summary["pages_refetched"] == sum(fetch_counts.values()) - len(fetch_counts) > 30
    )
    assert summary["pages_changed"] + summary["pages_unchanged"] == summary["pages_refetched"]
    assert summary["not_modified"] == summary["pages_unchanged"] > 10
    assert site.fetched == len(fetch_counts.keys() & of_site)
    assert sum(row.pages for row in live_record(refetched).sites) == len(fetch_counts)


def test_an_out_of_band_fetch_counts_neither_as_a_page_nor_as_unanswered(refetched: Path) -> None:
    """A page was fetched out of band because another site's robots.txt redirects to it."""
    with closing(sqlite3.connect(refetched / "crawl.db")) as database, database:
        before = totals_of(database)
        names = [row[1] for row in database.execute("pragma table_info(fetch)")][1:]
        other = {"started": "started + 2e6", "visit": "visit + (1 << 41)", "result": "-1", "links": "x''"}
        values = ", ".join(other.get(name, name) for name in names)
        database.execute(f"insert into fetch select null, {values} from fetch where result = 3 and page = 7 limit 1")
        after = totals_of(database)
    assert {key for key in before if before[key] != after[key]} == {"fetches", "bytes"}


def test_the_discoverer_of_a_page_does_not_change(refetched: Path) -> None:
    with closing(open_database(refetched)) as database:
        rows = database.execute("select page, started + total_s, links from fetch where result = 3").fetchall()
        first: dict[int, tuple[float, int]] = {}
        for source, at, links in sorted(rows, key=lambda row: row[1]):
            for target in np.frombuffer(links, "<i4").tolist():
                if target != source:
                    first.setdefault(target, (at, source))
        for page in list(first)[:20]:
            (url,) = database.execute("select url from page where id = ?", (page,)).fetchone()
            discovery = page_account(database, found(database, url)).discovery
            assert discovery is not None and discovery.at == first[page][0]
