"""The page of a live crawl: one complete file, safe with any name, bounded in size, and consistent with its numbers."""

import json
import re
import sqlite3
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pytest

from tests.crawler.crawl_folder import RULES, simulated, write_crawl
from tests.report.test_page import EVIL, Reader
from trapline.crawler.engine.options import CrawlOptions
from trapline.report.live_page import live_charts, live_page
from trapline.report.live_record import (
    MOST_MOMENTS,
    MOST_SITES,
    AbandonedSiteRow,
    LiveRecord,
    live_record,
    site_columns,
)
from trapline.report.together import records_together


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> LiveRecord:
    robots = {0: b"User-agent: *\nCrawl-delay: 0.0001\n"}
    return live_record(write_crawl(tmp_path_factory.mktemp("crawls") / "one", *simulated(), robots))


def test_every_string_from_outside_is_escaped(record: LiveRecord) -> None:
    summary = {**record.summary, "types": {EVIL: 3}, "stopped_by": EVIL, "strategy": EVIL}
    summary.update(abandoned_sites=1, abandoned_sites_by_kind={EVIL: 1}, rejected_links={EVIL: 2})
    sites = [record.sites[0]._replace(origin=EVIL)]
    page = live_page(
        replace(
            record,
            name=EVIL,
            summary=summary,
            sites=sites,
            options=CrawlOptions((EVIL,), contact=EVIL),
            abandoned_sites=[AbandonedSiteRow(EVIL, EVIL)],
        )
    )
    read = Reader(page)
    assert EVIL not in page and not read.open and escape(EVIL) in page
    assert len(read.of("script")) == 2 and len(read.of("style")) == 1 and len(read.of("title")) == 1


def test_the_page_loads_nothing(record: LiveRecord) -> None:
    for _, attributes in Reader(live_page(record)).found:
        assert not {"src", "href", "srcset", "action"} & attributes.keys()


def test_every_plot_works_without_javascript_and_has_its_data(record: LiveRecord) -> None:
    page = live_page(record)
    pictures = [svg["data-name"] for svg in Reader(page).of("svg") if svg.get("class") == "chart"]
    data = json.loads(re.findall(r'id="data">(.*?)</script>', page, re.DOTALL)[0])
    assert pictures == list(data) == [chart.name for chart in live_charts(record)]
    assert {"pages-time", "rate-time", "bytes-time", "errors-time", "quality-time", "frontier-time"} <= set(pictures)
    assert not any("nan" in path or "inf" in path for path in re.findall(r' d="([^"]*)"', page))


def test_quality_is_measured_on_the_discovered_web_if_it_is_known(tmp_path: Path) -> None:
    folder = write_crawl(tmp_path, *simulated())
    (judged,) = records_together([folder])
    record = live_record(folder)
    assert {"optimum", "random order"} <= {line.name.split(":")[0] for line in live_charts(record, judged)[3].lines}
    names = [chart.name for chart in live_charts(record, judged)]
    more = ["pagerank-depth", "pagerank-time", "batch-connections"]
    assert sorted(names) == sorted([*(chart.name for chart in live_charts(record)), *more])
    page = live_page(record, judged)
    assert not Reader(page).open
    assert f"largest {judged.pages_per_site.largest}" in page and "<dt>store process</dt><dd>not recorded</dd>" in page


def test_curves_end_at_the_end_of_the_crawl(record: LiveRecord) -> None:
    found = record.summary
    ends = [found["pages_fetched"], found["errors"], found["bytes"], found["quality"]]
    moments = record.moments
    assert [moments.pages[-1], moments.errors[-1], moments.bytes[-1], moments.quality[-1]] == pytest.approx(ends)
    speed = next(chart for chart in live_charts(record) if chart.name == "rate-time").lines[0]
    assert speed.x[0] == 0 and speed.y.max() >= found["pages_per_second"]


def test_sites_add_up_to_the_crawl(record: LiveRecord) -> None:
    assert sum(site.pages for site in record.sites) == record.summary["pages_fetched"]
    assert sum(site.bytes for site in record.sites) == record.summary["bytes"]
    assert sum(site.errors for site in record.sites) == record.summary["errors"]
    assert sum(site.forbidden for site in record.sites) == record.summary["forbidden_by_robots"]
    assert [site.pages for site in record.sites] == sorted((site.pages for site in record.sites), reverse=True)
    delays = {site.origin: site.crawl_delay_s for site in record.sites if site.crawl_delay_s is not None}
    assert delays == {"http://s000000.example": 0.0001}
    for column in site_columns(record.sites):
        assert f">{escape(column.name)}</button>" in live_page(record)


def test_a_long_crawl_of_many_sites_stays_a_small_page(record: LiveRecord, tmp_path: Path) -> None:
    folder = write_crawl(tmp_path, *simulated(1500, 700))
    with sqlite3.connect(folder / "crawl.db") as database:
        for _ in range(7):
            database.execute("insert into progress select * from progress")
        database.execute("update progress set at = rowid, seconds = rowid")
    long = live_record(folder)
    assert len(long.moments.seconds) <= MOST_MOMENTS + 3 and long.moments.seconds[-1] == 120 * 2**7
    assert len(long.sites) == MOST_SITES < long.sites_visited
    assert f"The busiest 500 of {long.sites_visited} sites" in live_page(long)
    assert len(live_page(long).encode()) < 600_000


def test_broken_rules_are_shown_with_the_first_violation(tmp_path: Path) -> None:
    folder = write_crawl(tmp_path, *simulated())
    assert "No rule was broken" in live_page(live_record(folder))
    options = CrawlOptions((), rules=replace(RULES, delay_s=9.0), pause_s=0.0).to_json()
    with sqlite3.connect(folder / "crawl.db") as database:
        database.execute("update meta set value = ? where key = 'options'", (options,))
    page = live_page(live_record(folder))
    assert "No rule was broken" not in page and "began before the delay of the site or address had passed" in page
    assert page.count("<td>delay</td>") > 3


def test_a_crawl_that_has_just_begun_has_a_page(tmp_path: Path) -> None:
    folder = write_crawl(tmp_path, *simulated(20, 2))
    with sqlite3.connect(folder / "crawl.db") as database:
        for table in ("fetch", "robots", "progress", "warc"):
            database.execute(f"delete from {table}")
    assert not Reader(live_page(live_record(folder))).open


def test_equal_records_give_equal_pages(record: LiveRecord) -> None:
    assert live_page(record) == live_page(record)
    assert np.isfinite(np.concatenate(record.moments)).all()
