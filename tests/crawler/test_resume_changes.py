"""A resumed crawl with other options: they hold for all waiting pages, and also after a kill that comes at once."""

import shutil
import signal
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from tests.crawler.kill_world import Run, finished, rows
from tests.crawler.live_web import crawled, silence, until
from tests.crawler.proxies import proxy_server
from tests.crawler.small_server import NOT_FOUND, SmallServer, page, small_server
from tests.effort import slow
from tests.frontier.test_replay import assert_same_state
from trapline import cli
from trapline.crawler.engine import scope_change
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.records import Batch
from trapline.crawler.engine.run import run_crawl
from trapline.crawler.engine.scope_change import ReadAgain, read_again
from trapline.crawler.engine.settings import CrawlSettings
from trapline.crawler.engine.status import CrawlStatus
from trapline.crawler.files import resume
from trapline.crawler.files.changed_options import with_changes
from trapline.crawler.files.layout import note_begin
from trapline.crawler.files.opening import opened, prepare_old
from trapline.crawler.files.reading import Reading
from trapline.crawler.files.run_options import RunOptions, kept_file, options_of_runs, with_kept_files
from trapline.crawler.handler.page import Page
from trapline.crawler.inspect.audit import audit
from trapline.crawler.inspect.database_reader import open_database
from trapline.crawler.store.client import Store
from trapline.errors import ConfigError
from trapline.frontier.layout import GONE, WAITING
from trapline.strategies.base.choice import split
from trapline.strategies.base.inputs import INPUTS
from trapline.strategies.base.url_inputs import STATE_PAGES

HOSTS = {"a.test": "127.9.2.1", "b.test": "127.9.2.2"}
STRATEGY = """
from trapline.frontier.ranking import page_rank
from trapline.strategies import PageRank, Strategy, top_page

@page_rank
def rank(s, page, source, links, is_new):
    return {sign}1.0 * page

STRATEGY = Strategy("mine", PageRank("mine", rank), top_page.SITE)
"""
ALL_INPUTS = """
from trapline.strategies import PageRank, Strategy, page_rank_named, site_rank_named
from trapline.strategies.base.inputs import INPUTS

PAGE = PageRank("all", page_rank_named("fifo").function, columns=INPUTS, inputs=INPUTS)
STRATEGY = Strategy("all", PAGE, site_rank_named("fifo"))
"""


class Web:
    """a.test/ links to /x0 ... /y5; each /xN to /xN/deep and to b.test."""

    def __init__(self) -> None:
        self.port = 0

    def __call__(self, host: str, target: str) -> bytes:
        if target == "/robots.txt":
            return NOT_FOUND
        if target == "/":
            return page(*(f"/{kind}{number}" for number in range(6) for kind in "xy"))
        return page(f"{target}/deep", f"http://b.test:{self.port}/") if target in ("/x0", "/x1") else page()


@pytest.fixture
def server() -> Iterator[SmallServer]:
    web = Web()
    with small_server(web, tuple(HOSTS.values())) as server:
        web.port = server.port
        yield server


def begin(server: SmallServer, folder: Path, **options: Any) -> Path:
    given = {"scope": "host", "connections": 1, "max_pages": 4, "strategy": "breadth-first", **options}
    crawled(folder, [f"http://a.test:{server.port}/"], HOSTS, **given)
    return folder


def again(folder: Path, **settings: Any) -> dict[str, Any]:
    return run_crawl(opened(prepare_old(folder, settings={"max_pages": 1_000, **settings})), silence())


def paths(folder: Path) -> list[str]:
    with closing(Reading(folder)) as reading:
        sql = "select url from fetch join page on page.id = fetch.page where result = 3 order by seq"
        return ["/" + url.split("/", 3)[3] for (url,) in reading.connection.execute(sql)]


def states(folder: Path) -> dict[int, int]:
    with closing(Reading(folder)) as reading:
        found = resume.rebuilt(reading)[0].page_states.tolist()
    return {state: found.count(state) for state in (WAITING, GONE)}


