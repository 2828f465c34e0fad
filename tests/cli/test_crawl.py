"""`trapline crawl`: its help, its output and its exit codes. Invalid input is reported in one line with exit code 2,
before any long work, and leaves no folder."""

import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.cli.crawling import FAST, Captured, CrawlResult, crawl, name_server
from tests.crawler.small_server import page, small_server, text
from tests.effort import slow
from tests.fetch.name_server import Name
from tests.testweb.webs import numbered
from trapline.cli import run
from trapline.cli.crawl.options import SECTIONS
from trapline.crawler.engine.fetch_results import FetchResults
from trapline.crawler.engine.options import CONNECTIONS, PAUSE_S, CrawlOptions, live_rules
from trapline.crawler.files import opening as seeds
from trapline.fetch.limits import Limits
from trapline.testweb import Served, build_web, serve

HERE = ("http://127.0.0.1:9/", "--allow-private")
_WRONG_RANK = """
from trapline.frontier.ranking import page_rank
from trapline.strategies import PageRank, Strategy, top_page

@page_rank
def rank(s, page, source, links, is_new):
    return 1e400 - 1e400

STRATEGY = Strategy("mine", PageRank("mine", rank), top_page.SITE)
"""
REQUIRED = {
    "pages_fetched", "errors", "bytes", "seconds", "pages_per_second", "sites", "urls_known", "politeness_violations",
    "strategy",
}  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with serve(build_web(numbered(3, 6), names="address")) as server:
        yield server


