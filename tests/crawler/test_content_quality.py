"""`--quality content:NAME` scores the content of fetched pages: for the order, for the database and its readers, across kills."""

import fcntl
import json
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import trapline
from tests.cli.crawling import FAST, Captured, CrawlResult, crawl
from tests.cli.test_crawl import error_line
from tests.crawler.small_server import NOT_FOUND, SmallServer, moved, small_server
from tests.crawler.test_text_rules import PROSE
from trapline.cli import run
from trapline.crawler.quality.scorer_pool import LENGTH
from trapline.graph import load_graph
from trapline.graph.strings import decoded

CHILDREN = 12
SCORERS = """
import fcntl, os, signal, subprocess, threading, time
from pathlib import Path

LOG = Path(__file__).with_name("scored.txt")

def by_url(pages):
    return [1.0 if "/good" in page.url else 0.25 for page in pages]

def of_words(pages):
    with LOG.open("a") as file:
        for page in pages:
            print(page.url, file=file)
    return [len(page.visible_text.split()) / 1000 for page in pages]

def killed_at_10(pages):
    scores = of_words(pages)
    if len(LOG.read_text().split()) >= 10 and not LOG.with_name("killed").exists():
        LOG.with_name("killed").touch()
        os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
    return scores

def dies(pages):
    os.kill(os.getpid(), signal.SIGKILL)

def dies_later(pages):
    threading.Timer(0.1, dies, [pages]).start()
    return by_url(pages)

def starts_a_server(pages):
    lock = LOG.with_name("lock")
    if not lock.exists() and os.fork() == 0:
        file = lock.open("w")
        fcntl.flock(file, fcntl.LOCK_EX)
        LOG.touch()
        time.sleep(1000)
    while not LOG.exists():
        time.sleep(0.01)
    return by_url(pages)

def starts_a_server_and_dies(pages):
    starts_a_server(pages)
    dies(pages)

def fails_for_bad(pages):
    print("what a scorer prints goes to stderr")
    if any(page.url.endswith("/bad/3") for page in pages):
        raise ValueError("three")
    return by_url(pages)

def too_few(pages):
    return []

def exits(pages):
    raise SystemExit(3)

def digits(pages):
    return "1" * len(pages)

def starts_processes(pages):
    subprocess.run(["cat"])  # reads what the scorer's input is
    return by_url(pages)

def hangs(pages):
    LOG.touch()
    time.sleep(1000)

class NoText(Exception):
    def __str__(self):
        raise ValueError

def odd_errors(pages):
    raise ValueError("long" * 100_000) if "/good" in pages[0].url else NoText
"""

LOADS_SLOWLY = """
import time
from pathlib import Path
from scorers import by_url

if Path(__file__).with_name("slow").exists():
    Path(__file__).with_name("loading").touch()
    time.sleep(1000)
"""

FAILING_RANK = """
from trapline.frontier.ranking import page_rank
from trapline.strategies import PageRank, Strategy, site_rank_named

@page_rank
def fails_when_known(s, page, source, links, is_new):
    return 1.0 / (s.columns[source, 0] - 0.25) if source >= 0 else 1.0

STRATEGY = Strategy(
    "failing",
    PageRank("failing", fails_when_known, columns=("fetched_quality",), inputs=("fetched_quality",)),
    site_rank_named("larger-sites-first"),
)
"""


def html(text: str, *links: str) -> bytes:
    items = "".join(f'<li><a href="{link}">{link}</a>' for link in links)
    paragraphs = "".join(f"<p>{line}</p>" for line in text.splitlines())
    body = f"<title>a page</title><ul>{items}</ul>{paragraphs}".encode()
    return f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def site(host: str, target: str) -> bytes:
    """Two trees: below /good is prose, below /bad is none."""
    text = PROSE if target.startswith("/good") else "Home"
    if target == "/":
        return html("Home", "/bad/", "/good/", "/moved")
    if target == "/moved":
        return moved("/good/")
    if target in ("/bad/", "/good/"):
        return html(text, *(f"{target}{number}" for number in range(CHILDREN)))
    return html(text) if target[-1].isdecimal() else NOT_FOUND


@pytest.fixture
def server() -> Iterator[SmallServer]:
    with small_server(site, ("127.0.0.1",)) as found:
        yield found