def test_rules_and_strategy_change_and_a_replay_across_the_change_is_exact(server: SmallServer, tmp_path: Path) -> None:
    folder = begin(server, tmp_path / "c")
    again(folder, strategy="opic", per_connection=3, delay=0.05, connections=7, max_pages=7)
    with closing(Reading(folder)) as reading:
        whole, (_, present) = resume.rebuilt(reading)[0], options_of_runs(reading.meta())
        newest = max((folder / "snapshot").iterdir(), key=lambda path: int(path.name))
        shutil.rmtree(newest)  # the log since the snapshot before crosses the change
        replayed = resume.rebuilt(reading)[0]
    assert (present.run, present.options.connections, present.options.pause_s) == (2, 7, 0.05)
    assert (whole.strategy.page.name, whole.rules.per_connection, whole.rules.delay_s) == ("opic", 3, 0.05)
    assert whole.strategy_number == replayed.strategy_number == 2
    assert_same_state(replayed, whole)
    again(folder)
    assert len(paths(folder)) == len(set(paths(folder))) == 15
    with closing(open_database(folder)) as database:
        assert audit(database).violations == 0


def inputs_by_url(folder: Path) -> dict[str, dict[str, float | str]]:
    """Return the inputs of the page rank by URL. An input that is the number of a page is given as the URL of that page."""
    with closing(Reading(folder)) as reading:
        frontier, urls = resume.rebuilt(reading)[0], [url for _, _, url in reading.pages()]
    found: dict[str, dict[str, float | str]] = {}
    for name in frontier.strategy.page.inputs:
        values = frontier.column(frontier.strategy.page.columns.index(name)).tolist()
        shown = [urls[int(value)] for value in values] if name in STATE_PAGES else values
        found[name] = dict(zip(urls, shown, strict=True))
    return found


def test_pages_have_all_inputs_of_a_new_strategy_as_if_it_had_been_there_from_the_start(tmp_path: Path) -> None:
    values, all_inputs = tmp_path / "values", tmp_path / "all.py"
    all_inputs.write_text(ALL_INPUTS)
    links = ["/x0", "/x1", "/x1/deep", "/d/a.pdf", "/d/b?c=1&d", "/e/"]
    with small_server(lambda host, target: page(*links), tuple(HOSTS.values())) as server:
        links.append(f"http://b.test:{server.port}/")
        values.write_text(f"http://a.test:{server.port}/x0 0.5\nhttp://a.test:{server.port}/x1/deep 0.25\n")
        given = {"quality": str(values), "history": str(values), "scope": "any"}
        expected = inputs_by_url(begin(server, tmp_path / "whole", strategy=str(all_inputs), max_pages=1_000, **given))
        folder = begin(server, tmp_path / "changed", **given)
        again(folder, strategy=str(all_inputs))
    assert len(expected) == len(INPUTS) and all(len(set(values.values())) > 1 for values in expected.values())
    assert inputs_by_url(folder) == expected
    newest = max((folder / "snapshot").iterdir(), key=lambda path: int(path.name))
    shutil.rmtree(newest)  # the log since the snapshot before crosses the change
    assert inputs_by_url(folder) == expected


def test_the_quality_of_a_program_goes_along_to_another_strategy_or_the_reason_is_given(
    server: SmallServer, tmp_path: Path
) -> None:
    import trapline

    def quality(page: Page) -> float:
        return 0.5

    (tmp_path / "all.py").write_text(ALL_INPUTS.replace("=INPUTS", '=("quality",)'))
    seed, hosts, by_quality = f"http://a.test:{server.port}/", tmp_path / "hosts", str(tmp_path / "all.py")
    hosts.write_text("".join(f"{address} {host}\n" for host, address in HOSTS.items()))
    given = {"hosts": str(hosts), "allow_private": True, "sitemaps": False, "delay": 0, "max_pages": 4}
    folder = tmp_path / "c"
    trapline.crawl(seed, output=folder, quality=quality, strategy="omniscient", **given).run()
    trapline.crawl(resume=folder, quality=quality, strategy=by_quality, max_pages=6).run()
    found = inputs_by_url(folder)["quality"]
    assert found.pop(seed) == 1.0 and set(found.values()) == {0.5}
    trapline.crawl(resume=folder, quality=quality, strategy="breadth-first", max_pages=8).run()
    assert len(paths(folder)) == 8
    with pytest.raises(ConfigError, match="'breadth-first' the crawl has not kept these values"):
        trapline.crawl(resume=folder, quality=quality, strategy=by_quality, max_pages=10).run()
    assert len(paths(folder)) == 8