def error_line(capsys: Captured, *args: object) -> str:
    """Run a crawl that must fail with exit code 2, and return its only line of output."""
    assert run(["crawl", *map(str, args)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("trapline: error: ") and said.err.count("\n") == 1, said.err
    return said.err


@pytest.fixture
def no_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make compilation fail, so that a test shows that nothing is compiled."""
    monkeypatch.delattr("trapline.cli.crawl.command.compile_for")


# ---- invalid input


@pytest.mark.usefixtures("no_compilation")
@pytest.mark.parametrize(
    ("args", "named"),
    [
        (["http://exa mple/"], "'http://exa mple/': not an http or https URL"),
        (["http://[::1/"], "not an http or https URL"),
        (["ftp://example.org/"], "not an http or https URL"),
        (["http://a/\x1b[2J" + "x" * 3_000], r"'http://a/\x1b[2Jxx"),
        (["/etc/hosts"], "not an http or https URL"),
        (["mailto:me@example.org"], "not an http or https URL"),
        (["htp:/foo"], "not an http or https URL"),
        ([""], "not an http or https URL"),
        ([], "no seed URL"),
        ([*HERE, "--small-site-delay", "9"], "--small-site-delay has no effect without small sites"),
        ([*HERE, "--http", "1.0", "--per-connection", "5"], "--per-connection has no effect with --http 1.0"),
        ([*HERE, "--history", "."], "--history has no effect with crawl-ability"),
        (["http://127.0.0.1:9/"], "127.0.0.1 is a loopback address; give --allow-private"),
        (["http://10.1.2.3/"], "10.1.2.3 is a private address; give --allow-private"),
        (
            ["http://169.254.169.254/", "--allow-private"],
            "link-local address, which is never connected to; give another URL",
        ),
        (["http://300.1.1.1/"], "300.1.1.1"),
        ([*HERE, "--strategy", "crawl-abilty"], "did you mean 'crawl-ability'?"),
        ([*HERE, "--strategy", "mine.py"], "mine.py: no such strategy file"),
        ([*HERE, "--strategy", "omniscient"], "give --quality FILE or MODULE:FUNCTION"),
        ([*HERE, "--page-rank", "historical-pagerank-zero"], "give --history"),
        ([*HERE, "--strategy", "historical-pagerank-parent"], "give --history"),
        ([*HERE, "--quality", "pagerank"], "--quality pagerank: the PageRank of the live web is not known"),
        ([*HERE, "--quality", "no/file"], "--quality no/file: not a file, and not MODULE:FUNCTION"),
        ([*HERE, "--history", "no/file"], "no/file"),
        ([*HERE, "--include", "("], "--include '(' is not a regular expression"),
        ([*HERE, "--exclude", "a{999999999999}"], "--exclude"),
        ([*HERE, "--scope", "hosts"], "'hosts' is not one of"),
        ([*HERE, "--http", "2"], "'2' is not one of"),
        ([*HERE, "--nameserver", "ns.example.org"], "--nameserver ns.example.org: not an IP address"),
        ([*HERE, "--contact", "me\r\nX-Evil: yes"], "one line of printable ASCII"),
        ([*HERE, "--batch-ahead"], "also give --batch"),
        ([*HERE, "--max-pages", "0"], "'--max-pages': 0"),
        ([*HERE, "--connections", "0"], "'--connections': 0"),
        ([*HERE, "--max-body", "0"], "'--max-body': 0"),
        ([*HERE, "--timeout", "0"], "'--timeout': 0"),
        ([*HERE, "--bandwidth", "fast"], "'fast' is not a number of bytes per second"),
        ([*HERE, "--delay", "nan"], "'--delay': nan"),
    ],
)
def test_invalid_input_is_reported_in_one_line_and_creates_no_folder(
    args: list[str], named: str, tmp_path: Path, capsys: Captured
) -> None:
    assert named in error_line(capsys, *args, "-o", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("no_compilation")
def test_an_unknown_host_is_reported(tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeds, "_WITHIN_S", 0.2)
    with name_server({"silent.test": Name(silent=True)}) as where:
        given = ("--nameserver", where, "-o", tmp_path / "out")
        assert "http://no.such.host/: no such host: no.such.host; check its spelling" in error_line(
            capsys, "no.such.host", *given
        )
        assert "no name server answered for silent.test" in error_line(capsys, "http://silent.test/", *given)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("no_compilation")
def test_an_unusable_folder_is_reported(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "file").touch()
    before = sorted(tmp_path.iterdir())
    said = {name: error_line(capsys, *HERE, "-o", tmp_path / name) for name in ("file", "file/out", "no/out", ".")}
    assert "exists and is not a folder" in said["file"]
    assert "Not a directory" in said["file/out"]
    assert "there is no folder" in said["no/out"]
    assert "exists and holds other files (file)" in said["."]
    assert "no folder for the crawl; give one: trapline crawl URL -o DIR" in error_line(capsys, *HERE)
    assert "cannot write /proc/out" in error_line(capsys, *HERE, "-o", "/proc/out")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.usefixtures("no_compilation")
@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", "contains no URL"),
        (b"# nothing\n\n", "contains no URL"),
        (b"\x89PNG\r\n\x1a\n\x00", "row 1: byte 1 is not UTF-8"),
        (b"http://a.test/\nhttp://" + b"x" * 10_000_000, "row 2: 'http://xxx"),
        (b"http://a.test/\n/relative\n", "row 2: '/relative': not an http or https URL"),
    ],
)
def test_an_invalid_seed_file_is_reported(content: bytes, named: str, tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "seeds"
    file.write_bytes(content)
    said = error_line(capsys, "--seeds", file, "-o", tmp_path / "out")
    assert f"{file}" in said and named in said and len(said) < 400
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("no_compilation")
def test_an_invalid_hosts_file_is_reported(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "hosts"
    file.write_text("a.test 127.0.0.1\n")
    assert f"{file}, line 1: 'a.test' is not an IP address" in error_line(capsys, *HERE, "--hosts", file, "-o", "out")


@pytest.mark.usefixtures("no_compilation")
def test_a_quality_function_that_returns_nothing_creates_no_folder(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.py").write_text("def none(urls):\n    return []\n")
    for source, named in (
        ("odd:none", "it must return 1 numbers, not 0"),
        ("odd:two", "'two'"),
        ("no_such:f", "no_such"),
    ):
        assert named in error_line(capsys, *HERE, "--quality", source, "-o", "out")
    assert not (tmp_path / "out").exists()


# ---- valid input


def test_a_crawl_with_default_options(server: Served, tmp_path: Path, capsys: Captured) -> None:
    options = [
        "--strategy",
        "crawl-ability",
        "--connections",
        "100",
        "--delay",
        "0",
        "--max-pages",
        "11",
        "--allow-private",
        "--no-sitemaps",  # the answers to requests for them would add to the bytes
    ]
    assert run(["crawl", *server.seed_urls, "-o", str(tmp_path / "out"), *options]) == 0
    said, left = capsys.readouterr(), CrawlResult(tmp_path / "out")
    assert "11 pages, 22 kB, 0 errors in " in said.out and "stopped by: --max-pages" in said.out
    assert set(left.summary) >= REQUIRED
    assert (left.summary["pages_fetched"], left.summary["strategy"]) == (11, "crawl-ability")
    assert left.summary["politeness_violations"] == left.summary["errors"] == 0
    loop, store = left.summary["processor"]["loop"], left.summary["processor"]["store"]
    assert loop["user_s"] > 0 and store["user_s"] + store["system_s"] > 0 and loop["idle_s"] >= 0
    assert (tmp_path / "out" / "index.cdxj").stat().st_size > 0 and list((tmp_path / "out" / "warc").iterdir())
    assert "exists and holds a crawl; continue with --resume" in error_line(capsys, *HERE, "-o", tmp_path / "out")


def test_seeds_from_a_file_and_json_output(server: Served, tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "seeds"
    file.write_text("# begin here\n\n" + "".join(f"  {url.removeprefix('http://')} \n" for url in server.seed_urls))
    assert run(["crawl", "--seeds", str(file), *FAST, "--json", "-o", str(tmp_path / "out")]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == CrawlResult(tmp_path / "out").summary
    assert said.err == "" and json.loads(said.out)["pages_fetched"] == 18


def test_unreachable_seeds_are_named_and_the_others_are_crawled(
    server: Served, tmp_path: Path, capsys: Captured
) -> None:
    with name_server({}) as where:
        args = ("http://no.such.host/a", server.seed_urls[0], "--nameserver", where, *FAST[:-1], "--max-pages", "1")
        assert run(["crawl", *args, "-o", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("trapline: note: http://no.such.host/a: no such host: no.such.host; check its spelling")
    assert [line for line in said if line.startswith("trapline: note")] == said[:1]


@pytest.mark.parametrize("quiet", [False, True])
def test_a_seed_that_refuses_connections_is_reported_at_once_and_the_crawl_fails(
    tmp_path: Path, capsys: Captured, quiet: bool
) -> None:
    out, last = (
        tmp_path / "out",
        "trapline: error: no page was fetched: {} (connection refused); check the address; another address needs another folder (-o);"
        " if the server was down, run",
    )
    options = ["--backoff", "0", "--delay", "0.1", "--quiet" if quiet else "--plain"]
    assert run(["crawl", *HERE, *options, "-o", str(out)]) == 3
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == f"{last.format('1 error')}: trapline crawl --resume {out}"
    assert run(["crawl", "--resume", str(out), "--quiet"]) == 3  # it tries again, once
    assert capsys.readouterr().err.startswith(last.format("2 errors"))
    notes = [line for line in said[:-1] if "connection refused" in line]
    end = "connection refused; no seed can be reached, so the crawl ends; check the address"
    assert notes == ([] if quiet else [f"trapline: note: http://127.0.0.1:9/: {end}"]) and (len(said) == 1) == quiet


def test_the_url_of_a_page_with_a_wrong_rank_is_named(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "mine.py").write_text(_WRONG_RANK)
    options = ["--strategy", str(tmp_path / "mine.py"), "--quiet", "-o", str(tmp_path / "out")]
    assert run(["crawl", *HERE, *options]) == 2
    assert "of page 0 is not a finite number under 2^42; the page is http://127.0.0.1:9/" in capsys.readouterr().err


def test_a_crawl_whose_pages_are_all_refused_says_so(tmp_path: Path, capsys: Captured) -> None:
    with small_server(
        lambda host, target: text("User-agent: *\nDisallow: /") if "robots" in target else page()
    ) as server:
        assert run(["crawl", f"http://127.9.0.1:{server.port}/", *FAST, "-o", str(tmp_path / "out")]) == 3
    assert "no page was fetched: 1 page forbidden by robots.txt" in capsys.readouterr().err


def test_a_crawl_without_its_password_says_what_to_do(tmp_path: Path, capsys: Captured) -> None:
    with small_server(lambda host, target: page(status="401 Unauthorized")) as server:
        assert run(["crawl", f"http://127.9.0.1:{server.port}/", *FAST, "-o", str(tmp_path / "out")]) == 3
    said = capsys.readouterr().err
    assert (
        "no page was fetched: 1 error (answers with status 401); the server asks for a password: give it with" in said
    )


def test_a_resumed_crawl_keeps_its_options(server: Served, tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "out"
    crawl(folder, *server.seed_urls, "--max-pages", "5")
    for args, named in (
        (["http://a.test/"], "omit the URL"),
        (["--alpha", "0.5"], "--alpha cannot change with --resume: the crawl has estimated the times of its sites"),
        (["-o", "other"], "--output cannot change"),
        (["--seeds", __file__], "--seeds cannot change"),
        (["--metadata"], "--metadata cannot change"),
        (["--warc-size", "1kB"], "--warc-size cannot change"),
        (["--warc-prefix", "x"], "--warc-prefix cannot change"),
    ):
        assert named in error_line(capsys, "--resume", folder, *args)
    assert "name the folder of a crawl" in error_line(capsys, "--resume", tmp_path)
    at_once = ("--resume", folder, "--max-pages", "18", "--max-time", "1ms")
    assert "; give a --max-time above that to continue" in error_line(capsys, *at_once)
    assert run(["crawl", "--resume", str(folder), "--max-pages", "18", "--plain"]) == 0
    assert CrawlResult(folder).summary["pages_fetched"] == 18 and CrawlResult(folder).summary["resumed"] == 1
    assert len(set(CrawlResult(folder).rows("select page from fetch"))) == 18


class ImmediateTimer:
    """A timer that fires at once, as if everything took long."""

    def __init__(self, after_s: float, function: Callable[[str], None], given: tuple[str]) -> None:
        assert after_s == 2.0
        self._function, self._given = function, given

    def start(self) -> None:
        self._function(*self._given)

    def cancel(self) -> None:
        pass

    def join(self) -> None:
        pass


def test_a_slow_opening_of_a_folder_is_announced(
    server: Served, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = crawl(tmp_path / "out", *server.seed_urls, "--max-pages", "1").folder
    capsys.readouterr()
    monkeypatch.setattr("threading.Timer", ImmediateTimer)
    assert run(["crawl", "--resume", str(folder), "--max-pages", "2", "--plain"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if line.startswith("opening ")] == [
        f"opening {folder}: checking its database ...",
        f"opening {folder} ...",
    ]
    assert run(["crawl", "--resume", str(folder), "--max-pages", "3", "--quiet"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("args", "lines"),
    [
        (
            ["--delay", "15"],
            [
                "crawling {host} and each host that a seed redirects to (--scope host);"
                " stops after 1 page, or when nothing is left",
                "pace: one site, 10 pages every 24 s (--per-connection, --pause, --delay)",
            ],
        ),
        (
            ["--per-connection", "0", "--delay", "15"],
            [
                "crawling {host} and each host that a seed redirects to (--scope host); stops after 1 page, or when nothing"
                " is left",
                "pace: as many pages per visit as the server allows, one every 1 s, with 15 s between two visits to a site"
                " (--per-connection, --pause, --delay)",
            ],
        ),
        (
            ["--scope", "any", "--http", "1.0", "--delay", "1", "--max-time", "2h"],
            [
                "crawling from 1 seed to any site that links lead to (--scope any); stops after 1 page or 2 h, or when nothing is left",
                "pace: 1 page of each site every 1 s (--per-connection, --pause, --delay)",
            ],
        ),
        (
            ["--scope", "domain", "--delay", "0", "--continuous", "--max-bytes", "20MB"],
            [
                "crawling {host} and each domain that a seed redirects to (--scope domain);"
                " stops after 1 page or 20 MB, or at Ctrl-C",
                "no delay (--delay 0): each site gets requests as fast as it answers; use this only on your own sites",
            ],
        ),
    ],
)
def test_a_crawl_first_prints_its_plan(
    args: list[str], lines: list[str], server: Served, tmp_path: Path, capsys: Captured
) -> None:
    folder, seed = tmp_path / "its folder", server.seed_urls[0]
    assert run(["crawl", seed, "--allow-private", "--max-pages", "1", *args, "-o", str(folder)]) == 0
    host = seed.split("/")[2].partition(":")[0]
    ends = f"Ctrl-C stops cleanly; continue with: trapline crawl --resume '{folder}'"
    said = [
        line for line in capsys.readouterr().err.splitlines() if "compil" not in line
    ]  # by another process, perhaps
    assert said[:3] == [*(line.format(host=host) for line in lines), ends]


def test_a_resumed_crawl_keeps_its_scope(server: Served, tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "out"
    crawl(folder, server.seed_urls[0], "--scope", "any", "--max-pages", "1")
    assert run(["crawl", "--resume", str(folder), "--max-pages", "2"]) == 0
    assert "to any site that links lead to (--scope any)" in capsys.readouterr().err
    (options,) = (
        json.loads(value) for (value,) in CrawlResult(folder).rows("select value from meta where key = 'options'")
    )
    assert options["scope"] == "any"


@pytest.mark.parametrize(
    ("args", "is_said"),
    [
        (["--page-rank", "quality"], True),
        (["--page-rank", "quality", "--quality", "zipf"], False),
        pytest.param(["--strategy", "quality"], True, marks=slow),
        pytest.param(["--strategy", "quality+crawl-ability"], True, marks=slow),
        pytest.param(["--strategy", "quality", "--page-rank", "fifo"], False, marks=slow),
        pytest.param([], False, marks=slow),
    ],
)
def test_a_note_says_that_quality_is_computed_from_links_by_default(
    args: list[str], is_said: bool, server: Served, tmp_path: Path, capsys: Captured
) -> None:
    """A note says so, because a user who asked for quality may have meant another one."""
    run(["crawl", *server.seed_urls, "--allow-private", "--max-pages", "1", *args, "-o", str(tmp_path / "out")])
    noted = [line for line in capsys.readouterr().err.splitlines() if "page rank" in line]
    assert noted == is_said * [
        "trapline: note: page rank 'quality' is computed from links (--quality opic-by-directory);"
        " for another quality, give --quality FILE or MODULE:FUNCTION"
    ]


@pytest.mark.parametrize(("kind", "code"), [(KeyError, 70), (ZeroDivisionError, 70)])
def test_an_internal_error_ends_the_crawl_and_leaves_a_resumable_folder(
    server: Served, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch, kind: type[Exception], code: int
) -> None:
    folder, own = tmp_path / "out", FetchResults.answered

    def broken(self: FetchResults, *args: Any) -> Any:
        if self._tally.fetched == 7:
            raise kind("site 3")
        return own(self, *args)

    monkeypatch.setattr(FetchResults, "answered", broken)
    assert run(["crawl", *server.seed_urls, *FAST, "-o", str(folder)]) == code
    said = capsys.readouterr().err
    assert kind.__name__ in said and "this is a defect of Trapline" in said and "Traceback" not in said
    monkeypatch.setattr(FetchResults, "answered", own)
    assert run(["crawl", "--resume", str(folder), "--quiet"]) == 0
    assert len(CrawlResult(folder).targets()) == len(set(CrawlResult(folder).rows("select page from fetch"))) == 18


# ---- help


def test_every_option_without_a_list_of_names_has_one_line_of_help(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert run(["crawl", "--help"]) == 0
    said = capsys.readouterr().out
    listed = said[said.index("\nCrawl:\n") :].splitlines()
    assert all(re.fullmatch(r"|\S.*:|  -.{1,116}| {20,}.{1,98}", line) for line in listed)
    wrapped = [
        before.split()[0] for before, line in pairwise(listed) if line.startswith(" " * 20) and "--" in before[:6]
    ]
    assert wrapped == [
        "--mode", "--partition", "--strategy", "--page-rank", "--site-rank", "--quality", "--refresh-policy"
    ]  # fmt: skip
    assert (
        sum(line.startswith("  -") for line in listed) == sum(len(section.rows) for section in SECTIONS) + 2
    )  # --config, --help


def test_option_defaults_equal_the_crawlers_defaults() -> None:
    """The defaults are written twice, because importing the crawler for --help would take a second."""
    default = {field: value for section in SECTIONS for _, field, _, value, _ in section.rows}
    rules, limits, options = live_rules(), Limits(), CrawlOptions(())
    for name in live_rules().__dataclass_fields__:
        if default.get(name) is not None:
            assert default[name] == getattr(rules, name), name
    assert (default["total_s"], default["body_bytes"]) == (limits.total_s, limits.body_bytes)
    for name in (
        "strategy",
        "quality",
        "seed",
        "http",
        "scope",
        "include",
        "exclude",
        "abandon",
        "contact",
        "nameservers",
    ):
        assert default[name] == getattr(options, name), name
    assert default["connections"] == CONNECTIONS
    texts = {field: text for section in SECTIONS for _, field, _, _, text in section.rows}
    assert f"[{PAUSE_S:g} s, or --delay if less]" in texts["pause_s"]
    assert f"[{rules.first_connection_s:g} s]" in texts["first_connection_s"]
    assert f"[{rules.first_response_s:g} s]" in texts["first_response_s"]
    assert "[10 MiB]" in texts["body_bytes"] and limits.body_bytes == 10 * 2**20
