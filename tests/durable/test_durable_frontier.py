"""A durable frontier: no URL is lost and none is handed out twice, across clean ends and kills, and it decides as the frontier does."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples, slow
from trapline import FAILED, FETCHED, REFUSED, ConfigError, Drained, Outcome, Rules, WaitUntil, strategies
from trapline.durable import DurableFrontier, NewPage, QueuedPage, UrlVisit
from trapline.durable.scheduled import ScheduledFrontier
from trapline.strategies.base.url_inputs import STATE_PAGES

RULES = Rules(delay_s=2.0, per_connection=3, retries=2)
SITES, PAGES = 4, 40


def url(page: int) -> str:
    return f"http://s{page % SITES}.example/{page}"


def links(page: int) -> list[str]:
    return [url(target) for target in (2 * page + 1, 2 * page + 2, page // 2) if target < PAGES]


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.time = 1e9

    def __call__(self) -> float:
        return self.time


class Crawl:
    """A crawl of the pages above in virtual time, which can be ended at any moment. Every third page fails once."""

    def __init__(self, folder: Path, strategy: str = "opic") -> None:
        self.folder, self.strategy, self.clock = folder, strategy, Clock()
        self.reported: list[str] = []
        self.in_flight: list[str] = []  # when the frontier was killed
        self._failed: set[str] = set()
        self.open()
        self.frontier.add([url(0)])

    def open(self) -> None:
        self.frontier = DurableFrontier(self.folder, self.strategy, RULES, clock=self.clock)

    def step(self) -> bool:
        """Make one visit or wait. Return False if nothing is left."""
        answer = self.frontier.next()
        if isinstance(answer, Drained):
            return False
        if isinstance(answer, WaitUntil):
            self.clock.time = max(self.clock.time, answer.time)
            return True
        for page in answer.pages:
            self.clock.time += 0.5
            self._report(answer, page)
        self.frontier.finish(answer)
        return True

    def _report(self, visit: UrlVisit, page: QueuedPage) -> None:
        number = int(page.url.rpartition("/")[2])
        if number % 3 == 1 and page.url not in self._failed:
            self._failed.add(page.url)
            self.frontier.report(visit, page, FAILED)
        else:
            self.frontier.report(visit, page, FETCHED, links(number), response_s=0.1)
            self.reported.append(page.url)

    def run(self) -> list[str]:
        while self.step():
            pass
        return self.reported

    def kill(self) -> None:
        """End without `close`: later calls see what was on disk, as after SIGKILL."""
        copy = self.folder.with_name(f"{self.folder.name}-killed")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.folder, copy, ignore=shutil.ignore_patterns("lock"))
        self.frontier.close()
        shutil.rmtree(self.folder)
        copy.rename(self.folder)


@pytest.mark.parametrize("strategy", ["opic", "breadth-first", "larger-sites-first", "crawl-ability"])
def test_every_page_is_handed_out_once(tmp_path: Path, strategy: str) -> None:
    crawl = Crawl(tmp_path / "f", strategy)
    assert sorted(crawl.run()) == sorted(map(url, range(PAGES)))
    crawl.frontier.close()


@settings(max_examples=examples(40), deadline=None)
@given(ends=st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=5))
def test_ends_of_any_kind_lose_nothing(tmp_path_factory: pytest.TempPathFactory, ends: list[tuple[int, bool]]) -> None:
    crawl = Crawl(tmp_path_factory.mktemp("ends") / "f")
    for steps, is_kill in ends:
        for _ in range(steps):
            crawl.step()
        crawl.kill() if is_kill else crawl.frontier.close()
        crawl.open()
    assert sorted(crawl.run()) == sorted(map(url, range(PAGES)))  # each once: every report is durable when it returns
    crawl.frontier.close()


def test_a_kill_and_a_clean_end_restore_the_same_frontier(tmp_path: Path) -> None:
    orders = []
    for is_kill in (False, True):
        crawl = Crawl(tmp_path / str(is_kill))
        for _ in range(9):
            crawl.step()
        crawl.kill() if is_kill else crawl.frontier.close()
        crawl.open()
        orders.append(crawl.run())
        crawl.frontier.close()
    assert orders[0] == orders[1]


def test_pages_in_flight_are_handed_out_again_with_their_payloads(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path / "f")
    crawl.frontier.add([NewPage("http://new.example/#top", b"\0payload", key="mine"), NewPage("http://new.example/")])
    handed_out = {}
    while len(handed_out) < 3:
        answer = crawl.frontier.next()
        assert isinstance(answer, UrlVisit)
        handed_out |= {page.url + str(page.id): page.payload for page in answer.pages}
        if answer.site == "http://new.example":
            crawl.frontier.report(answer, answer.pages[0], REFUSED)
    crawl.kill()
    crawl.open()
    again = {}
    while not isinstance(answer := crawl.frontier.next(), Drained) and len(again) < 2:
        if isinstance(answer, WaitUntil):
            crawl.clock.time = answer.time
        else:
            again |= {page.url + str(page.id): page.payload for page in answer.pages}
    assert again.items() <= handed_out.items() and len(again) == 2
    assert b"\0payload" in handed_out.values()
    crawl.frontier.close()


def test_keys_and_urls_make_pages(tmp_path: Path) -> None:
    with DurableFrontier(tmp_path / "f", rules=RULES) as frontier:
        assert frontier.add(["http://a.example/x#1", "HTTP://A.example/x", "http://a.example/x?"]) == 2
        assert frontier.add([NewPage("http://a.example/x", key="POST"), NewPage("http://b.example/", key="POST")]) == 1
        assert frontier.knows("http://a.example/x#2") and frontier.knows("POST") and not frontier.knows("GET")
        assert (frontier.known, frontier.waiting, frontier.sites) == (3, 3, 1)
    with DurableFrontier(tmp_path / "f", rules=RULES) as frontier:
        assert frontier.add([NewPage("http://b.example/", key="POST"), "http://a.example/x"]) == 0


def test_sites_have_names_delays_and_budgets_of_their_own(tmp_path: Path) -> None:
    clock = Clock()
    with DurableFrontier(tmp_path / "f", "breadth-first", RULES, clock=clock) as frontier:
        frontier.add([NewPage(f"http://s{n}.example/{m}", site="one") for n in range(2) for m in range(3)])
        frontier.add(["http://blocked.example/", "http://later.example/"])
        frontier.set_site("http://blocked.example", max_pages=0)
        frontier.set_site("http://later.example", not_before=clock.time + 100.0)
        frontier.set_site("one", delay_s=7.0)
        visit = frontier.next()
        assert isinstance(visit, UrlVisit) and (visit.site, len(visit.pages)) == ("one", 3)
        frontier.finish(visit)
        wait = frontier.next()
        assert wait == WaitUntil(clock.time + 7.0)
    with DurableFrontier(tmp_path / "f", "breadth-first", RULES, clock=clock) as frontier:
        clock.time += 8.0
        visit = frontier.next()
        assert isinstance(visit, UrlVisit) and visit.site == "one"
        frontier.finish(visit, Outcome(failed=True))
        clock.time += 100.0
        sites = {answer.site for _ in range(2) if isinstance(answer := frontier.next(), UrlVisit)}
        assert sites == {"one", "http://later.example"}


def test_sites_on_one_address_share_its_delay(tmp_path: Path) -> None:
    clock = Clock()
    rules = Rules(delay_s=1.0, ip_delay_s=50.0)
    with DurableFrontier(tmp_path / "f", "breadth-first", rules, by_address=True, clock=clock) as frontier:
        frontier.add(["http://a.example/", "http://b.example/", "http://c.example/"])
        assert frontier.unresolved == {"http://a.example", "http://b.example", "http://c.example"}
        assert isinstance(frontier.next(), WaitUntil)
        frontier.resolve("http://a.example", "192.0.2.1")
        frontier.resolve("http://b.example", "192.0.2.1")
    with DurableFrontier(tmp_path / "f", "breadth-first", rules, by_address=True, clock=clock) as frontier:
        assert frontier.unresolved == {"http://c.example"}
        clock.time += 51.0
        visit = frontier.next()
        assert isinstance(visit, UrlVisit)
        frontier.report(visit, visit.pages[0], FETCHED)
        frontier.finish(visit)
        assert frontier.next() == WaitUntil(clock.time + 50.0)


def test_the_quality_of_pages_is_used_by_strategies_that_know_it(tmp_path: Path) -> None:
    with DurableFrontier(tmp_path / "f", "quality", Rules(delay_s=0.0)) as frontier:
        frontier.add([NewPage(f"http://a.example/{n}", quality=float(n)) for n in (1, 3, 2)])
        order = []
        while isinstance(visit := frontier.next(), UrlVisit):
            order += [page.url[-1] for page in visit.pages]
            for page in visit.pages:
                frontier.report(visit, page, FETCHED)
            frontier.finish(visit)
        assert order == ["3", "2", "1"]


def test_snapshots_shorten_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trapline.durable.folder._SNAPSHOT_PAGES", 5)
    crawl = Crawl(tmp_path / "f")
    for _ in range(20):
        crawl.step()
    with closing(sqlite3.connect(tmp_path / "f" / "frontier.db")) as database:
        ((batches, last),) = database.execute("select count(*), max(batch) from log").fetchall()
    assert batches < last and len(list((tmp_path / "f" / "snapshot").iterdir())) <= 2
    crawl.kill()
    crawl.open()
    assert sorted(crawl.run()) == sorted(map(url, range(PAGES)))
    crawl.frontier.close()


def test_payloads_of_pages_that_are_done_take_no_room(tmp_path: Path) -> None:
    with DurableFrontier(tmp_path / "f", rules=RULES) as frontier:
        frontier.add([NewPage("http://a.example/", b"x")])
        visit = frontier.next()
        assert isinstance(visit, UrlVisit)
        frontier.report(visit, visit.pages[0], FETCHED)
        frontier.finish(visit)
    with closing(sqlite3.connect(tmp_path / "f" / "frontier.db")) as database:
        assert database.execute("select payload from page").fetchall() == [(None,)]


@pytest.mark.parametrize(
    ("strategy", "reason"),
    [("partial-pagerank", "choose another"), ("historical-pagerank-zero", "'history'"), ("no-such", "no strategy")],
)
def test_strategies_that_need_more_are_refused(tmp_path: Path, strategy: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        DurableFrontier(tmp_path / "f", strategy)
    assert not (tmp_path / "f").exists()


def test_every_other_strategy_can_be_used(tmp_path: Path) -> None:
    for name, strategy in strategies.strategies().items():
        refused = any(one.startswith("history") or one in STATE_PAGES for one in strategy.page.inputs)
        if not strategy.page.scores and not refused:
            DurableFrontier(tmp_path / name, name).close()


def test_a_folder_in_use_of_others_or_of_another_kind_is_refused(tmp_path: Path) -> None:
    with DurableFrontier(tmp_path / "f"), pytest.raises(ConfigError, match="is being used by process"):
        DurableFrontier(tmp_path / "f")
    with pytest.raises(ConfigError, match="was made with strategy 'opic'"):
        DurableFrontier(tmp_path / "f", "breadth-first")
    with pytest.raises(
        ConfigError, match="belongs to a DurableFrontier, not to a ScheduledFrontier; name another folder"
    ):
        ScheduledFrontier(tmp_path / "f", "opic")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("")
    with pytest.raises(ConfigError, match=r"has other files, such as thesis\.txt"):
        DurableFrontier(tmp_path / "other")
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="not a folder"):
        DurableFrontier(tmp_path / "file")
    with closing(sqlite3.connect(tmp_path / "f" / "frontier.db")) as database, database:
        database.execute("update meta set value = '99' where key = 'format'")
    with pytest.raises(ConfigError, match="use the version that wrote it"):
        DurableFrontier(tmp_path / "f")


def test_rules_can_change_between_two_processes(tmp_path: Path) -> None:
    clock = Clock()
    DurableFrontier(tmp_path / "f", rules=Rules(delay_s=5.0), clock=clock).close()
    with DurableFrontier(tmp_path / "f", rules=Rules(delay_s=1.0), clock=clock) as frontier:
        frontier.add(["http://a.example/1", "http://a.example/2"])
        visit = frontier.next()
        assert isinstance(visit, UrlVisit)
        frontier.finish(visit)
        assert frontier.next() == WaitUntil(clock.time + 1.0)


def test_urls_that_cannot_be_fetched_are_named_or_left_out(tmp_path: Path) -> None:
    with DurableFrontier(tmp_path / "f", rules=RULES) as frontier:
        with pytest.raises(ConfigError, match=r"mailto:me: not an http or https URL"):
            frontier.add(["http://a.example/", "mailto:me"])
        assert frontier.known == 0
        frontier.add(["http://a.example/"], sync=True)
        visit = frontier.next()
        assert isinstance(visit, UrlVisit)
        frontier.report(visit, visit.pages[0], FETCHED, ["mailto:me", "http://a.example/1"])
        assert frontier.known == 2


def test_after_a_clock_was_set_back_delays_end_as_before(tmp_path: Path) -> None:
    clock = Clock()
    for setback_s in (3600.0, 1e6):  # the second time between two processes
        with DurableFrontier(tmp_path / "f", "breadth-first", Rules(delay_s=10.0), clock=clock) as frontier:
            frontier.add([f"http://a.example/{setback_s}", f"http://a.example/{setback_s}/2"])
            clock.time += 20.0  # after a resume, every site waits once more
            visit = frontier.next()
            assert isinstance(visit, UrlVisit)
            frontier.finish(visit)
            now = frontier.now
            clock.time -= setback_s
            assert frontier.now == now and frontier.next() == WaitUntil(now + 10.0)
            clock.time += 10.0
            assert isinstance(frontier.next(), UrlVisit)


def test_a_crawler_can_say_how_often_a_page_is_tried(tmp_path: Path) -> None:
    frontier = DurableFrontier(tmp_path / "f", rules=Rules(delay_s=0.0, retries=1, backoff_s=0.0))
    frontier.add([NewPage("http://a.example/", b"0")])
    tries = []
    for number in range(4):
        visit = frontier.next()
        assert isinstance(visit, UrlVisit)
        (page,) = visit.pages
        tries.append((page.payload, frontier.retries_left(page)))
        frontier.set_payload(page, str(number + 1).encode())
        if frontier.retries_left(page):
            frontier.report(visit, page, FAILED)
        frontier.finish(visit)
    assert tries == [(b"0", 1), (b"1", 0), (b"2", 0), (b"3", 0)]
    assert frontier.waiting == 1 and not frontier.is_done("http://a.example/")
    killed(frontier)
    with DurableFrontier(tmp_path / "f", rules=Rules(delay_s=0.0)) as frontier:
        visit = frontier.next()
        assert isinstance(visit, UrlVisit) and visit.pages[0].payload == b"4"
        frontier.report(visit, visit.pages[0], REFUSED)
        assert frontier.is_done("http://a.example/") and not frontier.is_done("http://b.example/")


# ---- what goes wrong


def killed(frontier: DurableFrontier) -> None:
    """End without a last commit and without a snapshot."""
    frontier._folder.discard()


def all_urls(frontier: DurableFrontier) -> list[str]:
    """Fetch all pages and return their URLs."""
    found = []
    while isinstance(visit := frontier.next(), UrlVisit):
        for page in visit.pages:
            found.append(page.url)
            frontier.report(visit, page, FETCHED)
        frontier.finish(visit)
    return found


def test_what_could_not_be_written_is_written_by_the_next_call(tmp_path: Path) -> None:
    rules = Rules(delay_s=0.0)
    frontier = DurableFrontier(tmp_path / "f", rules=rules)
    frontier._database.connection.execute("pragma busy_timeout = 10")
    with closing(sqlite3.connect(tmp_path / "f" / "frontier.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            frontier.add(["http://a.example/"])
        other.execute("rollback")
    frontier.add(["http://b.example/"])
    killed(frontier)
    with DurableFrontier(tmp_path / "f", rules=rules) as frontier:
        assert all_urls(frontier) == ["http://a.example/", "http://b.example/"]


def test_calls_of_one_block_are_written_together_even_if_it_fails(tmp_path: Path) -> None:
    rules, copy = Rules(delay_s=0.0, backoff_s=0.0), tmp_path / "copy"
    frontier = DurableFrontier(tmp_path / "f", rules=rules)
    with pytest.raises(ZeroDivisionError), frontier.one_commit():
        frontier.add([NewPage("http://a.example/", b"old")])
        visit = frontier.next()
        assert isinstance(visit, UrlVisit)
        frontier.report(visit, visit.pages[0], FAILED, payload=b"new")
        frontier.finish(visit)
        again = frontier.next()
        assert isinstance(again, UrlVisit) and [page.payload for page in again.pages] == [b"new"]
        frontier.report(again, again.pages[0], FETCHED, ["http://b.example/"])
        frontier.finish(again)
        shutil.copytree(tmp_path / "f", copy, ignore=shutil.ignore_patterns("lock"))
        raise ZeroDivisionError
    killed(frontier)
    with DurableFrontier(copy, rules=rules) as before, DurableFrontier(tmp_path / "f", rules=rules) as after:
        assert (before.known, after.known, after.done) == (0, 2, 1)


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (NewPage("http://bad.example/", payload="text"), "payload is of type str; give bytes"),  # type: ignore[arg-type]
        (NewPage("http://bad.example/", key="\ud800"), "key .* UTF-8"),
        (NewPage("http://bad.example/", site="\ud800"), "site .* UTF-8"),
        (NewPage("bad:\ud800", key="key", site="site"), "url .* UTF-8"),
        (NewPage("http://bad.example/", quality=None), "quality is None"),  # type: ignore[arg-type]
        (NewPage("http://bad.example/", quality=float("nan")), "quality is nan"),
        (NewPage("http://bad.example/", quality=1e30), r"quality is 1e\+30"),
    ],
)
def test_a_page_that_cannot_be_kept_is_refused_and_changes_nothing(tmp_path: Path, page: NewPage, reason: str) -> None:
    rules = Rules(delay_s=0.0)
    frontier = DurableFrontier(tmp_path / "f", "quality", rules)
    with pytest.raises(ConfigError, match=reason):
        frontier.add(["http://a.example/", page])
    frontier.add(["http://b.example/\ud800"])  # a lone surrogate in a URL is replaced, as browsers do
    assert (frontier.known, frontier.sites) == (1, 1)
    killed(frontier)
    with DurableFrontier(tmp_path / "f", "quality", rules) as frontier:
        assert all_urls(frontier) == ["http://b.example/%EF%BF%BD"]


def test_pages_with_one_url_have_qualities_of_their_own(tmp_path: Path) -> None:
    with DurableFrontier(tmp_path / "f", "quality", Rules(delay_s=0.0)) as frontier:
        frontier.add([NewPage("http://a.example/", str(n).encode(), key=str(n), quality=n) for n in (1, 3, 2)])
        order = []
        while isinstance(visit := frontier.next(), UrlVisit):
            order.append(visit.pages[0].payload)
            frontier.report(visit, visit.pages[0], FETCHED)
            frontier.finish(visit)
        assert order == [b"3", b"2", b"1"]


def test_a_link_to_a_known_page_counts_like_its_url(tmp_path: Path) -> None:
    """Under OPIC, in which links decide. New pages among known ones keep their places."""
    given = [f"http://a.test/{n}" for n in range(4)]
    orders = []
    for is_known in (False, True):
        with DurableFrontier(tmp_path / str(is_known), "opic", Rules(delay_s=0.0, per_connection=1)) as frontier:
            frontier.add(given)
            known = [frontier.find(url) for url in given]
            assert frontier.find("http://a.test/new") is None
            links = ["http://a.test/new", known[3] if is_known else given[3], "ftp://no.test/", "http://a.test/newer"]
            order = []
            while isinstance(visit := frontier.next(), UrlVisit):
                (page,) = visit.pages
                frontier.report(visit, page, FETCHED, [link for link in links if link is not None])
                frontier.finish(visit)
                order.append(page.url)
            orders.append(order)
    assert orders[0] == orders[1]
    assert orders[0][1] == given[3]
    assert len(orders[0]) == 6


def test_a_key_that_is_a_url_is_known_as_it_was_given(tmp_path: Path) -> None:
    with DurableFrontier(tmp_path / "f") as frontier:
        frontier.add([NewPage("http://a.example/", key="HTTP://B.example")])
        assert frontier.knows("HTTP://B.example") and not frontier.knows("http://b.example/")


def test_addresses_of_unknown_sites_or_without_by_address_are_refused(tmp_path: Path) -> None:
    with DurableFrontier(tmp_path / "f") as frontier:
        frontier.add(["http://a.example/", "http://b.example/"])
        with pytest.raises(ConfigError, match="without by_address=True"):
            frontier.resolve("http://b.example", "192.0.2.1")
        assert isinstance(frontier.next(), UrlVisit) and isinstance(frontier.next(), UrlVisit)
    with (
        DurableFrontier(tmp_path / "g", by_address=True) as frontier,
        pytest.raises(ConfigError, match="is not a site"),
    ):
        frontier.resolve("http://a.example", "192.0.2.1")


def test_one_damaged_snapshot_after_the_other_costs_nothing(tmp_path: Path) -> None:
    for number in range(5):
        with DurableFrontier(tmp_path / "f", "breadth-first", Rules(delay_s=0.0)) as frontier:
            frontier.add([f"http://s{number}.example/"])
        if number >= 2:
            newest = max((tmp_path / "f" / "snapshot").iterdir(), key=lambda place: int(place.name))
            for file in (file for file in newest.rglob("*") if file.is_file()):
                file.write_bytes(b"damaged")
    with DurableFrontier(tmp_path / "f", "breadth-first", Rules(delay_s=0.0)) as frontier:
        assert all_urls(frontier) == [f"http://s{number}.example/" for number in range(5)]


# ---- a real process, killed

CHILD = """
import sys, time
from tests.durable.test_durable_frontier import links
from trapline import FETCHED, Drained, Rules, WaitUntil
from trapline.durable import DurableFrontier

