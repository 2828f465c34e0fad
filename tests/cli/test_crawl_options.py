"""Each option of `trapline crawl` has its documented effect, as seen in the fetched pages, the crawl folder or the server's log."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import trustme
from warcio import ArchiveIterator

from tests.cli.crawling import FAST, Captured, CrawlResult, crawl, hosts_of, name_server
from tests.fetch.name_server import Name
from tests.testweb.webs import SIZE, numbered, recorded
from trapline.cli import run
from trapline.graph import save
from trapline.testweb import ROBOTS_FILE, Behaviour, Served, build_web, serve

HOSTED = (
    "http://www.one.test/",
    "http://www.one.test/a",
    "http://www.one.test/b.pdf",
    "http://www.one.test/c?x=1",
    "http://shop.one.test/",
    "http://two.test/",
    "http://two.test/d",
)
OWN = """
from trapline.frontier.ranking import page_rank
from trapline.strategies import PageRank, Strategy, top_page

@page_rank
def rank(s, page, source, links, is_new):
    return float(page)

STRATEGY = Strategy("mine", PageRank("mine", rank), top_page.SITE)
"""


@pytest.fixture(scope="module")
def hosted() -> Iterator[Served]:
    """Each page links to all pages, also to those of other hosts and domains."""
    with serve(build_web(recorded(HOSTED))) as server:
        yield server


@pytest.fixture(scope="module")
def chain() -> Iterator[Served]:
    """One site of nine pages. Each page links to the next one; a third of the pages are dynamic."""
    with serve(build_web(numbered(1, 9, [[page + 1] for page in range(8)] + [[]]), names="address")) as server:
        yield server


@pytest.fixture(scope="module")
def slow() -> Iterator[Served]:
    """One slow site of thirty pages, all linked from the first."""
    graph = numbered(1, 30, [list(range(30))] + [[]] * 29)
    with serve(build_web(graph, Behaviour(latency_s=0.03), names="address")) as server:
        yield server


def pages(server: Served, *numbers: int) -> list[str]:
    return [server.web.paths[number] for number in numbers]


def archived(left: CrawlResult, kind: str) -> list[bytes]:
    with next((left.folder / "warc").iterdir()).open("rb") as file:
        return [
            one.content_stream().read() for one in ArchiveIterator(file, no_record_parse=True) if one.rec_type == kind
        ]


# ---- which pages are crawled


@pytest.mark.parametrize(
    ("options", "hosts", "count"),
    [
        ([], {"www.one.test"}, 4),
        (["--scope", "host"], {"www.one.test"}, 4),
        (["--scope", "domain"], {"www.one.test", "shop.one.test"}, 5),
        (["--scope", "any"], {"www.one.test", "shop.one.test", "two.test"}, 7),
        (
            [
                "--scope",
                "any",
                "--include",
                r"one\.test",
                "--include",
                "/d$",
                "--exclude",
                r"\.pdf$",
                "--exclude",
                "x=",
            ],
            None,
            4,
        ),
        (["--scope", "any", "--max-pages-per-site", "2"], None, 5),
    ],
)
def test_scope(hosted: Served, tmp_path: Path, options: list[str], hosts: set[str] | None, count: int) -> None:
    left = crawl(tmp_path / "out", hosted.seed_urls[0], "--hosts", hosts_of(hosted, tmp_path), *options)
    assert left.summary["pages_fetched"] == count
    assert hosts is None or left.hosts() == hosts


def test_depth_is_counted_in_links_from_a_seed(chain: Served, tmp_path: Path) -> None:
    left = crawl(tmp_path / "static", *chain.seed_urls, "--max-depth", "4")
    assert left.targets() == pages(chain, 0, 1, 2, 3, 4, 5)  # page 5 is dynamic, page 6 is not
    left = crawl(tmp_path / "dynamic", *chain.seed_urls, "--max-depth-dynamic", "4")
    assert left.targets() == pages(chain, 0, 1, 2, 3, 4)
    assert "?" in chain.web.paths[5] and "?" not in chain.web.paths[6]


# ---- when the crawl stops


def test_the_crawl_stops_at_its_goals(slow: Served, tmp_path: Path) -> None:
    some = crawl(tmp_path / "pages", *slow.seed_urls, "--max-pages", "7", "--http", "pipelining")
    assert (some.summary["pages_fetched"], some.summary["stopped_by"]) == (7, "max-pages")
    large = crawl(tmp_path / "bytes", *slow.seed_urls, "--max-bytes", str(5 * SIZE))
    assert 4 <= large.summary["pages_fetched"] <= 6 and large.summary["stopped_by"] == "max-bytes"
    long = crawl(tmp_path / "time", *slow.seed_urls, "--max-time", "200ms")
    assert long.summary["pages_fetched"] < 30 and long.summary["stopped_by"] == "max-time"


# ---- how requests are sent


def requests_of(server: Served, folder: Path, *options: str) -> np.ndarray:
    """The rows of the server's log for one crawl."""
    before = len(server.log())
    crawl(folder, *server.seed_urls, *options)
    return server.log()._rows[before:]