def test_a_crawl_that_was_killed_before_its_first_batch_applies_the_changes_later(
    server: SmallServer, tmp_path: Path
) -> None:
    folder = begin(server, tmp_path / "c")
    tables = {"a.test": {"max_pages": 9, "delay": 0.3}}
    settings = {"strategy": "opic", "per_connection": 2, "exclude": ["x"], "site": tables}
    killed = opened(prepare_old(folder, settings=settings))
    assert killed.claim is not None
    note_begin(killed.claim, killed.keys)  # this is all that reached the disk
    killed.release()
    again(folder)
    with closing(Reading(folder)) as reading:
        frontier = resume.rebuilt(reading)[0]
    assert (frontier.strategy.page.name, frontier.rules.per_connection, frontier.strategy_number) == ("opic", 2, 2)
    assert (frontier.site_budgets[0], frontier.site_rules(0)[0]) == (9, 0.3)
    assert not [path for path in paths(folder)[4:] if "x" in path]


@slow
@pytest.mark.parametrize("whom", ["loop", "both"])
def test_a_process_that_is_killed_when_it_has_noted_the_changes_keeps_them(
    server: SmallServer, tmp_path: Path, whom: str
) -> None:
    folder = begin(server, tmp_path / "c")
    committed = rows(folder, "select max(batch) from journal")
    changes = ("--strategy", "opic", "--per-connection", "2", "--exclude", "x", "--max-pages", "1000")
    with Run("--resume", folder, *changes) as run:
        assert run.wait_for(lambda: bool(rows(folder, "select 1 from meta where key = 'options 2'")))
        run.poll()
        run.send(signal.SIGKILL, run.loop, run.store if whom == "both" else 0)
        assert run.ended()[0] == -signal.SIGKILL
    assert rows(folder, "select max(batch) from journal") == committed  # the frontier's calls were lost
    finished("--resume", folder)
    with closing(Reading(folder)) as reading:
        frontier = resume.rebuilt(reading)[0]
    assert (frontier.strategy.page.name, frontier.rules.per_connection, frontier.strategy_number) == ("opic", 2, 2)
    assert sorted(paths(folder)[4:]) == sorted({f"/y{number}" for number in range(6)} - {*paths(folder)[:4]})
    with closing(open_database(folder)) as database:
        assert audit(database).violations == 0


def test_a_narrower_scope_leaves_waiting_pages_unfetched_and_a_wider_one_fetches_them(
    server: SmallServer, tmp_path: Path
) -> None:
    folder = begin(server, tmp_path / "c")
    before = paths(folder)
    assert again(folder, exclude=["/y"])["stopped_by"] == "drained"
    assert sorted(set(paths(folder)[4:])) == sorted({*map("/x{}".format, range(6)), "/x0/deep", "/x1/deep"} - {*before})
    assert states(folder)[GONE] == 12 - len([path for path in before if "y" in path]) - 6
    summary = again(folder, exclude=[])
    assert summary["pages_fetched"] == 15 and states(folder) == {WAITING: 0, GONE: 0}


def test_a_wider_scope_follows_links_that_were_rejected(server: SmallServer, tmp_path: Path) -> None:
    folder = begin(server, tmp_path / "c", max_pages=1_000, include=("a.test.*(/|x.)$",))
    assert len(paths(folder)) == 7
    rejected = again(folder, scope="any", include=[], max_depth=1)["rejected_links"]
    assert len(paths(folder)) == 13 and "host" in rejected
    # The deep pages are known by now. b.test has the same pages.
    assert again(folder, max_depth=0, exclude=["x0/deep"])["pages_fetched"] == 2 * 14
    assert again(folder, exclude=[])["pages_fetched"] == 2 * 15


def test_a_wider_scope_does_not_fetch_requisites_again(tmp_path: Path) -> None:
    texts = {"/": "<img src=/i.png><a href=/2>", "/2": "<a href=/i.png><a href=/3>"}

    def answer(host: str, target: str) -> bytes:
        mime, body = ("image/png", "x") if target == "/i.png" else ("text/html", texts.get(target, ""))
        return f"HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()

    with small_server(answer, (HOSTS["a.test"],)) as server:
        folder = begin(server, tmp_path / "c", max_pages=1_000, include=("/2?$",), requisites=True)
        assert again(folder, include=[])["pages_fetched"] == 3
        assert server.targets("a.test").count("/i.png") == 1
    assert paths(folder) == ["/", "/2", "/3"]


