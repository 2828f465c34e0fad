"""Freshness from a log follows its definition, by hand and by a slow twin, from real sockets and from files."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.freshness import Fetch
from tests.naive.freshness import fresh as naive_fresh
from tests.naive.freshness import freshness as naive_freshness
from tests.testweb.changing import changing_web, history
from tests.testweb.webs import connect, one_answer, request
from trapline.errors import ConfigError
from trapline.testweb import (
    AccessTimes,
    Behaviour,
    CopyFreshness,
    FetchTimes,
    fetches_of,
    freshness,
    history_of,
    popularity,
    serve,
)
from trapline.testweb.checks.freshness import read_accesses, read_fetches, read_history, write_history
from trapline.testweb.server.log import write_log

PAGES = 3


def fetches(*rows: Fetch, versions: list[int] | None = None) -> FetchTimes:
    page, requested_s, sent_s = zip(*rows, strict=True) if rows else ((), (), ())
    status = np.full(len(rows), 200)
    return FetchTimes(
        np.array(page, int), np.array(requested_s), np.array(sent_s), status, np.array(versions or status, int)
    )


def measured(updates: dict[int, list[float]], *rows: Fetch, begin: float = 0.0, end: float = 10.0) -> CopyFreshness:
    return freshness(history(updates, PAGES), fetches(*rows), np.ones(PAGES), begin, end)["all"]


def test_a_copy_is_fresh_from_its_answer_to_the_next_update() -> None:
    found = measured({0: [6.0]}, (0, 1.0, 2.0))
    assert found.binary == pytest.approx(4 / 30)  # 2 s to 6 s of one page in three
    assert found.binary_of_copies == pytest.approx(4 / 8)
    assert (found.pages, found.fetched, found.fetches, found.updates) == (3, 1, 1, 1)


def test_an_update_while_the_answer_is_on_its_way_leaves_a_stale_copy() -> None:
    assert measured({0: [1.5]}, (0, 1.0, 2.0)).binary == 0.0
    assert measured({0: [1.0]}, (0, 1.0, 2.0)).binary_of_copies == 1.0  # the update was there when the request came


def test_pages_never_fetched_are_not_fresh() -> None:
    assert measured({}).binary == 0.0 == measured({}).binary_of_copies
    assert measured({}, (0, 0.0, 0.0), (1, 0.0, 0.0), (2, 0.0, 0.0)).binary == 1.0


def test_a_window_counts_its_events_and_earlier_copies() -> None:
    found = measured({0: [2.0, 7.0]}, (0, 3.0, 3.0), begin=5.0)
    assert found.binary_of_copies == pytest.approx(2 / 5)
    assert (found.updates, found.fetches, found.fetched) == (1, 0, 1)


def test_a_page_counts_from_its_birth() -> None:
    known = history({}, PAGES, born_s=[0.0, 0.0, 8.0])
    found = freshness(known, fetches((2, 9.0, 9.0)), np.ones(PAGES), 0.0, 10.0)["all"]
    assert found.binary == pytest.approx(1 / 22)


def test_a_fetch_is_useful_if_it_brings_another_version() -> None:
    rows = [(0, 1.0, 1.0), (0, 2.0, 2.0), (1, 2.0, 2.0), (0, 3.0, 3.0)]
    found = freshness(history({}, 2), fetches(*rows, versions=[4, 4, 4, 5]), np.ones(2), 0.0, 10.0)["all"]
    assert (found.fetches, found.useful) == (4, 3)


def test_levels_are_measured_separately() -> None:
    known = history({}, 2)._replace(level=np.array(["normal", "super"]))
    found = freshness(known, fetches((1, 0.0, 0.0)), np.ones(2), 0.0, 10.0)
    assert [found[name].binary for name in ("all", "normal", "super")] == [0.5, 0.0, 1.0]


def test_an_empty_window_is_refused() -> None:
    with pytest.raises(ConfigError, match="is empty; it must end after it begins"):
        measured({}, begin=10.0)


moments = st.integers(0, 20).map(float)
updates_of = st.fixed_dictionaries({page: st.lists(moments, unique=True).map(sorted) for page in range(PAGES)})
some_fetches = st.lists(
    st.tuples(st.integers(0, PAGES - 1), moments, st.integers(0, 3)).map(lambda row: (row[0], row[1], row[1] + row[2])),
    max_size=12,
)


@given(
    updates_of, st.tuples(moments, moments, moments), some_fetches, st.lists(st.integers(1, 5), min_size=3, max_size=3)
)
def test_freshness_equals_that_of_a_look_at_every_moment(
    updates: dict[int, list[float]], born_s: tuple[float, ...], rows: list[Fetch], weights: list[int]
) -> None:
    # All moments are whole, so the middles of seconds see every event.
    updates = {page: [at for at in own if at > born_s[page]] for page, own in updates.items()}
    rows = [row for row in rows if row[1] >= born_s[row[0]]]
    grid = [second + 0.5 for second in range(5, 20)]
    known = history(updates, PAGES, born_s)
    accesses = AccessTimes(np.repeat(np.arange(PAGES), len(grid)), np.tile(grid, PAGES))
    found = freshness(known, fetches(*rows), np.array(weights, float), 5.0, 20.0, accesses)["all"]
    expected = naive_freshness(updates, born_s, rows, weights, grid)
    assert (found.binary, found.binary_of_copies) == pytest.approx(expected)
    at_accesses = [naive_fresh(updates[page], rows, page, at_s) for page in range(PAGES) for at_s in grid]
    assert found.binary_at_accesses == pytest.approx(np.mean(at_accesses))


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_freshness_from_real_requests_equals_that_from_files(form: str, tmp_path: Path) -> None:
    web = changing_web(gap_s=0.02, behaving=Behaviour(validators="honest"), sites=2, pages_per_site=3)
    with serve(web) as server:
        web = server.web
        for page in (0, 1, 0, 4, 1):
            with connect(web, web.site[page]) as own:
                own.sendall(request(web, page))
                one_answer(own)
        log = server.log()
    end_s = float(fetches_of(log).sent_s.max()) + 0.001  # files have times in microseconds, which are rounded
    weights = popularity(web.pages, 0.85, 3)
    direct = freshness(history_of(web, end_s), fetches_of(log), weights, 0.0, end_s)
    assert direct["all"].fetched == 3 and direct["all"].fetches == 5
    assert 0.0 < direct["all"].binary < direct["all"].binary_of_copies <= 1.0
    write_log(log, tmp_path / f"log.{form}")
    write_history(web, web.began + end_s, tmp_path / f"history.{form}")
    known, keys, began = read_history(tmp_path / f"history.{form}")
    assert began == web.began
    filed = freshness(known, read_fetches(tmp_path / f"log.{form}", keys, began), weights, 0.0, end_s)
    for name in ("updates", "fetched", "useful"):
        assert getattr(filed["all"], name) == getattr(direct["all"], name)
    assert math.isclose(filed["all"].binary, direct["all"].binary, abs_tol=1e-4)


def test_accesses_are_read_by_their_urls(tmp_path: Path) -> None:
    keys, file = {("a.org", "/"): 0, ("a.org", "/x?y=1"): 1}, tmp_path / "accesses"
    file.write_text("101.5\thttp://a.org:81/x?y=1\n102\thttp://elsewhere.org/\n103\thttp://a.org\n")
    found = read_accesses(file, keys, 100.0)
    assert (found.page.tolist(), found.at_s.tolist()) == ([1, 0], [1.5, 3.0])


@pytest.mark.parametrize("text", ["http://a.org/\n", "soon\thttp://a.org/\n", "1\thttp://[\n"])
def test_an_invalid_access_is_named_by_its_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "accesses").write_text(text)
    with pytest.raises(ConfigError, match="line 1"):
        read_accesses(tmp_path / "accesses", {}, 0.0)


@pytest.mark.parametrize(
    ("text", "hint"), [("a,b\n1,2\n", "has no column named 'host'"), ("", "cannot be read, neither CSV nor Parquet")]
)
def test_an_invalid_history_is_refused(text: str, hint: str, tmp_path: Path) -> None:
    (tmp_path / "history.csv").write_text(text)
    with pytest.raises(ConfigError, match=hint):
        read_history(tmp_path / "history.csv")


def test_popularity_follows_a_power_law_of_ranks() -> None:
    shares = popularity(100, 1.0, seed=5)
    assert shares.sum() == pytest.approx(1.0) and sorted(shares)[-1] == pytest.approx(2 * sorted(shares)[-2])
    assert (popularity(100, 1.0, seed=6) != shares).any() and (popularity(4, 0.0) == 0.25).all()
