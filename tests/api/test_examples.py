"""The programs in examples/ run."""

import asyncio
import json
import os
import re
import runpy
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import trapline
from tests.cli.crawling import FAST
from tests.crawler.small_server import NOT_FOUND, SmallServer, page, small_server, text
from tests.effort import slow
from tests.strategies.webs import graph_of
from trapline import cli
from trapline.frontier import Rules
from trapline.graph import generate, save
from trapline.simulator import simulate

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def web(host: str, target: str) -> bytes:
    """Answer with /docs/, its two pages and a page outside."""
    links = {"/docs/": ("/docs/a", "/docs/gone", "/other"), "/docs/a": ("/docs/",), "/other": ("/docs/",)}
    return page(*links[target]) if target in links else NOT_FOUND


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallServer]:
    """Serve the web, and let examples crawl this machine."""
    monkeypatch.setattr(trapline, "crawl", partial(trapline.crawl, allow_private=True, delay=0))
    with small_server(web, ("127.0.0.1",)) as found:
        yield found


def run(name: str, monkeypatch: pytest.MonkeyPatch, server: SmallServer, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", [name, f"http://127.0.0.1:{server.port}/docs/", *words])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")


def test_broken_links(server: SmallServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run("broken_links.py", monkeypatch, server)
    (line,) = capsys.readouterr().out.splitlines()
    status, url, referrer = line.split("\t")
    assert status == "404" and url.endswith("/docs/gone") and referrer.endswith("/docs/")


def test_own_strategy(server: SmallServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run("own_strategy.py", monkeypatch, server)
    assert sorted(line.split()[0] for line in capsys.readouterr().out.splitlines()) == ["0", "1", "1"]


def test_own_strategy_prefers_pages_with_many_links() -> None:
    graph = graph_of([[1, 2], [3, 4], [4, 5], [5], [5], []], site=[0] * 6)
    crawl = simulate(graph, trapline.load_strategy(str(EXAMPLES / "own_strategy.py")), Rules(per_connection=1))
    assert crawl.log.page.tolist() == [0, 1, 2, 4, 5, 3]


def test_keep_fresh(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The page changes at every request. Each run ends after three pages, and the second continues the first."""
    real, editions, folder = trapline.crawl, count(), tmp_path / "copy"

    def crawl(*seeds: str, **settings: Any) -> Iterator[trapline.Page]:
        local = {} if "resume" in settings else {"allow_private": True, "delay": 0, "refresh_rate": 5}
        for seen, found in enumerate(real(*seeds, **local, **settings), start=1):
            yield found
            if seen == 3:
                break

    monkeypatch.setattr(trapline, "crawl", crawl)
    with small_server(lambda host, target: text(f"edition {next(editions)}"), ("127.0.0.1",)) as server:
        for _ in range(2):
            run("keep_fresh.py", monkeypatch, server, str(folder))
    kinds = [line.split()[2] for line in capsys.readouterr().out.splitlines()]
    assert kinds == ["new", *["changed"] * 5]


@slow
@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
def test_crawl_on_ray(server: SmallServer, tmp_path: Path) -> None:
    url, folder = f"http://127.0.0.1:{server.port}/docs/", tmp_path / "out"
    programs = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    options = ["--allow-private", "--delay", "0"]
    subprocess.run(["sh", EXAMPLES / "crawl_on_ray.sh", url, folder, *options], check=True, env=programs, timeout=300)
    assert pq.read_table(folder / "export" / "pages.parquet").num_rows >= 3


@pytest.mark.parametrize("index", ["examples/README.md", "docs/how-to/examples.md"])
def test_the_index_has_every_example(index: str) -> None:
    named = re.findall(r"^\| \[?`?(?:examples/)?([\w.-]+\.\w+|\w+/)", (ROOT / index).read_text(), re.M)
    folders = [project.parent.name + "/" for project in EXAMPLES.glob("*/scrapy.cfg")]
    files = [file.name for file in EXAMPLES.iterdir() if file.is_file() and file.name != "README.md"]
    assert sorted(named) == sorted(files + folders)


def test_extract(server: SmallServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run("extract.py", monkeypatch, server)
    assert len([json.loads(line) for line in capsys.readouterr().out.splitlines()]) == 3


def test_extract_finds_headings_without_markup(
    server: SmallServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    body = b"<p>no</p><h1 class=x>One <b>&amp;</b>\n two</h1>no<H2><a href=/#a>three</a></H2>"
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with small_server(lambda host, target: head + body if target == "/docs/" else NOT_FOUND, ("127.0.0.1",)) as other:
        run("extract.py", monkeypatch, other)
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["headings"] == ["One & two", "three"]


def test_crawl_to_parquet(server: SmallServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run("crawl_to_parquet.py", monkeypatch, server, str(tmp_path / "out"))
    assert pq.read_table(tmp_path / "out" / "links.parquet").num_rows == 5


def test_own_extraction(server: SmallServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    handler = f"{EXAMPLES / 'own_extraction.py'}:TitleWriter"
    url = f"http://127.0.0.1:{server.port}/docs/"
    assert cli.run(["crawl", url, *FAST, "-o", "out", "--handler", handler]) == 0
    (file,) = tmp_path.glob("pages-*.jsonl")
    found = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(found) == 4 and [one["status"] for one in found if "error" in one] == [404]


def test_own_quality(server: SmallServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run("own_quality.py", monkeypatch, server, "x")
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "0.000",
        "1.000",
        "1.000",
    ]  # "xxx" is one word


def test_archive_a_site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(trapline, "crawl", partial(trapline.crawl, allow_private=True, delay=0))
    body = b"<img src=/there.png><img src=/gone.png>"
    html = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with small_server(
        lambda host, target: {"/docs/": html, "/there.png": text("x")}.get(target, NOT_FOUND), ("127.0.0.1",)
    ) as found:
        run("archive_a_site.py", monkeypatch, found, str(tmp_path / "out"))
    shown = capsys.readouterr()
    (line,) = shown.out.splitlines()
    assert line.startswith("missing") and "gone.png" in line and line.endswith("/docs/")
    assert "1 pages and 1 files" in shown.err


def test_one_section(server: SmallServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run("one_section.py", monkeypatch, server)
    assert [line.split()[1].partition("/docs/")[2] for line in capsys.readouterr().out.splitlines()] == ["", "a"]


def test_own_crawler_continues_where_it_was_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with small_server(web, ("127.0.0.1",)) as server:
        home = f"http://127.0.0.1:{server.port}"
        for pages in (["/docs/"], ["/docs/a", "/other"]):
            main = runpy.run_path(str(EXAMPLES / "own_crawler.py"))
            rules = trapline.Rules(delay_s=0.05, per_connection=5)
            crawler = main["OwnCrawler"](tmp_path / "f", f"{home}/docs/", len(pages), rules)
            asyncio.run(crawler.run())
            crawler.frontier.close()
            assert sorted(url.removeprefix(home) for url in crawler.fetched) == pages


def test_own_crawler_obeys_robots_and_delays_and_tries_again(tmp_path: Path) -> None:
    asked: list[tuple[float, str]] = []

    def web(host: str, target: str) -> bytes:
        asked.append((time.time(), target))
        if target == "/robots.txt":
            return text("User-agent: *\nDisallow: /private")
        if target == "/broken" and [url for _, url in asked].count("/broken") == 1:
            return page(status="503 Busy")
        return page("/a", "/private", "/gone", "/broken") if target == "/" else page()

    OwnCrawler = runpy.run_path(str(EXAMPLES / "own_crawler.py"))["OwnCrawler"]
    with small_server(web, ("127.0.0.1",)) as server:
        home = f"http://127.0.0.1:{server.port}/"
        crawler = OwnCrawler(tmp_path / "f", home, 100, trapline.Rules(delay_s=0.2, per_connection=5, backoff_s=0.2))
        asyncio.run(crawler.run())
    assert sorted(url.partition(home)[2] for url in crawler.fetched) == ["", "a", "broken", "gone"]
    urls = [url for _, url in asked]
    assert "/private" not in urls and urls[0] == "/robots.txt" and urls.count("/broken") == 2
    assert asked[urls.index("/a")][0] - asked[urls.index("/")][0] >= 0.2


def test_the_how_to_shows_the_own_crawler() -> None:
    text = (EXAMPLES.parent / "docs" / "how-to" / "drive-the-frontier.md").read_text()
    assert f"```python\n{(EXAMPLES / 'own_crawler.py').read_text()}```" in text


def test_compare_strategies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save(generate(200, 10, seed=3), tmp_path / "web")
    monkeypatch.setattr(sys, "argv", ["compare_strategies.py", str(tmp_path / "web"), str(tmp_path / "page.html")])
    runpy.run_path(str(EXAMPLES / "compare_strategies.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 9 and sum("w = 5s" in line for line in lines) == 4
    assert "<html" in (tmp_path / "page.html").read_text()
