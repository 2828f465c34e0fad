"""The part of the report about refresh: freshness as later fetches show it, every fetch counted once, and names as text."""

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.crawler.live_web import crawled, refetched, until
from tests.report.test_page import EVIL, Reader
from tests.testweb.changing import changing_web
from trapline.cli.crawl.config_command import shown_options
from trapline.crawler.engine.options import RefreshOptions
from trapline.crawler.engine.run import resume_crawl
from trapline.report.live_page import live_page
from trapline.report.live_record import live_record
from trapline.report.refresh_page import trust_columns
from trapline.report.refresh_record import Believed, RefreshRecord, SignalCount, freshness_seen
from trapline.signals.inbox import ACCESS, CHANGED, Inbox, Signal
from trapline.testweb import serve

REFRESH = RefreshOptions(continuous=True, rate=40.0)
Fetch = tuple[float, float | None]  # time of the fetch, and whether the page had changed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl of three sites that change. Each site signals twice that all its pages have changed."""
    folder = tmp_path_factory.mktemp("refreshed") / "crawl"
    with serve(changing_web(2.0)) as server:
        options = {"refresh": REFRESH, "delay_s": 0.05}
        crawl = crawled(folder, server.seed_urls, server.hosts, until(refetched(12, 3)), **options)
        inbox = Inbox(folder)
        urls = [url for (url,) in crawl.rows("select url from page")]
        inbox.put(Signal(0, 0.0, "indexnow", url, CHANGED, 1e12, 1.0, True) for url in urls)
        inbox.put([Signal(0, 0.0, "api", urls[0], ACCESS, 0.0, 25.0, True)])
        inbox.close()
        resume_crawl(folder, until(refetched(12, 60)))
    return folder


def record(folder: Path) -> RefreshRecord:
    found = live_record(folder).refresh
    assert found is not None
    return found


def test_every_fetch_is_counted_once(folder: Path) -> None:
    fetches = record(folder).fetches
    with closing(sqlite3.connect(folder / "crawl.db")) as database:
        pages, had, changed = database.execute(
            "select count(distinct page), count(*), sum(changed) from fetch where result = 3"
        ).fetchone()
    assert (fetches.new.sum(), fetches.refetches.sum(), fetches.changed.sum()) == (pages, had - pages, changed)


def test_the_page_shows_signals_and_the_trust_of_channels(folder: Path) -> None:
    found = record(folder)
    assert {one.channel for one in found.signals} == {"indexnow"}
    assert len(found.trust) == 3 and all(one.trust.signals > 0 for one in found.trust)
    assert found.access_counts == [SignalCount("api", "noted", 1)]
    page = live_page(live_record(folder))
    assert "Access counts taken in" in page
    assert "Trust in sites and channels" in page and "Signals taken in by the crawl" in page and not Reader(page).open
    assert {"fresh-time", "refetches-time", "changed-time"} <= {svg.get("data-name") for svg in Reader(page).of("svg")}


def test_due_pages_are_named_with_their_copies(folder: Path) -> None:
    due = record(folder).due
    with closing(sqlite3.connect(folder / "crawl.db")) as database:
        copies = dict(
            database.execute(
                "select url, max(started + total_s) from fetch join page on page.id = page where result = 3 group by url"
            )
        )
    assert due.pages == len(copies) and 0 < len(due.best) <= due.pages and due.due <= due.pages
    assert all(copies[page.url] == pytest.approx(page.copied_at, abs=1.0) for page in due.best)
    assert [page.value for page in due.best] == sorted((page.value for page in due.best), reverse=True)
    assert f"{due.due} of {due.pages} pages were due" in live_page(live_record(folder))


def test_a_channel_without_evidence_has_no_trust_number(folder: Path) -> None:
    one = live_record(folder)
    assert one.refresh is not None
    unjudged = one.refresh.trust[0].trust._replace(judged_by=0.0, confirmed=0.0, precision=0.95, promised=0.0, kept=0.0)
    for trust, text in (
        (unjudged, "not judged yet"),
        (unjudged._replace(judged_by=4.0, confirmed=3.0, precision=0.75), "75%"),
        (unjudged._replace(promised=8.0, kept=2.0, kept_share=0.25), "25%"),
    ):
        assert trust_columns([Believed("http://a.test", trust)])[3].texts == [text]


def test_settings_have_the_names_and_values_of_the_options(folder: Path) -> None:
    shown = shown_options(live_record(folder).options)
    assert (shown["refresh-policy"], shown["refresh-share"], shown["refresh-rate"]) == ("residual-life", "50%", "40.0")
    assert shown["continuous"] == "yes" and "refresh" not in shown and "refresh-price" not in shown
    assert shown["delay"].endswith("s") and not {"abandon", "lease_s", "modules", "delay_s"} & set(shown)


def test_signals_are_counted_over_the_whole_crawl(folder: Path, tmp_path: Path) -> None:
    """Including signals that are so old that their rows are deleted."""
    shutil.copytree(folder, tmp_path / "c")
    with closing(sqlite3.connect(tmp_path / "c" / "crawl.db")) as database:
        database.execute("delete from signal")
        database.commit()
    assert record(tmp_path / "c").signals == record(folder).signals != []


def test_names_from_outside_are_escaped(folder: Path) -> None:
    one = live_record(folder)
    assert one.refresh is not None
    counts = [SignalCount(EVIL, EVIL, 3)]
    trust = [Believed(EVIL, one.refresh.trust[0].trust._replace(channel=EVIL))]
    page = live_page(replace(one, refresh=replace(one.refresh, signals=counts, at_endpoint=counts, trust=trust)))
    assert EVIL not in page and not Reader(page).open


# ---- observed freshness


def slow(pages: Sequence[Sequence[Fetch]], moment: float) -> tuple[float, float]:
    """The number of copies about which a later fetch says something, and the number of these that were fresh. The
    others count as fresh."""
    known = fresh = 0.0
    for fetches in pages:
        for (begin, _), (end, changed) in pairwise(fetches):
            if begin <= moment < end and changed is not None:
                known += 1
                fresh += 1.0 - (moment - begin) / (end - begin) * changed
    return known, fresh


MOMENTS = st.lists(st.integers(0, 400).map(lambda number: number / 2 + 0.25), min_size=1, max_size=6, unique=True)
OUTCOMES = st.sampled_from((0.0, 1.0, None))


@given(st.lists(MOMENTS.map(sorted).flatmap(lambda at: st.tuples(*(st.tuples(st.just(one), OUTCOMES) for one in at)))))
def test_observed_freshness_is_the_share_of_fresh_copies(pages: list[tuple[Fetch, ...]]) -> None:
    rows = [(page, at, np.nan if changed is None else changed) for page, own in enumerate(pages) for at, changed in own]
    page, at_s, changed = (np.array(column) for column in zip(*rows, strict=True)) if rows else [np.zeros(0)] * 3
    seen = freshness_seen(page.astype(np.int64), at_s, changed, 200.0)
    for number, moment in enumerate(seen.seconds.tolist()):
        known, fresh = slow(pages, moment)
        copies = sum(own[0][0] <= moment for own in pages)
        assert seen.looked_at[number] == pytest.approx(known / copies if copies else 0.0)
        assert seen.fresh[number] == pytest.approx(1.0 - (known - fresh) / copies if copies else 1.0)