def test_http_1_0_sends_one_request_per_connection(slow: Served, tmp_path: Path) -> None:
    seen = requests_of(slow, tmp_path / "one", "--http", "1.0", "--max-pages", "5")
    assert len(np.unique(seen["connection"])) == len(seen) == 6
    assert archived(CrawlResult(tmp_path / "one"), "request")[-1].split(b"\r\n")[0].endswith(b" HTTP/1.0")
    seen = requests_of(slow, tmp_path / "kept", "--http", "1.1", "--max-pages", "5")
    assert len(np.unique(seen["connection"])) == 1


def test_pipelining_sends_requests_before_the_first_answer(slow: Served, tmp_path: Path) -> None:
    def overlaps(*options: str) -> bool:
        seen = requests_of(slow, tmp_path / options[-1], *options)
        return bool((seen["arrival_s"][1:] < seen["end_s"][:-1]).any())

    assert overlaps("--http", "pipelining") and not overlaps("--http", "1.1")


def test_the_pause_separates_two_pages_of_a_visit(slow: Served, tmp_path: Path) -> None:
    seen = requests_of(slow, tmp_path / "out", "--pause", "100ms", "--max-pages", "4")
    gaps = seen["arrival_s"][1:] - seen["end_s"][:-1]
    # The second gap lies between two visits, where --delay applies
    assert len(gaps) == 4 and (np.delete(gaps, 1) >= 0.1).all()


def test_a_visit_has_k_pages(slow: Served, tmp_path: Path) -> None:
    left = crawl(tmp_path / "out", *slow.seed_urls, "--per-connection", "4", "--max-pages", "13")
    assert [number for (number,) in left.rows("select count(*) from fetch group by visit")] == [1, 4, 4, 4]


def test_the_user_agent_names_the_contact_and_links_are_archived(chain: Served, tmp_path: Path) -> None:
    left = crawl(tmp_path / "out", *chain.seed_urls, "--contact", "https://example.org/bot", "--metadata")
    assert all(
        b"User-Agent: trapline/" in one and b"(+https://example.org/bot)" in one for one in archived(left, "request")
    )
    assert any(chain.web.paths[1].encode() in one for one in archived(left, "metadata"))
    assert archived(crawl(tmp_path / "plain", *chain.seed_urls), "metadata") == []