@pytest.fixture
def scorers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scorers.py").write_text(SCORERS)
    (tmp_path / "exits.py").write_text("import os\nos._exit(3)\n")
    (tmp_path / "loads.py").write_text(LOADS_SLOWLY)
    monkeypatch.chdir(tmp_path)  # where MODULE:FUNCTION is looked up
    return tmp_path


def seed(server: SmallServer) -> str:
    return f"http://127.0.0.1:{server.port}/"


def qualities(result: CrawlResult) -> dict[str, float]:
    rows = result.rows("select url, quality from page_quality join page on page.id = page")
    return {"/" + url.split("/", 3)[3]: quality for url, quality in rows}


@pytest.mark.parametrize("strategy", ["parent-quality", "mean-parent-quality", "quality-by-directory", "quality"])
def test_links_of_good_pages_come_first(strategy: str, server: SmallServer, tmp_path: Path) -> None:
    """One page after the other, with a pause in which the score of the page arrives."""
    slow = ("--delay", "0.1", "--per-connection", "1", "--max-pages", "12", "-o", str(tmp_path / "out"))
    assert run(["crawl", seed(server), *FAST, *slow, "--strategy", strategy, "--quality", "content:text"]) == 0
    targets = [target for target in CrawlResult(tmp_path / "out").targets() if target[-1].isdecimal()]
    assert len(targets) >= 8
    assert sum("/bad" in target for target in targets) <= 3  # on a busy machine, some may come before the first score


def test_scores_are_stored_and_exported(server: SmallServer, tmp_path: Path, capsys: Captured) -> None:
    result = crawl(tmp_path / "out", seed(server), "--strategy", "breadth-first", "--quality", "content:text")
    found = qualities(result)
    assert len(found) == 3 + 2 * CHILDREN  # every page, and no redirect
    assert found["/good/0"] > 0.9 > 0.7 > found["/bad/0"] > 0.0
    assert result.summary["quality"] == pytest.approx(sum(found.values()))
    assert result.summary["quality_source"] == "content:text"
    capsys.readouterr()
    assert run(["explain", str(result.folder), f"{seed(server)}good/0"]) == 0
    said = capsys.readouterr().out
    assert "  quality: 1, by content:text\n  quality of the page that links to it: 0." in said
    assert run(["export", str(result.folder), "pages", "--to", "jsonl", "--quiet"]) == 0
    rows = [json.loads(line) for line in (result.folder / "export" / "pages.jsonl").read_text().splitlines()]
    exported = {"/" + row["url"].split("/", 3)[3]: row["quality"] for row in rows}
    assert exported == {**found, "/moved": None}


def test_a_function_of_the_user_scores_batches_of_pages(server: SmallServer, scorers: Path) -> None:
    arguments = ("--quality", "content:scorers:by_url", "--quality-processes", "3")
    result = crawl(scorers / "out", seed(server), *arguments)
    found = qualities(result)
    assert len(found) == 3 + 2 * CHILDREN
    assert all(quality == (1.0 if "/good" in target else 0.25) for target, quality in found.items())


def test_a_page_that_a_scorer_fails_on_has_the_quality_0(server: SmallServer, scorers: Path) -> None:
    result = crawl(scorers / "out", seed(server), "--quality", "content:scorers:fails_for_bad")
    found = qualities(result)
    assert {target for target, quality in found.items() if quality == 0.0} == {"/bad/3"}
    log = [json.loads(line) for line in (result.folder / "crawl.log").read_text().splitlines()]
    (event,) = [one for one in log if one["event"] == "scorer_error"]
    assert event["url"].endswith("/bad/3") and "ValueError: three" in event["text"]
    assert result.summary["scorer_errors"] == 1


def test_the_end_of_a_crawl_says_on_how_many_pages_the_scorer_failed(
    server: SmallServer, scorers: Path, capsys: Captured
) -> None:
    folder, fails = scorers / "out", ("--quality", "content:scorers:fails_for_bad")
    loud = [option for option in FAST if option != "--quiet"]
    assert run(["crawl", seed(server), *loud, *fails, "-o", str(folder)]) == 0
    assert f"failed on 1 page; quality 0 there; see {folder / 'crawl.log'}" in capsys.readouterr().out
    assert CrawlResult(folder).summary["scorer_errors"] == 1
    assert crawl(scorers / "good", seed(server), "--quality", "content:scorers:by_url").summary["scorer_errors"] == 0


