"""The folder of a crawl with requisites: every command tells them apart from pages, and an interrupted crawl fetches the rest."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import trapline
from tests.cli.crawling import FAST, Captured, CrawlResult
from tests.crawler.small_server import NOT_FOUND, SmallServer, small_server
from trapline.cli import run
from trapline.crawler.inspect.summary import requisites_of, totals_of
from trapline.errors import ConfigError
from trapline.graph.formats.textfile import LoadOptions
from trapline.graph.load import load_graph

PAGE = "<link rel=stylesheet href=/s.css><img src=/no.png><img src=/i.png><a href=/2>2</a><a href=/i.png>i</a>"
FILES = {
    "/": ("text/html", PAGE),
    "/2": ("text/html", "<script src=/code.js></script><a href=/s.css>style</a>"),
    "/s.css": ("text/css", "a { background: url(font.woff) }"),
    "/font.woff": ("font/woff", "x"),
    "/code.js": ("text/javascript", "x"),
    "/i.png": ("image/png", "x"),
}


def answer(host: str, target: str) -> bytes:
    if target not in FILES:
        return NOT_FOUND
    mime, body = FILES[target]
    return f"HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SmallServer, CrawlResult]]:
    folder = tmp_path_factory.mktemp("archive") / "crawl"
    with small_server(answer, ("127.9.4.1",)) as server:
        url = f"http://127.9.4.1:{server.port}/"
        assert run(["crawl", url, "--archive", *FAST, "-o", str(folder)]) == 0
        yield server, CrawlResult(folder)


def states(crawl: CrawlResult) -> dict[str, str]:
    sql = "select url, state from requisite join page on page.id = page"
    return {"/" + url.split("/", 3)[3]: state for url, state in crawl.rows(sql)}


def test_the_preset_fetches_requisites_and_writes_metadata(archived: tuple[SmallServer, CrawlResult]) -> None:
    server, crawl = archived
    requested = Counter(target for target in server.targets("127.9.4.1") if target != "/robots.txt")
    assert requested == Counter([*FILES, "/no.png"]), "each once; --no-sitemaps was given and wins"
    options = json.loads(dict(crawl.rows("select key, value from meta"))["options"])
    assert (options["requisites"], options["metadata"], options["sitemaps"], options["scope"]) == (
        True,
        True,
        False,
        "host",
    )
    assert states(crawl) == {
        "/s.css": "fetched", "/no.png": "missing", "/i.png": "page", "/font.woff": "fetched", "/code.js": "fetched",
    }  # fmt: skip
    index = (crawl.folder / "index.cdxj").read_text()
    assert all(path in index for path in ("s.css", "font.woff", "code.js"))


def test_the_summary_and_the_graph_count_pages_alone(archived: tuple[SmallServer, CrawlResult]) -> None:
    _, crawl = archived
    found = crawl.summary
    assert (found["pages_fetched"], found["urls_known"], found["errors"]) == (3, 3, 0)
    assert (found["requisites_fetched"], found["requisites_failed"], found["requisites_waiting"]) == (3, 1, 0)
    assert (found["sites"], found["requisite_sites"]) == (1, 1)
    assert load_graph(crawl.folder, LoadOptions(dangling=True)).pages == 3
    assert crawl.summary["links"] == 2, "the link to the stylesheet leads to no page"


def test_the_closing_lines_verify_and_explain_know_requisites(
    archived: tuple[SmallServer, CrawlResult], capsys: Captured
) -> None:
    server, crawl = archived
    assert run(["crawl", "--resume", str(crawl.folder)]) == 0
    assert run(["verify", str(crawl.folder)]) == 0
    capsys.readouterr()
    assert run(["explain", str(crawl.folder), f"http://127.9.4.1:{server.port}/font.woff"]) == 0
    shown = capsys.readouterr().out
    assert f"requisite (file) of http://127.9.4.1:{server.port}/s.css: fetched" in shown
    assert "unknown" not in shown and "not as a page" not in shown, "what is said of a page in the frontier"


def test_exports_tell_requisites_from_pages(archived: tuple[SmallServer, CrawlResult]) -> None:
    _, crawl = archived
    stored = trapline.open_crawl(crawl.folder)
    pages, requisites = stored.table("pages").to_pylist(), stored.table("requisites").to_pylist()
    assert sorted(row["url"].rpartition("/")[2] for row in pages) == ["", "2", "i.png"]
    assert {(row["url"].rpartition("/")[2], row["role"], row["status"]) for row in requisites} == {
        ("s.css", "stylesheet", 200), ("no.png", "image", 404), ("font.woff", "file", 200), ("code.js", "script", 200),
    }  # fmt: skip
    results = Counter(row["result"] for row in stored.table("fetches").to_pylist())
    assert results == {"fetched": 3, "requisite": 4}
    links = {(row["target"].rpartition("/")[2], row["reason"]) for row in stored.table("links").to_pylist()}
    assert links == {("2", None), ("i.png", None), ("s.css", "requisite")}
    assert stored.table("sites").to_pylist()[0]["pages_known"] == 3


def test_a_stopped_crawl_fetches_the_remaining_requisites_when_it_is_resumed(tmp_path: Path) -> None:
    with small_server(answer, ("127.9.4.1",)) as server:
        crawl = trapline.crawl(
            f"http://127.9.4.1:{server.port}/", output=tmp_path / "c", requisites=True, delay=0.0, pause=0.3, allow_private=True
        )  # fmt: skip
        for _ in crawl:
            break
        stopped = CrawlResult(tmp_path / "c")
        assert "waiting" in states(stopped).values()
        assert run(["crawl", "--resume", str(tmp_path / "c"), "--quiet"]) == 0
        requested = Counter(server.targets("127.9.4.1"))
        assert max(requested[path] for path in FILES) == 1 and requested.keys() >= FILES.keys()
        assert "waiting" not in states(stopped).values()


def test_a_requisite_that_waited_as_a_page_at_the_limit_on_pages_is_fetched_once(
    tmp_path: Path, capsys: Captured
) -> None:
    with small_server(answer, ("127.9.4.1",)) as server:
        folder, url = str(tmp_path / "c"), f"http://127.9.4.1:{server.port}/"
        assert run(["crawl", url, "--archive", *FAST, "--max-pages", "1", "-o", folder]) == 0
        assert run(["explain", folder, f"{url}i.png"]) == 0
        assert f"requisite (image) of {url}: fetched" in capsys.readouterr().out
        assert run(["crawl", "--resume", folder, "--max-pages", "9", "--quiet"]) == 0
        assert max(Counter(server.targets("127.9.4.1"))[path] for path in FILES) == 1
    crawl = CrawlResult(tmp_path / "c")
    assert (crawl.summary["pages_fetched"], crawl.summary["urls_known"], states(crawl)["/i.png"]) == (2, 2, "fetched")
    assert trapline.open_crawl(folder).pages.num_rows == 2
    assert run(["verify", folder]) == 0


def test_the_folder_of_an_earlier_version_is_read_and_resumed(tmp_path: Path) -> None:
    with small_server(answer, ("127.9.4.1",)) as server:
        folder = tmp_path / "c"
        url = f"http://127.9.4.1:{server.port}/"
        assert run(["crawl", url, *FAST, "--max-pages", "1", "-o", str(folder)]) == 0
        with closing(sqlite3.connect(folder / "crawl.db")) as database:
            database.execute("drop table requisite")
        assert trapline.open_crawl(folder).table("requisites").num_rows == 0
        assert run(["crawl", "--resume", str(folder), "--max-pages", "3", "--quiet"]) == 0
        assert CrawlResult(folder).rows("select count(*) from requisite") == [(0,)]


def test_requisites_need_a_folder() -> None:
    with pytest.raises(ConfigError, match="without a folder keeps no requisites; give it a folder"):
        trapline.crawl("http://127.9.4.1:1/", requisites=True, allow_private=True).run()


def test_sites_are_those_with_pages(archived: tuple[SmallServer, CrawlResult]) -> None:
    """One more site has requisites alone, one also a page, and one a sitemap besides its requisite."""
    _, crawl = archived
    with closing(sqlite3.connect(":memory:")) as database:
        with closing(sqlite3.connect(crawl.folder / "crawl.db")) as of_crawl:
            of_crawl.backup(database)
        for number in (101, 102, 103):
            url = f"http://{number}.test/"
            database.execute("insert into site (id, origin) values (?, ?)", (number, url))
            database.execute("insert into page values (?, ?, ?)", (10 * number, number, f"{url}a.png"))
            database.execute("insert into requisite values (?, 'image', 0, 0, 1, 'fetched')", (10 * number,))
        database.executemany("insert into page values (?, ?, ?)", [(2000, 102, "x"), (3000, 103, "sitemap.xml")])
        database.execute("insert into published_list values (3000, 'guess', '', 0, 1, 'missing', 0, 0, '{}')")
        totals = totals_of(database)
        assert (totals["sites"], requisites_of(database)["requisite_sites"]) == (1 + 1, 1 + 3)