def test_archives_have_the_size_and_the_prefix_that_the_user_wants_also_after_a_resume(
    chain: Served, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    crawl(folder, *chain.seed_urls, "--warc-size", "1kB", "--warc-prefix", "my-web", "--max-pages", "3")
    before = sorted(path.name for path in (folder / "warc").iterdir())
    assert run(["crawl", "--resume", str(folder), "--max-pages", "6", "--quiet"]) == 0
    names = sorted(path.name for path in (folder / "warc").iterdir())
    assert len(before) > 1 and len(names) > len(before)
    assert names == [f"my-web-{number:05d}.warc.gz" for number in range(len(names))]
    assert run(["verify", str(folder)]) == 0


def test_a_prefix_that_is_no_file_name_is_refused_before_the_crawl(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for prefix in ("a/b", "", ".hidden", "two\nlines"):
        command = ["crawl", "http://a.test/", "-o", str(tmp_path / "out"), "--warc-prefix", prefix]
        assert run(command) == 2
        said = capsys.readouterr().err
        assert "the prefix of WARC files" in said and said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_the_given_name_server_is_used(hosted: Served, tmp_path: Path) -> None:
    names = {name: Name((address,)) for name, address in hosted.hosts.items()}
    with name_server(names) as where:
        left = crawl(tmp_path / "out", hosted.seed_urls[0], "--scope", "any", "--nameserver", where)
    assert left.summary["pages_fetched"] == len(HOSTED)


def test_invalid_certificates_are_accepted_only_on_request(tmp_path: Path) -> None:
    trustme.CA().issue_cert("site-0.test").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "cert.pem"))
    with serve(build_web(numbered(1, 3)), tls=(tmp_path / "cert.pem", None)) as server:
        given = (*server.seed_urls, "--hosts", hosts_of(server, tmp_path), "--max-failed-visits", "1")
        wary, trusting = (
            crawl(tmp_path / "wary", *given, exit_code=3),
            crawl(tmp_path / "trusting", *given, "--insecure"),
        )
    assert (wary.summary["pages_fetched"], trusting.summary["pages_fetched"]) == (0, 3)
    assert set(wary.summary["errors_by_kind"]) == {"tls"}


# ---- failures


def test_failed_pages_are_retried_as_often_as_the_option_says(tmp_path: Path) -> None:
    with serve(build_web(numbered(1, 1, [[]]), Behaviour(faults=(("error", 1.0),)), names="address")) as server:
        for retries in (0, 3):
            left = crawl(
                tmp_path / f"{retries}",
                *server.seed_urls,
                "--retries",
                retries,
                "--max-failed-visits",
                "99",
                exit_code=3,
            )
            assert left.summary["errors"] == len(left.rows("select 1 from fetch")) == retries + 1


def test_slow_and_large_responses_are_cut_at_their_limits(chain: Served, tmp_path: Path) -> None:
    left = crawl(tmp_path / "large", *chain.seed_urls, "--max-body", "1kB", "--max-pages", "1")
    assert left.rows("select truncated, bytes from fetch") == [("length", 1000)]
    with serve(build_web(numbered(1, 1, [[]]), Behaviour(faults=(("silent", 1.0),)), names="address")) as server:
        left = crawl(tmp_path / "slow", *server.seed_urls, "--timeout", "200ms", "--retries", "0", exit_code=3)
    assert left.rows("select error from fetch") == [("timeout",)]


# ---- order of pages


ONE_BY_ONE = ("--connections", "1", "--per-connection", "1")


@pytest.fixture(scope="module")
def star() -> Iterator[Served]:
    """One site of six pages, all linked from the first."""
    urls = [f"http://127.1.0.1:{{}}/{name}" for name in ("", "a", "b", "c", "d", "e")]
    graph = recorded([url.replace(":{}", "") for url in urls])
    with serve(build_web(graph, names="address")) as server:
        yield server


def values_of(server: Served, file: Path) -> Path:
    file.write_text(
        "".join(
            f"{server.seed_urls[0]}{name}\t{quality}\n" for name, quality in zip("abcde", (2, 9, 4, 7, 1), strict=True)
        )
    )
    return file