def test_ctrl_c_stops_a_change_of_scope_and_the_next_run_completes_it(
    server: SmallServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = begin(server, tmp_path / "c", max_pages=1_000, include=("a.test.*(/|x.)$",))

    def endless(folder: Path, options: CrawlOptions) -> Iterator[ReadAgain]:
        pages = [*read_again(folder, options)]
        while True:
            yield from pages

    def is_reading(status: CrawlStatus) -> bool:
        return status.doing.startswith("reading archived pages again for the new scope")

    with monkeypatch.context() as patched:
        patched.setattr(scope_change, "read_again", endless)
        stopped = run_crawl(opened(prepare_old(folder, settings={"scope": "any", "include": []})), until(is_reading))
    assert stopped["stopped_by"] == "interrupted" and stopped["pages_fetched"] == 7
    with closing(Reading(folder)) as reading:
        assert reading.meta()[scope_change.KEY] == "1"
    assert again(folder)["pages_fetched"] == 2 * 15
    with closing(Reading(folder)) as reading:
        assert scope_change.KEY not in reading.meta()


def test_a_change_of_scope_waits_for_a_store_that_is_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put, backlogs = Store.put, [0]

    def noted_put(store: Store, batch: Batch) -> None:
        put(store, batch)
        backlogs.append(len(store._backlog))

    def answer(host: str, target: str) -> bytes:
        return page(*map("/{}".format, range(20))) if target == "/" else page(f"http://b.test:{server.port}{target}")

    with small_server(answer, tuple(HOSTS.values())) as server:
        folder = begin(server, tmp_path / "c", max_pages=21)
        monkeypatch.setattr(scope_change, "_PAGES_AT_ONCE", 1)  # a batch for each archived page
        monkeypatch.setattr(Store, "full", property(lambda store: len(store._backlog) > 0))
        monkeypatch.setattr(Store, "put", noted_put)
        again(folder, scope="any", max_pages=21)
    assert len(backlogs) > 20 and max(backlogs) <= 3


def test_a_note_says_that_a_strategy_file_has_changed_and_the_new_one_ranks_all_pages(
    server: SmallServer, tmp_path: Path
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(STRATEGY.format(sign="-"))
    folder = begin(server, tmp_path / "c", strategy=str(file), per_connection=1)
    assert prepare_old(folder).notes == ()
    file.write_text(STRATEGY.format(sign="+"))
    (note,) = prepare_old(folder).notes
    assert note.startswith(f"{file} has changed since the last run")
    again(folder, max_pages=6)
    assert paths(folder)[1:] == ["/x0", "/y0", "/x1", "/x1/deep", "/x0/deep"]


def test_after_a_kill_the_log_is_replayed_with_the_strategy_file_of_its_time(
    server: SmallServer, tmp_path: Path
) -> None:
    """Without the copies, as in folders of older versions, a message asks for the old file."""
    file = tmp_path / "mine.py"
    file.write_text(STRATEGY.format(sign="-"))
    folder = begin(server, tmp_path / "c", strategy=str(file), per_connection=1)
    shutil.rmtree(folder / "snapshot")  # as if the crawl had been killed: only its log is left
    file.write_text(STRATEGY.format(sign="+"))
    copies = (folder / "strategy").rename(tmp_path / "copies")
    with pytest.raises(ConfigError, match=r"mine\.py has changed since the crawl was interrupted"):
        again(folder)
    copies.rename(folder / "strategy")
    again(folder, max_pages=6)
    assert paths(folder)[1:] == ["/x0", "/y0", "/x1", "/x1/deep", "/x0/deep"]
    with closing(Reading(folder)) as reading:
        whole = resume.rebuilt(reading)[0]
        shutil.rmtree(folder / "snapshot")  # now the log has calls by both versions, and the file is a third one
        file.write_text(STRATEGY.format(sign="0.5 * "))
        assert_same_state(resume.rebuilt(reading)[0], whole)


def test_a_pair_is_found_again_by_the_copies_in_a_folder_with_a_plus_in_its_name(tmp_path: Path) -> None:
    copy = kept_file(tmp_path / "c++", "0" * 64)
    copy.parent.mkdir(parents=True)
    copy.touch()
    given = CrawlOptions(("http://a.test/",), strategy="/gone/mine.py+fifo")
    found = with_kept_files(tmp_path / "c++", RunOptions(1, 0.0, given, {"/gone/mine.py": "0" * 64}))
    assert split(found.strategy) == (str(copy), "fifo")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            ("--quality", "zipf"),
            "--quality cannot change with --resume: the crawl has measured the quality of its pages",
        ),
        (("--batch", "5"), "--batch cannot change with --resume: a crawl either has batches"),
        (("--strategy", "batch-pagerank"), "chooses pages in batches"),
        (("--include", "("), "not a regular expression"),
        (("--proxy-names",), "--proxy-names has no effect without a proxy"),
        (("-o", "x"), "--output cannot change with --resume: the crawl keeps its folder"),
    ],
)
def test_an_impossible_change_is_refused_with_its_reason(
    server: SmallServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: tuple[str, ...], why: str
) -> None:
    folder = begin(server, tmp_path / "c")
    assert cli.run(["crawl", "--resume", str(folder), "--max-pages", "9", *changes]) == 2
    assert why in capsys.readouterr().err


