"""A seed that redirects extends the crawl to the target: in one process, after a stop, in several processes, and after growth.

old.test/ -> old.test/en/ -> www.new.test/ -> its pages; all link to far.test, and www.new.test/out redirects there
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.crawling import CrawlResult
from tests.crawler.small_server import NOT_FOUND, SmallServer, moved, page, small_server
from tests.effort import slow
from trapline.cli import run

HOSTS = {"old.test": "127.9.1.1", "www.new.test": "127.9.1.2", "far.test": "127.9.1.3", "second.test": "127.9.1.4"}
EXPECTED = [
    *("old.test/", "old.test/en/", "second.test/", "second.test/q"),
    *("www.new.test/", "www.new.test/a", "www.new.test/b", "www.new.test/c", "www.new.test/out"),
]


class Web:
    """Answers by host and path. The port is known once the web is served."""

    def __init__(self) -> None:
        self.port = 0

    def __call__(self, host: str, target: str) -> bytes:
        far = self.url("far.test/x")
        pages = {
            "old.test/": moved("/en/"),
            "old.test/en/": moved(self.url("www.new.test/")),
            "www.new.test/": page("/a", "/out", far),
            "www.new.test/a": page("/b", far),
            "www.new.test/b": page("/c", self.url("second.test/q"), far),
            "www.new.test/c": page(far),
            "www.new.test/out": moved(far),
            "second.test/": page("/q", far),
            "second.test/q": page(self.url("www.new.test/a"), far),
            "far.test/x": page("/"),
        }
        return pages.get(host + target, NOT_FOUND)

    def url(self, name: str) -> str:
        host, _, path = name.partition("/")
        return f"http://{host}:{self.port}/{path}"


@pytest.fixture
def web(tmp_path: Path) -> Iterator[tuple[SmallServer, list[str]]]:
    """Return a server, and the command-line options for a crawl of it."""
    answers = Web()
    with small_server(answers, tuple(HOSTS.values())) as server:
        answers.port = server.port
        hosts = tmp_path / "hosts"
        hosts.write_text("".join(f"{address} {name}\n" for name, address in HOSTS.items()))
        arguments = [
            "--allow-private",
            "--hosts",
            str(hosts),
            "--delay",
            "0",
            "--pause",
            "0",
            "--per-connection",
            "1",
            "--no-sitemaps",
        ]
        seeds = [answers.url("old.test/"), answers.url("second.test/")]
        yield server, ["crawl", *seeds, *arguments, "--backoff", "0", "--strategy", "breadth-first", "--quiet"]


def fetched_pages(server: SmallServer, folder: Path) -> list[str]:
    """Return hosts and paths of the fetched pages in the folder, and check that the server saw the same."""
    urls = [
        url for (url,) in CrawlResult(folder).rows("select url from fetch join page on page.id = page where result = 3")
    ]
    names = sorted(url.partition("://")[2].replace(f":{server.port}", "") for url in urls)
    assert sorted({one.host + one.target for one in server.log if one.target != "/robots.txt"}) == sorted(set(names))
    return names


def test_the_crawl_continues_at_the_target_of_a_seed(web: tuple[SmallServer, list[str]], tmp_path: Path) -> None:
    server, arguments = web
    assert run([*arguments, "-o", str(tmp_path / "out")]) == 0
    assert fetched_pages(server, tmp_path / "out") == EXPECTED
    summary = CrawlResult(tmp_path / "out").summary
    assert (summary["pages_fetched"], summary["redirects"]) == (len(EXPECTED) - 3, 3)  # old.test/, old.test/en/, out
    assert summary["scope_followed"] == ["www.new.test"]
    rejected = summary["rejected_links"]
    # 8: second.test/q was read before old.test/en/, so its link to www.new.test was out of scope.
    assert rejected in ({"host": 7}, {"host": 8})


def test_redirects_do_not_use_up_the_page_goal_and_the_end_names_the_host_that_the_scope_followed(
    web: tuple[SmallServer, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server, (command, old, _, *arguments) = web
    arguments.remove("--quiet")
    assert run([command, old, *arguments, "-o", str(tmp_path / "out"), "--max-pages", "2"]) == 0
    assert fetched_pages(server, tmp_path / "out")[:3] == ["old.test/", "old.test/en/", "www.new.test/"]
    said = capsys.readouterr().out
    assert said.startswith("2 pages, ") and "scope: followed the redirects of seeds to www.new.test" in said


def test_a_crawl_of_redirects_alone_has_no_page_and_says_so(
    web: tuple[SmallServer, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, (command, old, _, *arguments) = web
    assert run([command, old, *arguments, "-o", str(tmp_path / "out"), "--exclude", "new"]) == 3
    assert (
        "no page was fetched: 2 redirects to URLs that the crawl rejects: 1 (another host)" in capsys.readouterr().err
    )


def test_without_a_redirecting_seed_the_crawl_stays_on_its_host(
    web: tuple[SmallServer, list[str]], tmp_path: Path
) -> None:
    server, (command, _, second, *arguments) = web
    assert run([command, second, *arguments, "-o", str(tmp_path / "out")]) == 0
    assert fetched_pages(server, tmp_path / "out") == ["second.test/", "second.test/q"]


@pytest.mark.parametrize("pages", range(1, 6))
def test_a_resumed_crawl_remembers_the_target(web: tuple[SmallServer, list[str]], tmp_path: Path, pages: int) -> None:
    server, arguments = web
    assert run([*arguments, "-o", str(tmp_path / "out"), "--max-pages", str(pages)]) == 0
    assert run(["crawl", "--resume", str(tmp_path / "out"), "--max-pages", "100", "--quiet"]) == 0
    assert fetched_pages(server, tmp_path / "out") == EXPECTED


@slow
def test_all_partitions_learn_the_target(web: tuple[SmallServer, list[str]], tmp_path: Path) -> None:
    server, arguments = web
    assert run([*arguments, "-o", str(tmp_path / "out"), "--processes", "3"]) == 0
    assert fetched_pages(server, tmp_path / "out") == EXPECTED


@slow
@pytest.mark.parametrize("pages", [2, 4])
def test_a_partition_that_joins_later_learns_the_target_too(
    web: tuple[SmallServer, list[str]], tmp_path: Path, pages: int
) -> None:
    server, arguments = web
    assert run([*arguments, "-o", str(tmp_path / "out"), "--processes", "2", "--max-pages", str(pages)]) == 0
    grown = ["--processes", "4", "--max-pages", "100", "--quiet"]
    assert run(["crawl", "--resume", str(tmp_path / "out"), *grown]) == 0
    assert fetched_pages(server, tmp_path / "out") == EXPECTED


def test_explain_knows_the_target(
    web: tuple[SmallServer, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server, arguments = web
    assert run([*arguments, "-o", str(tmp_path / "out")]) == 0
    for name, says in (("www.new.test", "does not know this page; did you mean"), ("far.test", "another host")):
        run(["explain", str(tmp_path / "out"), f"http://{name}:{server.port}/never"])
        said = capsys.readouterr()
        assert says in said.out + said.err, name