@pytest.mark.parametrize("strategy", ["quality", "omniscient"])
def test_quality_from_a_file(star: Served, tmp_path: Path, strategy: str) -> None:
    values = values_of(star, tmp_path / "values")
    left = crawl(tmp_path / "out", *star.seed_urls, *ONE_BY_ONE, "--strategy", strategy, "--quality", values)
    assert left.targets() == ["/", "/b", "/d", "/c", "/a", "/e"]
    assert left.summary["quality"] == pytest.approx(23.0)


def test_quality_from_a_function_also_after_a_resume_in_another_folder(
    star: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    here, folder = tmp_path / "here", tmp_path / "out"
    here.mkdir()
    (here / "last_letter.py").write_text("def last(urls):\n    return [ord(url[-1]) for url in urls]\n")
    (here / "mine.py").write_text(OWN)
    monkeypatch.chdir(here)
    crawl(
        folder,
        *star.seed_urls,
        *ONE_BY_ONE,
        "--quality",
        "last_letter:last",
        "--strategy",
        "quality",
        "--max-pages",
        "2",
    )
    crawl(tmp_path / "mine", *star.seed_urls, *ONE_BY_ONE, "--strategy", "mine.py+fifo", "--max-pages", "2")
    monkeypatch.chdir(tmp_path)
    del sys.modules["last_letter"]  # as in a new process
    for name in ("out", "mine"):
        assert run(["crawl", "--resume", name, "--max-pages", "9", "--quiet"]) == 0
    assert CrawlResult(folder).targets() == ["/", "/e", "/d", "/c", "/b", "/a"]
    assert CrawlResult(tmp_path / "mine").targets() == ["/", "/e", "/d", "/c", "/b", "/a"]
    assert capsys.readouterr().err == ""


def test_a_quality_function_that_fails_later_is_reported_and_the_crawl_can_resume(
    star: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "moody.py").write_text(
        "bad = True\ndef f(urls):\n    return [1 / (url[-1] != 'd' or not bad) for url in urls]\n"
    )
    given = ("--quality", "moody:f", "--strategy", "quality", "-o", str(tmp_path / "out"))
    assert run(["crawl", *star.seed_urls, *FAST, *given]) == 2
    assert "--quality moody:f: raises ZeroDivisionError" in capsys.readouterr().err
    __import__("moody").bad = False
    assert run(["crawl", "--resume", str(tmp_path / "out"), "--quiet"]) == 0
    assert len(CrawlResult(tmp_path / "out").targets()) == 6


def test_history_may_be_an_old_crawl_a_graph_or_a_file(star: Served, tmp_path: Path) -> None:
    graph = recorded([f"{star.seed_urls[0]}{name}" for name in ("", "a", "b", "c", "d", "e")])
    save(graph, tmp_path / "graph")
    given = (*star.seed_urls, *ONE_BY_ONE, "--strategy", "historical-pagerank-zero", "--history")
    left = crawl(tmp_path / "by-file", *given, values_of(star, tmp_path / "values"))
    assert left.targets() == ["/", "/b", "/d", "/c", "/a", "/e"]
    assert len(crawl(tmp_path / "by-graph", *given, tmp_path / "graph").targets()) == 6
    assert len(crawl(tmp_path / "by-crawl", *given, tmp_path / "by-file").targets()) == 6


def test_a_batch_is_fetched_before_other_pages(star: Served, tmp_path: Path) -> None:
    """With K = 1 every page is a batch. A better page that is discovered later therefore waits for no other page."""
    values = values_of(star, tmp_path / "values")
    left = crawl(
        tmp_path / "out", *star.seed_urls, *ONE_BY_ONE, "--strategy", "quality", "--quality", values, "--batch", "1"
    )
    assert left.targets() == ["/", "/b", "/d", "/c", "/a", "/e"]


def test_robots_txt_is_requested_first(chain: Served, tmp_path: Path) -> None:
    assert requests_of(chain, tmp_path / "out")["page"][0] == ROBOTS_FILE
