"""A scheduled frontier hands out the pages that its oracle hands out, at the same times, whatever is put, set, removed or killed."""

import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.naive.url_queues import NaiveQueues
from trapline.durable.pages import PutPage
from trapline.durable.schedule import PageSchedule
from trapline.durable.scheduled import ScheduledFrontier, SteadyClock
from trapline.errors import ConfigError
from trapline.frontier import Rules

SITES = ("a", "b", "c")
RULES = Rules(delay_s=2.0, per_connection=2)
START = 1_000_000


class Pair:
    """A frontier and its oracle."""

    def __init__(self, folder: Path, most_reserved: int) -> None:
        self.folder, self.most_reserved = folder, most_reserved
        self.naive = NaiveQueues(RULES.delay_s, RULES.per_connection, most_reserved or math.inf)
        self.naive.now = START
        self.puts = 0
        self.payloads: dict[tuple[str, str], bytes] = {}  # by site and URL
        self.open()

    def open(self) -> None:
        self.fast = ScheduledFrontier(
            self.folder, rules=RULES, most_reserved=self.most_reserved, clock=lambda: self.naive.now
        )

    def put(self, pages: list[tuple[str, int, int | None]]) -> None:
        """Pages as (site, number, date or None); dates count from the start, and 0 is 0."""
        dated = [(site, f"http://{site}/{page}", date and START + date) for site, page, date in pages]
        payloads = [b"%d" % number for number in range(self.puts, self.puts + len(dated))]
        self.puts += len(dated)
        stored = self.fast.put(
            [PutPage(url, site, payload, date) for (site, url, date), payload in zip(dated, payloads, strict=True)]
        )
        assert stored == [self.naive.put(*page) for page in dated]
        changed = zip(dated, payloads, stored, strict=True)
        self.payloads |= {(site, url): payload for (site, url, _), payload, is_stored in changed if is_stored}

    def hand_out_one(self, site: str, most: int, hold_s: int) -> None:
        handed = self.fast.hand_out(most, hold_s, 1, site)
        assert [number for one in handed for number in one.pages] == self.naive.hand_out(site, most, hold_s)

    def hand_out(self, sites: int, most: int, hold_s: int) -> None:
        ready = {name for name in self.naive.sites if self.naive.available(name)}
        handed = self.fast.hand_out(most, hold_s, sites)
        names = [one.site for one in handed]
        assert set(names) <= ready and len(set(names)) == len(names) == min(sites, len(ready))
        for one in handed:
            assert one.pages == self.naive.hand_out(one.site, most, hold_s)

    def rule(self, kind: str, site: str, value: int) -> None:
        naive = self.naive.site(site)
        if kind == "delay":
            self.fast.set_delay(site, value)
            self.naive.set_delay(site, value)
        elif kind == "block":
            naive.blocked_until = START + value if value else 0
            self.fast.block(site, naive.blocked_until)
        else:
            naive.most_done = value
            self.fast.limit(site, value)

    def remove(self, site: str | None, than: int) -> None:
        if site:
            assert self.fast.remove_site(site) == self.naive.remove_site(site)
        else:
            assert self.fast.remove_older(START + than) == self.naive.remove_older(START + than)

    def restart(self, is_kill: bool) -> None:
        self.fast.commit()
        if is_kill:
            copy = self.folder.with_name("copy")
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(self.folder, copy, ignore=shutil.ignore_patterns("lock"))
            self.fast.close()
            shutil.rmtree(self.folder)
            copy.rename(self.folder)
        else:
            self.fast.close()
        self.naive.restart()
        self.open()

    def check(self) -> None:
        for name, site in self.naive.sites.items():
            for url, page in site.pages.items():
                found = self.fast.page(url, name)
                assert found is not None and found.payload == self.payloads[name, url]
                date = -0.001 if page.date is None else page.date
                dates = tuple(round(1000 * one) for one in (page.created, date, page.held_until))
                assert (found.dates.created, found.dates.date) == dates[:2]
                assert (
                    found.dates.held_until == dates[2] or max(found.dates.held_until, dates[2]) <= 1000 * self.naive.now
                )
        pages = [page for site in self.naive.sites.values() for page in site.pages.values()]
        counts = self.fast.counts()
        assert (counts.known, counts.done) == (len(pages), sum(page.date == 0 for page in pages))
        assert counts.reserved == sum(page.held_until > self.naive.now and page.date != 0 for page in pages)


site = st.sampled_from(SITES)
seconds = st.integers(0, 12)
step = st.one_of(
    st.tuples(st.just("put"), st.lists(st.tuples(site, st.integers(0, 8), st.none() | seconds), max_size=8)),
    st.tuples(st.just("hand_out"), st.integers(1, 3), st.integers(1, 4), st.integers(1, 9)),
    st.tuples(st.just("hand_out_one"), site, st.integers(1, 4), st.integers(1, 9)),
    st.tuples(st.just("wait"), st.sampled_from([0.0, 0.25, 1.0, 2.5, 7.0])),
    st.tuples(st.just("rule"), st.sampled_from(["delay", "block", "limit"]), site, st.integers(0, 6)),
    st.tuples(st.just("remove"), st.none() | site, seconds),
    st.tuples(st.just("restart"), st.booleans()),
)


