"""Broken links: pages whose last request failed, with the pages that link to them."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from tests.export.written_crawl import WrittenCrawl
from trapline.cli import run
from trapline.crawler.inspect import broken_links as module
from trapline.crawler.inspect.broken_links import BrokenLinks, BrokenPage, broken_links
from trapline.crawler.inspect.database_reader import open_database

A = "http://a.test"
Captured = pytest.CaptureFixture[str]


def read(folder: Path) -> BrokenLinks:
    with closing(open_database(folder)) as database:
        return broken_links(database)


def web() -> WrittenCrawl:
    crawl = WrittenCrawl(f"{A}/")
    crawl.fetched(f"{A}/", b"x", [f"{A}/gone", f"{A}/1", f"{A}/down", f"{A}/private", f"{A}/later"])
    crawl.fetched(f"{A}/1", b"x", [f"{A}/gone", f"{A}/1"])
    crawl.refused(f"{A}/gone", 404)
    crawl.failed(f"{A}/down", "timeout")
    crawl.forbidden(f"{A}/private")
    crawl.refused(f"{A}/alone", 410)
    crawl.failed(f"{A}/later", "connect")
    crawl.fetched(f"{A}/later", b"x")
    return crawl


def test_pages_that_failed_last_are_listed_by_their_number_of_referrers(tmp_path: Path) -> None:
    """Not listed: a page that was fetched in the end, and one that robots.txt forbids."""
    assert read(web().write(tmp_path / "c")) == BrokenLinks(
        3,
        2,
        [
            BrokenPage(f"{A}/gone", 404, "http", 2, [f"{A}/", f"{A}/1"]),
            BrokenPage(f"{A}/down", 0, "timeout", 1, [f"{A}/"]),
            BrokenPage(f"{A}/alone", 410, "http", 0, []),
        ],
    )


def test_a_crawl_without_errors_has_none(tmp_path: Path) -> None:
    crawl = WrittenCrawl(f"{A}/")
    crawl.fetched(f"{A}/", b"x", [f"{A}/"])
    assert read(crawl.write(tmp_path / "c")) == BrokenLinks(0, 0, [])


def test_links_of_the_last_contents_count(tmp_path: Path) -> None:
    crawl = web()
    crawl.fetched(f"{A}/1", b"y", [f"{A}/down"], changed=1, fingerprint=b"f" * 8)
    crawl.fetched(f"{A}/", head="", status=304, changed=0)  # has no links of its own
    found = {page.url: page.referrers for page in read(crawl.write(tmp_path / "c")).pages}
    assert found == {f"{A}/down": 2, f"{A}/gone": 1, f"{A}/alone": 0}


def test_the_lists_are_bounded_and_say_how_many_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PAGES", 1)
    monkeypatch.setattr(module, "MOST_REFERRERS", 1)
    folder = web().write(tmp_path / "c")
    assert read(folder) == BrokenLinks(3, 2, [BrokenPage(f"{A}/gone", 404, "http", 2, [f"{A}/"])])
    assert run(["report", str(folder)]) == 0
    page = (folder / "report.html").read_text()
    assert "3 pages could not be fetched; fetched pages link to 2 of them. The 1 with the most links to them." in page
    assert "404 Not Found" in page and "and 1 more" in page


def test_the_report_has_them_also_as_json(tmp_path: Path, capsys: Captured) -> None:
    folder = web().write(tmp_path / "c")
    assert run(["report", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["crawls"][0]["broken_links"]
    assert (found["broken"], found["linked"]) == (3, 2)
    assert found["pages"][1] == {
        "url": f"{A}/down",
        "status": 0,
        "error": "timeout",
        "referrers": 1,
        "first_referrers": [f"{A}/"],
    }
    assert run(["report", str(folder)]) == 0
    page = (folder / "report.html").read_text()
    assert "<h2>Broken links</h2>" in page and f"{A}/gone" in page and "timeout" in page