def test_a_killed_crawl_scores_the_rest_after_a_resume(server: SmallServer, scorers: Path) -> None:
    """The scorer kills the crawl in the middle. The pages that are on disk and have no score are scored by the next run."""
    folder = scorers / "out"
    arguments = [
        "crawl",
        seed(server),
        *FAST,
        "--quality",
        "content:scorers:killed_at_10",
        "--strategy",
        "parent-quality",
    ]
    program = f"from trapline.cli import run; run({[*arguments, '-o', str(folder)]!r})"
    code = subprocess.run([sys.executable, "-c", program], check=False, timeout=120).returncode
    assert code == -signal.SIGKILL
    result = CrawlResult(folder)
    before = qualities(result)
    assert run(["crawl", "--resume", str(folder), "--quiet"]) == 0
    after = qualities(result)
    assert len(after) == 3 + 2 * CHILDREN
    assert after | before == after  # no score has changed
    assert result.rows("select count(*) from page_quality where run = 2") == [(len(after) - len(before),)]
    assert run(["verify", str(folder)]) == 0  # the frontier, replayed from the log, agrees with the database


def test_another_order_after_a_resume_knows_the_scores_so_far(server: SmallServer, scorers: Path) -> None:
    begin = ("--quality", "content:scorers:by_url", "--strategy", "breadth-first", "--max-pages", "3")
    result = crawl(scorers / "out", seed(server), *begin)
    assert {"/bad/", "/good/"} <= set(result.targets())
    more = ("--strategy", "mean-parent-quality", "--max-pages", str(3 + CHILDREN))
    assert run(["crawl", "--resume", str(result.folder), "--quiet", *more]) == 0
    assert not [target for target in result.targets()[4:] if target.startswith("/bad")]
    assert run(["crawl", "--resume", str(result.folder), "--quiet", "--max-pages", "100"]) == 0
    assert len(qualities(result)) == 3 + 2 * CHILDREN


@pytest.mark.parametrize("function", ["dies", "dies_later"])
def test_a_scorer_that_dies_ends_the_crawl_with_one_line(
    function: str, server: SmallServer, scorers: Path, capsys: Captured
) -> None:
    """Also if it dies while it has nothing to score: between two visits."""
    options = ("--delay", "0.5", "--per-connection", "1", "--quality", f"content:scorers:{function}")
    line = error_line(capsys, seed(server), *FAST, *options, "-o", scorers / "out")
    assert "the process of the scorer ended: killed by signal 9; continue with --resume" in line


def test_child_processes_of_a_scorer_do_not_read_its_input(server: SmallServer, scorers: Path) -> None:
    result = crawl(scorers / "out", seed(server), "--quality", "content:scorers:starts_processes")
    assert len(qualities(result)) == 3 + 2 * CHILDREN