def test_a_crawl_gets_another_proxy_and_loses_it(server: SmallServer, tmp_path: Path) -> None:
    folder = begin(server, tmp_path / "c", max_pages=2)
    with proxy_server("http", names=HOSTS) as first:
        again(folder, proxy=first.url, max_pages=3)
        assert len(first.log) > 0
    with proxy_server("socks5", names=HOSTS) as second:  # the first one is gone
        again(folder, proxy=second.url, proxy_names=True, max_pages=4)
        assert set(second.log) == {f"a.test:{server.port}"}
        assert prepare_old(folder, settings={"proxy_names": False}).options.proxy == second.url
    again(folder, proxy="")
    with closing(Reading(folder)) as reading:
        assert (reading.options()["proxy"], reading.options()["proxy_names"]) == ("", False)
    assert len(paths(folder)) == 15


OWN_S = {"site": {"a.test": {"delay": 20}, "[::1]": {"delay": 25}}}


@pytest.mark.parametrize(
    ("settings", "changes", "rules"),
    [
        ({"small_site_pages": 10}, {"small_site_delay": 0.5}, (15.0, 10, 0.5)),
        ({"small_site_pages": 10, "small_site_delay": 0.5}, {"small_site_pages": 0}, (15.0, 0, 0.5)),
        ({"small_site_pages": 10, "small_site_delay": 0.5}, {"delay": 1.0}, (1.0, 10, 0.5)),
        (OWN_S, {"delay": 18.0}, (18.0, 0, 15.0)),
        (OWN_S, {"delay": 30.0, "ip_delay": 20.0}, (30.0, 0, 15.0)),
        ({**OWN_S, "ip_delay": 20.0}, {"delay": 30.0}, (30.0, 0, 15.0)),
        ({"http": "1.0"}, {"delay": 1.0}, (1.0, 0, 15.0)),
    ],
)
def test_changes_are_checked_together_with_the_settings_of_the_crawl(
    settings: dict[str, Any], changes: dict[str, Any], rules: tuple[float, int, float]
) -> None:
    changed = with_changes(CrawlSettings(**settings).options(["http://a.test/"]), changes).rules
    assert (changed.delay_s, changed.small_site_pages, changed.small_site_delay_s) == rules


@pytest.mark.parametrize(
    ("settings", "changes", "why"),
    [
        ({}, {"small_site_delay": 0.5}, "--small-site-delay has no effect"),
        ({"small_site_pages": 10}, {"small_site_pages": 0, "small_site_delay": 0.5}, "--small-site-delay has no effect"),
        (OWN_S, {"delay": 30.0}, "its delay of 20 s is shorter than the delay of its address, 30 s; also give --ip-delay 20"),
        (OWN_S, {"ip_delay": 21.0}, "its delay of 20 s is shorter than the delay of its address, 21 s"),
    ],
)  # fmt: skip
def test_changes_that_contradict_the_settings_of_the_crawl_are_refused(
    settings: dict[str, Any], changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        with_changes(CrawlSettings(**settings).options(["http://a.test/"]), changes)


def test_python_programs_change_the_same_settings(server: SmallServer, tmp_path: Path) -> None:
    import trapline

    folder = begin(server, tmp_path / "c")
    with pytest.raises(
        ConfigError, match=r"alpha cannot change with resume=\.\.\.: the crawl has estimated the times of its sites"
    ):
        trapline.crawl(resume=folder, alpha=0.5)
    crawl = trapline.crawl(resume=folder, max_pages=6, per_connection=1, exclude=["x"])
    assert [page.url for page in crawl if "x" in page.url] == []
    with closing(Reading(folder)) as reading:
        assert reading.options()["exclude"] == ["x"]


def test_options_that_stay_the_same_leave_no_trace(server: SmallServer, tmp_path: Path) -> None:
    folder = begin(server, tmp_path / "c")
    again(folder, max_pages=6)
    with closing(Reading(folder)) as reading:
        (only,) = options_of_runs(reading.meta())
        assert not [key for key in reading.meta() if key.startswith("options ")]
    assert asdict(only.options) == asdict(replace(only.options, max_pages=6))
