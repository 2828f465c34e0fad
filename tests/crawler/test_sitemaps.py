"""Sitemaps and feeds bring pages that no link leads to. They are requested like pages, count as none, and cannot hurt the crawl."""

import gzip
import json
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.crawling import Captured, CrawlResult
from tests.crawler.small_server import NOT_FOUND, Part, SmallServer, moved, page, small_server
from tests.effort import slow
from trapline.cli import run
from trapline.crawler.recrawl.list_queue import MOST_LEVELS
from trapline.crawler.visits.extra_queue import MOST_REQUESTS
from trapline.graph.formats.textfile import LoadOptions
from trapline.graph.load import load_graph
from trapline.report.live_record import live_record
from trapline.report.together import records_together

HOSTS = {"a.test": "127.9.2.1", "b.test": "127.9.2.2", "www.a.test": "127.9.2.3"}
XML = "http://www.sitemaps.org/schemas/sitemap/0.9"
Answer = bytes | list[Part]
Site = Mapping[str, Answer]


def answer(body: bytes | str, mime: str = "application/xml", fields: str = "") -> bytes:
    data = body if isinstance(body, bytes) else body.encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\nContent-Length: {len(data)}\r\n{fields}\r\n"
    return head.encode() + data


def urlset(*urls: str) -> str:
    return f"<urlset xmlns='{XML}'>{''.join(f'<url><loc>{url}</loc></url>' for url in urls)}</urlset>"


def index(*urls: str) -> str:
    return (
        f"<sitemapindex xmlns='{XML}'>{''.join(f'<sitemap><loc>{url}</loc></sitemap>' for url in urls)}</sitemapindex>"
    )


def rss(*urls: str) -> bytes:
    items = "".join(f"<item><link>{url}</link></item>" for url in urls)
    return answer(f"<rss version='2.0'><channel>{items}</channel></rss>", "application/rss+xml")


class Web:
    """A web on loopback, and crawls of it. `{port}` in an answer's text is replaced by the server's port."""

    def __init__(self, server: SmallServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.hosts = folder / "hosts"
        self.hosts.write_text("".join(f"{address} {name}\n" for name, address in HOSTS.items()))

    def url(self, name: str) -> str:
        host, _, path = name.partition("/")
        return f"http://{host}:{self.server.port}/{path}"

    def arguments(self, *seeds: str) -> list[str]:
        rules = ["--delay", "0.05", "--pause", "0.01", "--backoff", "0.05", "--strategy", "breadth-first"]
        return ["crawl", *map(self.url, seeds), "--allow-private", "--hosts", str(self.hosts), *rules, "--quiet"]

    def crawl(self, *args: str, seeds: tuple[str, ...] = ("a.test/",)) -> CrawlResult:
        folder = self.folder / f"crawl{len(list(self.folder.iterdir()))}"
        assert run([*self.arguments(*seeds), *args, "-o", str(folder)]) == 0
        return CrawlResult(folder)

    def requests(self, host: str = "a.test") -> list[str]:
        return self.server.targets(host)


@contextmanager
def served(folder: Path, sites: Callable[[Callable[[str], str]], Mapping[str, Site]]) -> Iterator[Web]:
    """Serve sites by host name. `sites` receives a function that makes a URL of "host/path"."""
    found: dict[str, Site] = {}
    with small_server(lambda host, target: found[host].get(target, NOT_FOUND), tuple(HOSTS.values())) as server:
        web = Web(server, folder)
        found.update({"b.test": {}, "www.a.test": {}, **sites(web.url)})
        yield web


def pages(crawl: CrawlResult) -> list[str]:
    return sorted(crawl.targets())


def lists(crawl: CrawlResult) -> dict[str, tuple[str, int]]:
    """State and requests of each list, by path."""
    sql = "select url, state, requests from published_list join page on page.id = page"
    return {"/" + url.split("/", 3)[3]: (state, requests) for url, state, requests in crawl.rows(sql)}


# ---- a crawl of one site with a guessed index, sitemaps and a feed


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Web, CrawlResult]]:
    def sites(url: Callable[[str], str]) -> Mapping[str, Site]:
        home = "<html><head><link rel=alternate type='application/rss+xml' href='/feed'></head><a href='/linked'>x</a>"
        first = urlset(
            *(url(f"a.test/one{n}") for n in range(3)), url("a.test/linked"), url("b.test/x"), url("a.test/no")
        )
        return {
            "a.test": {
                "/robots.txt": answer("User-agent: *\nDisallow: /no", "text/plain"),
                "/": answer(home, "text/html"),
                "/sitemap.xml": answer(
                    index(url("a.test/maps/1.xml"), url("a.test/maps/2.xml.gz"), url("b.test/s.xml"))
                ),
                "/maps/1.xml": answer(first),
                "/maps/2.xml.gz": answer(gzip.compress(urlset(url("a.test/two")).encode()), "application/gzip"),
                "/feed": rss(url("a.test/three")),
                **{f"/{name}": page() for name in ("linked", "one0", "one1", "one2", "two", "three")},
            }
        }

    folder = tmp_path_factory.mktemp("plain")
    with served(folder, sites) as web:
        yield web, web.crawl()