@settings(max_examples=examples(96), deadline=None)
@given(steps=st.lists(step, max_size=25), most_reserved=st.sampled_from([0, 0, 3]))
def test_the_frontier_agrees_with_its_oracle(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, ...]], most_reserved: int
) -> None:
    pair = Pair(tmp_path_factory.mktemp("pair") / "f", most_reserved)
    for name, *arguments in steps:
        if name == "wait":
            pair.naive.now += arguments[0]
        else:
            getattr(pair, name)(*arguments)
        pair.check()
    pair.restart(is_kill=True)
    pair.check()
    for _ in range(3):
        pair.naive.now += 20.0
        pair.hand_out(3, 9, 5)
    pair.fast.close()


@pytest.mark.parametrize(
    "strategy", ["opic", "backlink-count", "larger-sites-first", "crawl-ability", "depth", "random"]
)
def test_any_strategy_orders_new_pages(tmp_path: Path, strategy: str) -> None:
    rules = Rules(per_connection=60)  # more than the first_requests of a crawler
    frontier = ScheduledFrontier(tmp_path / "f", strategy, rules, clock=lambda: 1e9)
    pages = [PutPage(f"http://{name}/{number}", name) for name in SITES for number in range(55)]
    frontier.put(pages)
    handed = frontier.hand_out(70, 30, 9)
    assert sorted(one.site for one in handed) == list(SITES) and sum(len(one.pages) for one in handed) == 165
    frontier.close()


def test_a_site_comes_once_in_one_call_whatever_its_delay(tmp_path: Path) -> None:
    frontier = ScheduledFrontier(tmp_path / "f", rules=Rules(delay_s=0.0, per_connection=1), clock=lambda: 1e9)
    frontier.put([PutPage(f"http://a/{number}", "a", date=number % 2 or None) for number in range(9)])
    assert [len(one.pages) for one in frontier.hand_out(2, 30, 9)] == [2]
    frontier.close()


@pytest.mark.parametrize("is_disturbed", [False, True])
def test_a_retrieval_in_several_calls_meets_every_site_once(tmp_path: Path, is_disturbed: bool) -> None:
    """Whatever the delay, while time passes between the calls, and while other calls move the frontier's time on."""
    now, names = [1e9], [f"s{number}" for number in range(20)]
    rules = Rules(delay_s=0.0)
    frontier = ScheduledFrontier(tmp_path / "f", "larger-sites-first", rules, clock=lambda: now[0])
    new = [PutPage(f"http://{name}/{page}", name) for place, name in enumerate(names) for page in range(30 - place)]
    due = [PutPage(f"http://{name}/due/{page}", name, date=1) for name in names[::2] for page in range(9)]
    frontier.put([*new, *due])
    moment, found = frontier.now, list[str]()
    while handed := frontier.hand_out(3, 60.0, 3, served=found, moment=moment):
        found += [one.site for one in handed]
        now[0] += 1.0
        if is_disturbed:
            frontier.set_delay("other", 1.0)
    assert sorted(found) == sorted(names)
    frontier.close()


def test_a_later_call_of_a_retrieval_wastes_no_delay(tmp_path: Path) -> None:
    now = [1e9]
    frontier = ScheduledFrontier(tmp_path / "f", rules=Rules(delay_s=2.0), clock=lambda: now[0])
    frontier.put([PutPage(f"http://{name}/{page}", name) for name in "ab" for page in range(9)])
    moment = frontier.now
    (first,) = frontier.hand_out(1, 60.0, 1, moment=moment)
    now[0] += 3.0
    (second,) = frontier.hand_out(1, 60.0, 9, served=[first.site], moment=moment)
    assert [one.site for one in frontier.hand_out(1, 60.0, 9)] == [first.site]
    now[0] += 1.9  # the delay of the second site counts from when it was handed out
    assert frontier.hand_out(1, 60.0, 9) == []
    now[0] += 0.1
    assert {one.site for one in frontier.hand_out(1, 60.0, 9)} == {first.site, second.site}
    frontier.close()


def test_a_page_is_reserved_for_some_time(tmp_path: Path) -> None:
    frontier = ScheduledFrontier(tmp_path / "f", rules=RULES, clock=lambda: 1e9)
    frontier.put([PutPage("http://a/", "a", date=1)])
    for hold_s in (0.0, -1.0, math.nan):
        with pytest.raises(ConfigError, match="hold_s"):
            frontier.hand_out(9, hold_s)
    (handed,) = frontier.hand_out(9, 1e-9)
    assert handed.pages == [0]
    frontier.close()


