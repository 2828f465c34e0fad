"""The links of an export agree with what a crawl counted: each reason has as many links as `rejected_links` says."""

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.crawler.live_web import Crawled, crawled
from tests.crawler.small_server import NOT_FOUND, moved, page, small_server, text
from trapline.crawler.discovery.link_urls import MOST_NEW
from trapline.crawler.inspect.summary import REJECTED
from trapline.export.source import ExportSource
from trapline.export.tables import TABLES

ADDRESS = "127.9.0.1"
OTHERS = ("//other.test/", "//other.test/x")
HOSTS = {"a.test": ADDRESS, "w.test": ADDRESS, "b.a.test": ADDRESS}


def link_rows(crawl: Crawled) -> list[dict[str, Any]]:
    with closing(ExportSource(crawl.folder)) as source:
        return [dict(zip(TABLES["links"].columns, row, strict=True)) for row in TABLES["links"].rows(source)]


def crawl_of(folder: Path, answers: Callable[[int], dict[str, bytes]], *seeds: str, **options: Any) -> Crawled:
    """Crawl sites that have these answers by host and target; `answers` is called with the port."""
    port = 0
    with small_server(lambda host, target: answers(port).get(host + target, NOT_FOUND), (ADDRESS,)) as server:
        port = server.port
        urls = [f"http://{seed.replace('/', f':{port}/', 1)}" for seed in seeds]
        chosen = {"scope": "host", "connections": 1, "strategy": "breadth-first", **options}
        return crawled(folder, urls, HOSTS, **chosen)


def test_every_reason_has_the_number_of_links_that_the_crawl_counted(tmp_path: Path) -> None:
    many = [f"/many/{number}" for number in range(MOST_NEW + 20)]
    trap = "/a/b/" * 20
    answers = {
        "a.test/": page("/1", "/1", *OTHERS, "/skip", trap, "http://a.test:22/", "mailto:x", "/missing", "/many", "/re"),
        "a.test/1": page("/", "/skip?1", "//a.test/skip", "//b.a.test/", "#top", "javascript:void(0)"),
        "a.test/re": moved("http://other.test/"),
        "a.test/many": page(*many),
    }  # fmt: skip
    crawl = crawl_of(tmp_path / "c", lambda port: answers, "a.test/", exclude=("/skip",), max_pages=4)
    found = link_rows(crawl)
    reasons = Counter(row["reason"] for row in found if row["reason"])
    counted = crawl.summary["rejected_links"]
    assert {reason: number for reason, number in reasons.items() if reason in REJECTED} == counted
    assert {"host", "exclude", "trap", "too many"} <= counted.keys() and counted["too many"] == 20
    assert reasons["no url"] == 2
    assert len({row["target_id"] for row in found if row["followed"]}) == crawl.summary["urls_known"]
    assert {row["target_status"] for row in found if row["href"] == "/missing"} <= {404, None}


def test_links_beyond_the_limit_of_a_site_have_its_reason(tmp_path: Path) -> None:
    answers = {"a.test/": page(*(f"/{number}" for number in range(15)))}
    crawl = crawl_of(tmp_path / "c", lambda port: answers, "a.test/", pages_per_site=1)
    reasons = Counter(row["reason"] for row in link_rows(crawl))
    assert crawl.summary["rejected_links"] == {"site full": reasons["site full"]} and reasons["site full"] == 6


def test_links_that_were_rejected_before_a_seed_was_redirected_keep_their_reason(tmp_path: Path) -> None:
    """The scope of the crawl grows by the target of the redirect, but only for links that are found afterwards."""

    def answers(port: int) -> dict[str, bytes]:
        return {"a.test/1": page("http://w.test/x"), "a.test/2": moved(f"http://w.test:{port}/"), "w.test/": page("/y")}

    crawl = crawl_of(tmp_path / "c", answers, "a.test/1", "a.test/2")
    assert crawl.summary["rejected_links"] == {"host": 1}
    assert [row["href"] for row in link_rows(crawl) if row["reason"] == "host"] == ["http://w.test/x"]


def test_a_target_that_robots_txt_forbids_is_not_followed(tmp_path: Path) -> None:
    answers = {"a.test/robots.txt": text("User-agent: *\nDisallow: /x\n"), "a.test/": page("/x", "/y")}
    crawl = crawl_of(tmp_path / "c", lambda port: answers, "a.test/")
    found = [(row["href"], row["followed"], row["reason"], row["target_status"]) for row in link_rows(crawl)]
    assert found == [("/x", False, "robots", None), ("/y", True, None, 404)]