def test_pages_of_an_index_its_sitemaps_and_a_feed_are_fetched(plain: tuple[Web, CrawlResult]) -> None:
    _, crawl = plain
    assert pages(crawl) == ["/", "/linked", "/one0", "/one1", "/one2", "/three", "/two"]


def test_every_list_is_requested_once_after_the_first_page(plain: tuple[Web, CrawlResult]) -> None:
    web, _ = plain
    requests = web.requests()
    assert requests[:3] == ["/robots.txt", "/", "/sitemap.xml"]
    assert set(Counter(requests).values()) == {1}
    assert web.requests("b.test") == []


def test_the_summary_counts_lists_apart_from_pages(plain: tuple[Web, CrawlResult]) -> None:
    _, crawl = plain
    summary = crawl.summary
    assert (summary["pages_fetched"], summary["urls_known"], summary["errors"]) == (7, 8, 0)
    assert (summary["lists_requested"], summary["lists_read"], summary["pages_listed"]) == (4, 4, 7)
    assert (summary["pages_only_listed"], summary["pages_only_listed_fetched"]) == (6, 5)
    assert summary["rejected_entries"] == {"of another host": 2}
    assert summary["forbidden_by_robots"] == 1
    assert summary["politeness_violations"] == 0


def test_a_list_is_in_the_archive_and_in_no_graph(plain: tuple[Web, CrawlResult]) -> None:
    _, crawl = plain
    rows = crawl.rows("select url, file is not null from fetch join page on page.id = page where result = -1")
    assert len(rows) == 4 and all(archived for _, archived in rows)
    for dangling, known in ((False, 7), (True, 8)):
        assert load_graph(crawl.folder, LoadOptions(dangling=dangling)).pages == known


def test_explain_names_the_sitemap_of_a_page(plain: tuple[Web, CrawlResult], capsys: Captured) -> None:
    web, crawl = plain
    assert run(["explain", str(crawl.folder), web.url("a.test/one1")]) == 0
    assert f"discovered: in the sitemap or feed {web.url('a.test/maps/1.xml')}" in capsys.readouterr().out
    assert run(["explain", str(crawl.folder), web.url("a.test/sitemap.xml")]) == 0
    said = capsys.readouterr().out
    assert "requested because robots.txt names no sitemap: read" in said and "1 (of another host)" in said


def test_reports_measure_the_same_with_a_list_and_without(tmp_path: Path) -> None:
    """A list has a row among the pages, but is none of them: pages with larger numbers keep their own values."""
    names = [f"sub{n}" for n in range(8)]
    bodies = {
        f"/{name}": answer("x" * n + "".join(f"<a href=/{to}>" for to in names[n:])) for n, name in enumerate(names)
    }

    def sites(url: Callable[[str], str]) -> Mapping[str, Site]:
        home = answer("".join(f"<a href=/{name}>" for name in names), "text/html")
        return {"a.test": {"/": home, **bodies, "/sitemap.xml": answer(urlset(url("a.test/sub0")))}}

    with served(tmp_path, sites) as web:
        folders = [web.crawl(*args).folder for args in ((), ("--no-sitemaps",))]
    read, plain = (records_together([folder])[0] for folder in folders)
    assert (read.pages, read.pages_fetched, read.bytes) == (plain.pages, plain.pages_fetched, plain.bytes)
    assert (read.pages_per_site, read.curve) == (plain.pages_per_site, plain.curve)
    assert (
        (read.kendall_tau, read.quality_fetched)
        == (plain.kendall_tau, plain.quality_fetched)
        == (read.kendall_tau, 1.0)
    )
    assert [site.known for site in live_record(folders[0]).sites] == [len(names) + 1]


