"""The table of sites says of each site what the frontier's own explanation says, from a running crawl and from a snapshot."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from trapline.crawler.engine import row_kinds
from trapline.crawler.files import site_table
from trapline.crawler.files.site_table import IN_SNAPSHOT, LIVE, NONE, STATES
from trapline.frontier import (
    FAILED,
    FETCHED,
    REFUSED,
    Frontier,
    Outcome,
    Result,
    Rules,
    Visit,
    WaitUntil,
    layout,
    snapshot,
)
from trapline.frontier.explain import MAY_BE_VISITED
from trapline.strategies import load_strategy

EXPLAINED = {
    "idle": ("no page is waiting",),
    "visiting": ("a visit is in progress",),
    "ready": (MAY_BE_VISITED,),
    "site_delay": ("it waits because of its delay",),
    "address_delay": ("it waits because of the delay of its address", "a visit to site"),
    "back_off": ("it waits because of back-off", "it waits because of Retry-After or"),
    "dns": ("its address is not known",),
    "budget": ("its page budget is used up",),
}
SITES = 10


def moments() -> Iterator[tuple[Frontier, float]]:
    """Yield a frontier and the time at many moments of a crawl in which sites fail, share addresses, have none, or are abandoned."""
    rules = Rules(delay_s=5.0, per_connection=2, pages_per_site=6, lease_s=600.0, backoff_s=7.0)
    frontier = Frontier(load_strategy("breadth-first"), rules)
    frontier.add_sites(SITES, 0.0)
    frontier.add_pages(np.repeat(np.arange(SITES), 8))
    frontier.discover(np.arange(8 * SITES - 8), 0.0)  # the last site has no waiting page
    for site in range(SITES - 2):
        frontier.resolve(site, site // 2, 0.0)
    frontier.set_site(3, 0.0, pages=0)
    frontier.set_site(5, 0.0, not_before=40.0, delay_s=2.0)
    now, under_way = 0.0, list[Visit]()
    for step in range(70):
        answer = frontier.next(now)
        if isinstance(answer, Visit):
            under_way.append(answer)
        elif isinstance(answer, WaitUntil) and not under_way:
            now = min(answer.time, now + 3.0)
        if under_way and step % 3:
            visit = under_way.pop(0)
            result = FAILED if visit.site == 6 else FETCHED
            now += 0.3
            results = [Result(page, result, response_s=0.1) for page in visit.pages]
            frontier.finish(visit, Outcome(results, connection_s=0.05, served=len(results)), now)
        yield frontier, now


def rows_of(frontier: Frontier, now: float) -> site_table.Array:
    state = frontier.state
    return site_table.site_rows(
        state.site[: frontier.sites], state.queue[: frontier.sites], state.group, state.run[0], now
    )


def test_each_state_is_the_one_that_the_frontier_explains() -> None:
    seen = set()
    for frontier, now in moments():
        for site, row in enumerate(rows_of(frontier, now)):
            explained = frontier.explain_site(site, now)
            state = STATES[row["state"]]
            assert explained.rule.startswith(EXPLAINED[state]), (state, explained)
            if not np.isnan(row["next_at"]) and "in progress" not in explained.rule:
                assert row["next_at"] == explained.wait_until > now
            seen.add(state)
    assert seen == set(STATES)


def test_numbers_are_those_of_the_frontier() -> None:
    *_, (frontier, now) = moments()
    rows, records = rows_of(frontier, now), frontier.site_records
    assert (rows["waiting"] == frontier.site_waiting).all() and (rows["known"] == records["known"]).all()
    assert rows["taken"].sum() > 0 and rows["budget"][3] == 0 and rows["budget"][0] == 6
    assert rows["delay_s"][5] == 2.0 and rows["delay_s"][0] == 5.0
    assert np.isnan(rows["response_s"][SITES - 1]) and 0.0 < rows["response_s"][0] < 1.0


def test_a_running_crawl_writes_the_table_and_another_process_reads_it_without_compiled_code(tmp_path: Path) -> None:
    *_, (frontier, now) = moments()
    site_table.write(tmp_path, frontier, now)
    give_up_at = time.monotonic() + 20.0
    while (table := site_table.read(tmp_path)).source == NONE and time.monotonic() < give_up_at:
        time.sleep(0.01)
    assert table.source == LIVE and table.rows.tobytes() == rows_of(frontier, now).tobytes()
    code = (
        "import sys; from pathlib import Path; from trapline.crawler.files import site_table;"
        f"table = site_table.read(Path({str(tmp_path)!r})); print(len(table.rows), 'numba' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == [str(SITES), "False"]


def test_without_a_running_crawl_the_newest_readable_snapshot_counts(tmp_path: Path) -> None:
    *_, (frontier, _) = moments()
    assert site_table.read(tmp_path).source == NONE
    for number in ("9", "10"):
        snapshot.save(frontier, tmp_path / "snapshot" / number / "frontier")
    table = site_table.read(tmp_path)
    assert table.source == IN_SNAPSHOT and table.at == frontier.now
    assert table.rows.tobytes() == rows_of(frontier, frontier.now).tobytes()
    (tmp_path / "snapshot" / "10" / "frontier" / "queue.npy").write_bytes(b"damaged")
    assert site_table.read(tmp_path).rows.tobytes() == table.rows.tobytes()


@pytest.mark.parametrize("damage", [b"", b"\x93NUMPY", b"x" * 4000])
def test_a_damaged_table_is_no_table(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / "sites").write_bytes(damage)
    assert site_table.read(tmp_path).source == NONE


def test_numbers_that_are_repeated_here_are_those_of_the_frontier() -> None:
    assert (site_table._BY_DELAY, site_table._MOST_PER_VISIT) == (layout.BY_DELAY, layout.MOST_PER_VISIT)
    assert (row_kinds.FETCHED, row_kinds.FAILED, row_kinds.REFUSED) == (FETCHED, FAILED, REFUSED)


@pytest.mark.parametrize("bytes_in_a_row", [1, 3])
def test_a_damaged_table_is_as_good_as_none(tmp_path: Path, bytes_in_a_row: int) -> None:
    rows = np.zeros(2, site_table.ROW)
    path = tmp_path / "live" / "sites"
    site_table._save(path, site_table.SiteTable(LIVE, 1.0, 0.1, rows))
    whole, random = path.read_bytes(), np.random.default_rng(1)
    for _ in range(500):
        damaged, at = bytearray(whole), int(random.integers(len(whole)))
        damaged[at : at + bytes_in_a_row] = random.bytes(bytes_in_a_row)
        path.write_bytes(damaged[: int(random.integers(at, 2 * len(whole)))])
        found = site_table.read(tmp_path)
        assert found.source in (LIVE, NONE)
        assert all(0 <= state < len(STATES) for state in found.rows["state"])
