"""`trapline explain` of a crawl with refresh: a page that was fetched often is summarised, and the channels of a site
are judged."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.crawler.live_web import crawled, refetched, until
from tests.testweb.changing import changing_web
from trapline.cli import run
from trapline.crawler.engine.options import RefreshOptions
from trapline.crawler.engine.run import resume_crawl
from trapline.crawler.inspect import page_history
from trapline.signals.inbox import CHANGED, Inbox, Signal
from trapline.testweb import serve

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl of three sites. Signals arrived for the pages of the first site."""
    folder = tmp_path_factory.mktemp("refreshed") / "crawl"
    with serve(changing_web(2.0)) as server:
        options = RefreshOptions(continuous=True, rate=40.0)
        crawl = crawled(folder, server.seed_urls, server.hosts, until(refetched(12, 3)), refresh=options, delay_s=0.05)
        inbox = Inbox(folder)
        urls = [url for (url,) in crawl.rows("select url from page where site = 0")]
        inbox.put(Signal(0, 0.0, "indexnow", url, CHANGED, 1e12, 1.0, True) for url in urls)
        inbox.close()
        resume_crawl(folder, until(refetched(12, 60)))
    return folder


def one(folder: Path, sql: str) -> str:
    with closing(sqlite3.connect(folder / "crawl.db")) as database:
        return str(database.execute(sql).fetchone()[0])


def test_a_page_fetched_often_is_summarised(folder: Path, capsys: Captured) -> None:
    often = "from fetch join page on page.id = page where result = 3 group by page order by count(*) desc limit 1"
    url, again = one(folder, f"select url {often}"), one(folder, f"select count(*) - 1 {often}")
    changed = one(folder, f"select sum(changed) {often}")
    assert run(["explain", str(folder), url]) == 0
    said = capsys.readouterr().out
    assert int(again) > 3 and f"requested {again} more times" in said and said.count(": status 200") == 1
    assert f"refetched: {again} times, " in said and f"; changed {changed} time" in said and "; due " in said


def test_a_commit_during_the_reading_does_not_mix_two_moments(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    shutil.copytree(folder, tmp_path / "c")
    often = "from fetch join page on page.id = page where result = 3 group by page order by count(*) desc limit 1"
    url, again = one(folder, f"select url {often}"), one(folder, f"select count(*) - 1 {often}")

    def read_with_a_late_commit(database: sqlite3.Connection, target: page_history.Target) -> page_history.PageHistory:
        found = page_account(database, target)
        with closing(sqlite3.connect(tmp_path / "c" / "crawl.db")) as store:
            names = ", ".join(name for _, name, *_ in store.execute("pragma table_info(fetch)") if name != "seq")
            sql = f"insert into fetch ({names}) select {names} from fetch where page = ? and result = 3 limit 1"
            assert store.execute(sql, (target.page,)).rowcount == 1
            store.commit()
        return found

    page_account = page_history.page_account
    monkeypatch.setattr(page_history, "page_account", read_with_a_late_commit)
    assert run(["explain", str(tmp_path / "c"), url]) == 0
    assert f"refetched: {again} times, " in capsys.readouterr().out


def test_a_site_shows_the_trust_of_its_channels(folder: Path, capsys: Captured) -> None:
    for site, says in ((0, "  indexnow: 4 signals received"), (1, "  signals: its provider has sent none so far")):
        origin = one(folder, f"select origin from site where id = {site}")
        assert run(["explain", str(folder), origin]) == 0
        assert says in capsys.readouterr().out