# ---- which lists are requested


def one_site(url: Callable[[str], str]) -> Mapping[str, Site]:
    """Return a site without robots.txt, whose sitemap lists a page that no link leads to."""
    return {"a.test": {"/": page(), "/listed": page(), "/sitemap.xml": answer(urlset(url("a.test/listed")))}}


def test_no_sitemaps_requests_none(tmp_path: Path) -> None:
    with served(tmp_path, one_site) as web:
        assert pages(web.crawl("--no-sitemaps")) == ["/"]
        assert web.requests() == ["/robots.txt", "/"]


def test_a_crawl_of_any_site_guesses_none(tmp_path: Path) -> None:
    with served(tmp_path, one_site) as web:
        for flags in ((), ("--sitemaps",)):
            assert pages(web.crawl("--scope", "any", *flags)) == ["/"]
        assert "/sitemap.xml" not in web.requests()


def test_a_sitemap_that_robots_txt_names_replaces_the_guess(tmp_path: Path) -> None:
    def sites(url: Callable[[str], str]) -> Mapping[str, Site]:
        named = "".join(
            f"\nSitemap: {url(f'a.test/{name}')}" for name in ("deep/named.xml", "secret/s.xml", "list.txt")
        )
        robots = f"User-agent: *\nDisallow: /secret/{named}"
        return {
            "a.test": {
                "/robots.txt": answer(robots, "text/plain"),
                "/": page(),
                "/listed": page(),
                "/by-text": page(),
                "/list.txt": answer(f"some words\n{url('a.test/by-text')}\n", "text/plain"),
                "/deep/named.xml": answer(
                    urlset(url("a.test/listed"))
                ),  # outside of its folder: robots.txt vouches for it
            }
        }

    with served(tmp_path, sites) as web:
        crawl = web.crawl("--scope", "any", "--sitemaps")
        assert pages(crawl) == ["/", "/by-text", "/listed"]
        assert sorted(web.requests()) == ["/", "/by-text", "/deep/named.xml", "/list.txt", "/listed", "/robots.txt"]
        read = {"/deep/named.xml": ("read", 1), "/list.txt": ("read", 1)}
        assert lists(crawl) == {**read, "/secret/s.xml": ("forbidden", 1)}


def test_a_sitemap_of_another_host_counts_only_if_the_robots_txt_of_the_host_names_it(tmp_path: Path) -> None:
    def sites(url: Callable[[str], str]) -> Mapping[str, Site]:
        both = answer(urlset(url("a.test/listed"), url("b.test/listed")))
        robots = answer(f"Sitemap: {url('www.a.test/map.xml')}", "text/plain")
        site = {"/": page(), "/listed": page()}
        return {
            "a.test": {**site, "/robots.txt": robots},
            "b.test": site,
            "www.a.test": {"/map.xml": both, "/": page()},
        }

    with served(tmp_path, sites) as web:
        crawl = web.crawl("--scope", "host", seeds=("a.test/", "b.test/", "www.a.test/"))
        assert web.requests("www.a.test").count("/map.xml") == 1
        assert "/listed" in web.requests("a.test") and "/listed" not in web.requests("b.test")
        assert crawl.summary["rejected_entries"] == {"of another host": 1}


def test_include_and_exclude_apply_to_entries(tmp_path: Path) -> None:
    with served(tmp_path, one_site) as web:
        crawl = web.crawl("--include", "/$")
        assert pages(crawl) == ["/"] and crawl.summary["rejected_entries"] == {"include": 1}


@pytest.mark.parametrize("flag", ["--sitemaps", "--no-sitemaps"])
def test_a_sitemap_or_feed_given_as_a_seed_is_read(tmp_path: Path, flag: str) -> None:
    def sites(url: Callable[[str], str]) -> Mapping[str, Site]:
        listed = {f"/{name}": page() for name in ("listed", "news")}
        maps = {"/deep/map.xml": answer(index(url("a.test/deep/2.xml"))), "/feed.xml": rss(url("a.test/news"))}
        return {"a.test": {**listed, **maps, "/deep/2.xml": answer(urlset(url("a.test/listed")))}}

    with served(tmp_path, sites) as web:
        crawl = web.crawl(flag, seeds=("a.test/deep/map.xml", "a.test/feed.xml"))
        assert pages(crawl) == ["/deep/map.xml", "/feed.xml", "/listed", "/news"]
        assert web.requests().count("/deep/map.xml") == 1