def test_removed_pages_are_not_listed(tmp_path: Path) -> None:
    """They may be removed between two looks of somebody who lists pages."""
    frontier = ScheduledFrontier(tmp_path / "f", rules=RULES, clock=lambda: 1e9)
    frontier.put([PutPage(f"http://{name}/{number}", name) for name in "ab" for number in range(2)])
    pages = frontier.pages().tolist()
    for is_committed in (False, True):
        frontier.put([PutPage("http://a/0", "a"), PutPage("http://a/1", "a")])
        pages = sorted({*pages, *frontier.pages().tolist()})
        frontier.remove_site("a")
        if is_committed:
            frontier.commit()
        assert [page.url for page in frontier.listed(pages)] == ["http://b/0", "http://b/1"]
    frontier.remove_older(2e9)
    assert frontier.listed(pages) == []
    frontier.close()


def test_nothing_is_logged_while_nothing_is_due(tmp_path: Path) -> None:
    """Clients ask all the time. The log of calls that were not committed is kept in memory."""
    now = [1e9]
    frontier = ScheduledFrontier(tmp_path / "f", rules=RULES, clock=lambda: now[0])
    frontier.put([PutPage("http://a/", "a"), PutPage("http://a/2", "a"), PutPage("http://b/", "b", date=2_000_000_000)])
    frontier.hand_out(1, 3600)
    frontier.commit()
    for _ in range(10):
        now[0] += 0.01
        assert frontier.hand_out(9, 1, 9) == frontier.hand_out(9, 1, 9, "b") == []
    assert frontier._frontier.journal is not None and frontier._frontier.journal.take() == b""
    frontier.close()


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (PutPage("http://a/2", "a", date=-1), "negative"),
        (PutPage("http://a/2", "\ud800"), "UTF-8"),
        (PutPage("http://a/\ud800", "a"), "UTF-8"),
        (PutPage("http://a/2", "a", "text"), "bytes"),  # type: ignore[arg-type]
        (PutPage("http://a/2", "a", quality=math.nan), "2\\^42"),
        (PutPage("http://a/2", "a", quality=2.0**42), "2\\^42"),
    ],
    ids=range(6),
)
def test_pages_are_checked_before_anything_is_changed(tmp_path: Path, page: PutPage, reason: str) -> None:
    rules = Rules(delay_s=0.0)
    frontier = ScheduledFrontier(tmp_path / "f", "quality", rules, clock=lambda: 1e9)
    with pytest.raises(ConfigError, match=reason):
        frontier.put([PutPage("http://a/", "a"), page])
    assert frontier.counts().known == frontier._frontier.pages == len(frontier._folder.site_numbers) == 0
    frontier.put([PutPage("http://a/3", "a")])
    frontier.commit()
    assert frontier._frontier.journal is not None and frontier._frontier.journal.take() == b""
    frontier.close()
    again = ScheduledFrontier(tmp_path / "f", "quality", rules, clock=lambda: 1e9)
    assert [page.url for one in again.hand_out(9, 1) for page in again.listed(one.pages)] == ["http://a/3"]
    again.close()


def test_a_clock_never_goes_back_and_never_stands_still() -> None:
    wall, steady = [100.0], [0.0]
    clock = SteadyClock(lambda: wall[0], lambda: steady[0])
    seen = []
    for passed, jump in ((1, 0), (1, 50), (1, -80), (1, 0), (40, 0)):
        steady[0] += passed
        wall[0] += passed + jump
        seen.append(clock())
    assert seen == [101, 152, 153, 154, 194]
    clock.raise_to(150.0)
    clock.raise_to(300.0)
    assert clock() == 300.0


def test_closed_sites_do_not_pile_up(tmp_path: Path) -> None:
    """However often a page is put while its site is blocked or has enough reservations."""
    frontier = ScheduledFrontier(tmp_path / "f", rules=RULES, most_reserved=1, clock=lambda: 1e9)
    frontier.block("a", 2e9)
    frontier.put([PutPage("http://b/", "b"), PutPage("http://b/2", "b")])
    frontier.hand_out(9, 3600)
    for number in range(100):
        frontier.put([PutPage(f"http://{name}/{number}/", name) for name in "ab"])
        frontier.block("a", 2e9 + number)
    assert len(frontier._closures._settles) <= 2
    assert frontier.site_names() == ["b"] and frontier.site_names(with_inactive=True) == ["a", "b"]
    frontier.close()


def test_entries_of_the_schedule_do_not_pile_up() -> None:
    """However often a page is reserved and scheduled again, and its site looked at."""
    schedule = PageSchedule()
    for _ in range(10):
        schedule.add(0, 1, 2)
    for now in range(10, 5_000, 10):
        assert schedule.next_site(now, lambda site: 0) == 0
        for _ in range(10):
            page = schedule.first(0, now)
            assert page is not None
            schedule.hold(page, now + 5)
        for _ in range(10):
            schedule.set_date(3, 2)
            schedule.first(0, now)
    entries = [*schedule._later.values(), *schedule._ready.values(), schedule._opens]
    assert sum(map(len, entries)) < 200
    restored = PageSchedule.restored(*schedule.arrays())
    assert np.array_equal(np.vstack(restored.arrays()), np.vstack(schedule.arrays()))