folder, log = sys.argv[1:]
frontier = DurableFrontier(folder, "opic", Rules(delay_s=0.002, per_connection=5))
frontier.add(["http://s0.example/0"])
with open(log, "a", buffering=1) as out:
    while not isinstance(answer := frontier.next(), Drained):
        if isinstance(answer, WaitUntil):
            time.sleep(min(max(answer.time - time.time(), 0.0), 0.01))
            continue
        for page in answer.pages:
            out.write(f"request {page.url}\\n")
            frontier.report(answer, page, FETCHED, links(int(page.url.rpartition("/")[2])))
            out.write(f"reported {page.url}\\n")
        frontier.finish(answer)
frontier.close()
"""


@slow
def test_a_killed_process_loses_nothing_that_was_reported(tmp_path: Path) -> None:
    folder, log, chance = tmp_path / "f", tmp_path / "log", random.Random(3)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    kills = 0
    while True:
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(folder), str(log)], env=environment)
        until = time.monotonic() + 60.0
        before = log.stat().st_size if log.exists() else 0
        while child.poll() is None and kills < 12 and time.monotonic() < until:
            if log.exists() and log.stat().st_size > before:
                time.sleep(chance.random() * 0.02)
                break
            time.sleep(0.002)
        if kills < 12 and child.poll() is None:
            child.send_signal(signal.SIGKILL)
            kills += 1
            child.wait()
        elif child.wait(timeout=60.0) == 0:
            break
    lines = log.read_text().splitlines()
    reported = [line.split()[1] for line in lines if line.startswith("reported")]
    requested = [line.split()[1] for line in lines if line.startswith("request ")]
    assert set(requested) == set(map(url, range(PAGES)))
    assert (
        len(reported) == len(set(reported)) >= PAGES - kills
    )  # a kill may come between a report and its line in the log
    assert len(requested) - len(reported) <= 5 * kills