def test_a_redirected_sitemap_is_followed(tmp_path: Path) -> None:
    def sites(url: Callable[[str], str]) -> Mapping[str, Site]:
        found = {"/": page(), "/listed": page(), "/sitemap.xml": moved("/deep/real.xml")}
        return {"a.test": {**found, "/deep/real.xml": answer(urlset(url("a.test/listed")))}}

    with served(tmp_path, sites) as web:
        assert pages(web.crawl()) == ["/", "/listed"]


# ---- limits of a crawl


def test_lists_do_not_use_the_goal_of_pages(tmp_path: Path) -> None:
    with served(tmp_path, one_site) as web:
        crawl = web.crawl("--max-pages", "2")
        assert crawl.summary["pages_fetched"] == 2 and crawl.summary["stopped_by"] == "max-pages"
        assert pages(crawl) == ["/", "/listed"]


def test_with_one_page_per_visit_every_second_visit_requests_a_list(tmp_path: Path) -> None:
    def sites(url: Callable[[str], str]) -> Mapping[str, Site]:
        maps = {f"/m{n}.xml": answer(urlset(url(f"a.test/p{n}"))) for n in range(4)}
        found = {
            "/": page("/x", "/y"),
            "/x": page(),
            "/y": page(),
            "/sitemap.xml": answer(index(*(url(f"a.test{m}") for m in maps))),
        }
        return {"a.test": {**found, **maps, **{f"/p{n}": page() for n in range(4)}}}

    with served(tmp_path, sites) as web:
        crawl = web.crawl("--per-connection", "1")
        assert len(pages(crawl)) == 7
        kinds = ["xml" in target for target in web.requests()[1:]]
        assert kinds[:8] == [False, True] * 4
        assert crawl.summary["politeness_violations"] == 0


@slow
def test_a_long_sitemap_of_a_site_with_one_page_is_read_to_its_end(tmp_path: Path) -> None:
    """The list is read in a thread while nothing else is left to do: the crawl waits for it."""

    def sites(url: Callable[[str], str]) -> Mapping[str, Site]:
        long = urlset(*(url(f"a.test/p{n}") for n in range(2_500)))
        return {"a.test": {"/": page(), "/sitemap.xml": answer(long)}}

    with served(tmp_path, sites) as web:
        crawl = web.crawl("--max-pages", "1")
        assert lists(crawl)["/sitemap.xml"][0] != "read", "the first page comes before the sitemap, and ends the crawl"
        assert run(["crawl", "--resume", str(crawl.folder), "--max-pages", "2", "--quiet", "--max-time", "60"]) == 0
        again = CrawlResult(crawl.folder)
        assert lists(again)["/sitemap.xml"][0] == "read" and again.summary["pages_listed"] == 2_500


# ---- hostile and broken lists