@pytest.mark.parametrize("function", ["starts_a_server", "starts_a_server_and_dies"])
def test_what_a_scorer_starts_ends_with_it(function: str, server: SmallServer, scorers: Path) -> None:
    """The crawl ends, too, if such a process holds the pipes of a scorer that died."""
    exit_code = 2 * function.endswith("dies")
    crawl(scorers / "out", seed(server), "--quality", f"content:scorers:{function}", exit_code=exit_code)
    with (scorers / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_interrupt_ends_the_wait_for_the_last_scores(server: SmallServer, scorers: Path) -> None:
    """Also if the crawl has ended by itself before."""
    arguments = [
        seed(server),
        *FAST,
        "--max-pages",
        "1",
        "--quality",
        "content:scorers:hangs",
        "-o",
        str(scorers / "out"),
    ]
    interrupt(arguments, scorers / "scored.txt", wait_s=1.0)
    result = CrawlResult(scorers / "out")
    assert result.summary["stopped_by"] == "interrupted"
    assert qualities(result) == {}


def test_interrupt_ends_the_wait_for_a_scorer_that_loads(server: SmallServer, scorers: Path) -> None:
    result = crawl(scorers / "out", seed(server), "--quality", "content:loads:by_url", "--max-pages", "3")
    (scorers / "slow").touch()
    interrupt(["--resume", str(result.folder), "--quiet", "--max-pages", "100"], scorers / "loading")
    assert result.summary["stopped_by"] == "interrupted"
    (scorers / "slow").unlink()
    assert run(["crawl", "--resume", str(result.folder), "--quiet"]) == 0
    assert len(qualities(result)) == 3 + 2 * CHILDREN


def interrupt(arguments: list[str], begun: Path, wait_s: float = 0.0) -> None:
    """Run a crawl, press Ctrl-C some time after this file was created, and wait until the crawl has ended."""
    program = f"from trapline.cli import run; raise SystemExit(run({['crawl', *arguments]!r}))"
    with subprocess.Popen([sys.executable, "-c", program]) as crawling:
        try:
            while not begun.exists() and crawling.poll() is None:
                time.sleep(0.05)
            time.sleep(wait_s)
            crawling.send_signal(signal.SIGINT)
            assert crawling.wait(60) == 0
        finally:
            crawling.kill()


def test_an_error_of_a_rank_ends_the_crawl_when_it_comes_with_a_score(
    server: SmallServer, scorers: Path, capsys: Captured
) -> None:
    (scorers / "failing.py").write_text(FAILING_RANK)
    arguments = ("--strategy", "failing.py", "--quality", "content:scorers:by_url", "-o", scorers / "out")
    assert "ZeroDivisionError" in error_line(capsys, seed(server), *FAST, *arguments)


def test_errors_of_a_scorer_are_short(server: SmallServer, scorers: Path) -> None:
    result = crawl(scorers / "out", seed(server), "--quality", "content:scorers:odd_errors")
    assert set(qualities(result).values()) == {0.0}
    log = (result.folder / "crawl.log").read_text()
    assert "NoText" in log and "longlong" in log and len(log) < 100_000


WRONG = [
    ("content:", "no such scorer; give content:text"),
    ("content:txt", "no such scorer; give content:text"),
    ("content:text:xx", "valid: de, en, es"),
    ("content:scorers:nothing", "raises AttributeError"),
    ("content:scorers.py:by_url", "write the module without .py: content:scorers:by_url"),
    ("content:nowhere:nothing", "raises ModuleNotFoundError"),
    ("content:exits:nothing", "ended with exit code 3 before it could score a page; correct the module or the model"),
    ("content:fasttext=no.bin", "no.bin: no such file; name the file of a fastText model"),
    ("content:fasttext=scorers.py", "scorers.py: not a fastText model: it does not begin as one; name another file"),
]


@pytest.mark.parametrize(("source", "why"), WRONG)
def test_a_wrong_scorer_is_one_line_and_leaves_no_folder(
    source: str, why: str, server: SmallServer, scorers: Path, capsys: Captured
) -> None:
    line = error_line(capsys, seed(server), *FAST, "--quality", source, "-o", scorers / "out")
    assert f"--quality {source}: " in line and why in line
    assert not (scorers / "out").exists()


def test_a_scorer_of_pages_given_as_a_function_of_urls_is_told_its_name(
    server: SmallServer, scorers: Path, capsys: Captured
) -> None:
    (scorers / "of_pages.py").write_text("def words(pages):\n    return [len(page.visible_text) for page in pages]\n")
    line = error_line(capsys, seed(server), *FAST, "--quality", "of_pages:words", "-o", scorers / "out")
    assert "raises AttributeError" in line and "if it scores pages, give --quality content:of_pages:words" in line
    line = error_line(capsys, seed(server), *FAST, "--quality", "of_pages.py:words", "-o", scorers / "out")
    assert "write the module without .py: of_pages:words" in line


def test_an_order_by_quality_needs_a_scorer(server: SmallServer, tmp_path: Path, capsys: Captured) -> None:
    line = error_line(capsys, seed(server), *FAST, "--strategy", "parent-quality", "-o", tmp_path / "out")
    assert "needs the quality of fetched pages: give --quality content:text" in line
    line = error_line(
        capsys, seed(server), *FAST, "--strategy", "omniscient", "--quality", "content:text", "-o", tmp_path / "out"
    )
    assert "needs the quality of pages before they are fetched" in line


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("too_few", "0 numbers for 1 pages"),
        ("digits", "a text of 1 characters is no list of numbers"),
        ("exits", "SystemExit: 3"),
    ],
)
def test_wrong_answers_of_a_function_are_logged(function: str, why: str, server: SmallServer, scorers: Path) -> None:
    result = crawl(scorers / "out", seed(server), "--quality", f"content:scorers:{function}", "--max-pages", "3")
    assert set(qualities(result).values()) == {0.0}
    assert why in (result.folder / "crawl.log").read_text()