def test_loops_bombs_and_failures_are_bounded(tmp_path: Path, capsys: Captured) -> None:
    def sites(url: Callable[[str], str]) -> Mapping[str, Site]:
        chain = {f"/c{n}.xml": answer(index(url(f"a.test/c{n + 1}.xml"))) for n in range(40)}
        bomb = gzip.compress(f"<urlset><url><loc>{url('a.test/bomb')}</loc></url>".encode() + b" " * (60 << 20), 9)
        entity = f"<!DOCTYPE x [<!ENTITY a '{url('a.test/')}'>]><urlset><url><loc>&a;e</loc></url><url><loc>{url('a.test/ok')}</loc></url>"
        named = ["loop.xml", "c0.xml", "bomb.gz", "entity.xml", "html.xml", "error.xml", "there.xml", "cut.xml"]
        return {
            "a.test": {
                "/": page(),
                "/ok": page(),
                "/robots.txt": answer("\n".join(f"Sitemap: {url('a.test/' + name)}" for name in named), "text/plain"),
                "/loop.xml": answer(index(url("a.test/loop.xml"), url("a.test/back.xml"))),
                "/back.xml": answer(index(url("a.test/loop.xml"))),
                "/bomb.gz": answer(bomb, "application/gzip"),
                "/entity.xml": answer(entity),
                "/html.xml": page("/linked-from-no-page"),
                "/error.xml": page(status="503 Service Unavailable"),
                "/there.xml": moved("/there.xml"),
                "/cut.xml": [b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n<urlset>", "close"],
                **chain,
            }
        }

    with served(tmp_path, sites) as web:
        crawl = web.crawl("--per-connection", "40")
        said = capsys.readouterr()
        counts, states = Counter(web.requests()), lists(crawl)
        assert pages(crawl) == ["/", "/ok"]
        assert counts["/loop.xml"] == counts["/back.xml"] == counts["/bomb.gz"] == counts["/there.xml"] == 1
        assert counts["/error.xml"] <= MOST_REQUESTS and counts["/cut.xml"] <= MOST_REQUESTS
        assert (
            sum(name.startswith("/c") and name.endswith(".xml") for name in counts if name != "/cut.xml")
            == MOST_LEVELS + 1
        )
        assert states["/error.xml"][0] == "failed" and states["/html.xml"][0] == "no list"
        assert states["/bomb.gz"][0] == "read" and crawl.summary["rejected_entries"]["unreadable"] == 1
        assert crawl.summary["errors_by_kind"] == {"http": 1}, "the text of the entity is a path"
        assert said.out == said.err == ""


# ---- after a kill


@slow
def test_a_killed_crawl_requests_the_lists_that_it_has_not_read(tmp_path: Path) -> None:
    slow = [b"", 2.0]

    def sites(url: Callable[[str], str]) -> Mapping[str, Site]:
        maps = {f"/m{n}.xml": [*slow, answer(urlset(url(f"a.test/p{n}")))] for n in range(3)}
        own = {f"/p{n}": page() for n in range(3)}
        return {
            "a.test": {"/": page(), "/sitemap.xml": answer(index(*(url(f"a.test{m}") for m in maps))), **maps, **own}
        }

    with served(tmp_path, sites) as web:
        folder = tmp_path / "killed"
        command = [
            sys.executable,
            "-c",
            "from trapline.cli import main; main()",
            *web.arguments("a.test/"),
            "-o",
            str(folder),
        ]
        process = subprocess.Popen(command)
        try:
            _until(lambda: "/m1.xml" in web.requests())
            _until(lambda: "/sitemap.xml" in _states(folder))
        finally:
            process.kill()
            process.wait()
        before = Counter(web.requests())
        assert run(["crawl", "--resume", str(folder), "--quiet"]) == 0
        crawl = CrawlResult(folder)
        assert pages(crawl) == ["/", "/p0", "/p1", "/p2"]
        assert all(state == "read" for state, _ in lists(crawl).values())
        assert before["/sitemap.xml"] == Counter(web.requests())["/sitemap.xml"] == 1
        assert max(Counter(web.requests()).values()) <= 2


def _states(folder: Path) -> dict[str, str]:
    try:
        with closing(sqlite3.connect(f"file:{folder}/crawl.db?mode=ro", uri=True)) as database:
            sql = "select url, state from published_list join page on page.id = page where state = 'read'"
            return {"/" + url.split("/", 3)[3]: state for url, state in database.execute(sql)}
    except sqlite3.Error:
        return {}


def _until(holds: Callable[[], Any], within_s: float = 240.0) -> None:
    end = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


# ---- several processes, and refetches


@slow
def test_lists_in_several_processes(tmp_path: Path) -> None:
    def sites(url: Callable[[str], str]) -> Mapping[str, Site]:
        own = {"/": page(), "/listed": page(), "/also": page()}
        return {
            "a.test": {**own, "/robots.txt": answer(f"Sitemap: {url('b.test/of-a.xml')}", "text/plain")},
            "b.test": {
                **own,
                "/sitemap.xml": answer(urlset(url("b.test/also"))),
                "/of-a.xml": answer(urlset(url("a.test/listed"), url("b.test/listed"))),
            },
        }

    with served(tmp_path, sites) as web:
        crawl = web.crawl("--processes", "2", seeds=("a.test/", "b.test/"))
        assert sorted(web.requests("a.test")) == ["/", "/listed", "/robots.txt"]
        # A list that a.test's robots.txt names on b.test speaks for both.
        own = ["/", "/also", "/listed", "/of-a.xml", "/robots.txt", "/sitemap.xml"]
        assert sorted(web.requests("b.test")) == own
        assert crawl.summary["lists_read"] == 2 and crawl.summary["urls_known"] == 5


def test_a_crawl_that_refetches_reads_a_guessed_sitemap(tmp_path: Path) -> None:
    with served(tmp_path, one_site) as web:
        crawl = web.crawl("--refresh")
        assert set(pages(crawl)) == {"/", "/listed", "/sitemap.xml"}
        assert json.loads((crawl.folder / "summary.json").read_text())["errors"] == 0