def test_the_process_of_a_scorer_is_silent_when_its_crawl_is_killed() -> None:
    command = [sys.executable, "-P", "-m", "trapline.crawler.quality", "content:text", "."]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdout.read(LENGTH.unpack(process.stdout.read(LENGTH.size))[0])
        process.stdout.close()
        batch = pickle.dumps([])
        process.stdin.write(LENGTH.pack(len(batch)) + batch)
        process.stdin.close()
        assert process.stderr.read() == b""


def test_programs_and_crawls_without_a_folder_can_use_a_scorer(server: SmallServer) -> None:
    pages = list(
        trapline.crawl(seed(server), allow_private=True, delay=0, strategy="parent-quality", quality="content:text")
    )
    assert len(pages) == 3 + 2 * CHILDREN


def test_an_order_by_quality_works_with_the_function_of_a_program(server: SmallServer) -> None:
    settings = {"allow_private": True, "delay": 0, "connections": 1, "strategy": "parent-quality", "sitemaps": False}
    found = trapline.crawl(seed(server), quality=lambda page: float("/good" in page.url), **settings)
    targets = [page.url for page in found if page.url[-1].isdecimal()]
    assert all("/good" in url for url in targets[:CHILDREN])


def test_a_graph_keeps_the_scores_of_its_crawl(server: SmallServer, scorers: Path, capsys: Captured) -> None:
    options = ("--quality", "content:scorers:by_url", "--strategy", "breadth-first", "--max-pages", "20")
    result = crawl(scorers / "out", seed(server), *options)
    assert run(["graph", "convert", str(result.folder), "-o", "web"]) == 0
    graph = load_graph("web")
    assert graph.quality is not None and graph.urls is not None
    expected = {f"{seed(server)}moved": -1.0} | {
        f"{seed(server)[:-1]}{target}": one for target, one in qualities(result).items()
    }
    assert dict(zip(decoded(graph.urls), graph.quality.tolist(), strict=True)) == expected
    orders, one_by_one = ["breadth-first", "mean-parent-quality", "quality"], {"connections": 1, "per_connection": 1}
    compared = trapline.compare("web", orders, quality="content", harvest_quality=0.5, delay=0, pause=0, **one_by_one)
    good = sum(one == 1.0 for one in graph.quality) / graph.pages
    assert {(one.harvest_quality, one.harvest_share) for one in compared.records} == {(0.5, good)}
    rates = {one.strategy: one.harvest_rate["25%"] for one in compared.records}
    assert rates["quality"] > rates["breadth-first"]
    assert {"harvest_rate_10", "harvest_quality"} <= set(compared.to_arrow().column_names)


def test_several_processes_score_their_own_pages(tmp_path: Path) -> None:
    with small_server(site, ("127.0.0.1", "127.0.0.2")) as found:
        seeds = [f"http://127.0.0.{number}:{found.port}/" for number in (1, 2)]
        options = ("--processes", "2", "--strategy", "quality-by-directory", "--quality", "content:text")
        result = crawl(tmp_path / "out", *seeds, *options)
    assert run(["export", str(result.folder), "pages", "--to", "jsonl", "--quiet"]) == 0  # merges the databases
    scores = result.rows("select count(*), count(distinct page), min(quality) > 0 from page_quality")
    assert scores == [(2 * (3 + 2 * CHILDREN), 2 * (3 + 2 * CHILDREN), 1)]


def test_simulations_say_what_they_need(server: SmallServer, tmp_path: Path, capsys: Captured) -> None:
    for quality, why in (
        ("content", "this graph has no scores of pages; crawl with --quality content:text"),
        ("content:text", "a simulated crawl has no text"),
    ):
        assert run(["simulate", "python-docs", "--quality", quality, "--strategy", "parent-quality"]) == 2
        assert why in capsys.readouterr().err
    line = error_line(capsys, seed(server), *FAST, "--quality", "content", "-o", tmp_path / "out")
    assert "say what scores the pages; give content:text" in line
