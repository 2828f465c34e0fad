"""A killed crawl resumes with the same evidence: from the log, from a snapshot, or from a snapshot and the log since."""

from pathlib import Path

import numpy as np
import pytest

from tests.refresh.live_refresher import STARTED, open_frontier
from trapline.compiled.jit import DISABLED
from trapline.errors import ConfigError, OtherVersionError
from trapline.frontier import Frontier
from trapline.refresh import Policy, Refresher, RefreshRules, all_policies, policy_named
from trapline.refresh.core import kernels
from trapline.refresh.core.layout import AWAY, CHOSEN
from trapline.refresh.live.snapshot import FORMAT

POLICIES = sorted(all_policies().values(), key=lambda policy: policy.name)
POLICIES += [policy_named("cgm").with_options(estimator=name) for name in ("mle", "last-modified", "online")]
EVERY = pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: "-".join([policy.name, *policy.kept[:1]]))
CALLS = 60 if DISABLED else 400
SITES = 7
# Queues are rebuilt, and addresses are valid in one process only. A call that found nothing due is not in the log, so `now` differs.
QUEUES = {
    "now",
    "floor",
    "hot",
    "waiting",
    "since_rebuild",
    "since_raise",
    "open",
    "shut",
    "pool",
    "settled_pages",
    "point_pool",
}
ADDRESSES = {"value", "on_access", "on_signal", "on_point", "on_crawl", "on_cycle", "on_revision"}


def random_calls(refresher: Refresher, frontier: Frontier, calls: int, seed: int) -> float:
    """Make random calls of every kind, and return the time at the end."""
    rng = np.random.default_rng(seed)
    now = STARTED + float(refresher.memory.whole.run[0].now)
    for _ in range(calls):
        now += float(rng.exponential(120.0))
        page, kind = int(rng.integers(0, 60)), int(rng.integers(0, 10))
        joined = refresher.memory.slot(page) >= 0
        if not joined:
            refresher.join(page, page % SITES, now, float(rng.random()))
        elif kind == 0 and rng.random() < 0.3:
            refresher.leave(page, now)
        elif kind == 1:
            (refresher.failed if rng.random() < 0.5 else refresher.gone)(page, now)
            if rng.random() < 0.3:
                refresher.recalled(page, now + 1.0)
        elif kind == 2:
            refresher.accessed(page, now, float(rng.random() * 3.0))
        elif kind in (3, 4):
            p = float(rng.choice([0.05, 1.0]))
            refresher.signalled(page, int(rng.integers(0, 3)), now, now - float(rng.exponential(300.0)), p)
        elif kind == 5:
            points = [(now + float(rng.exponential(1_000.0)), float(rng.choice([0.05, 0.8]))) for _ in range(4)]
            refresher.publish(page, int(rng.integers(4, 6)), points, now)
        else:
            choice = refresher.choose(frontier, now, float(rng.choice([-np.inf, 0.0])))
            for chosen in choice.pages[: int(rng.integers(0, 4))] if choice else ():
                refresher.crawled(chosen, now, bool(rng.random() < 0.5), float(rng.exponential(5_000.0)))
            for chosen in refresher.chosen()[: int(rng.integers(0, 3))]:
                refresher.returned(chosen, now)
    return now


def new_refresher(policy: Policy) -> tuple[Refresher, Frontier]:
    rules = RefreshRules(half_life_s=20_000.0, trust_memory=20.0)
    return Refresher(policy, STARTED, rules), open_frontier(SITES, delay_s=100.0, per_connection=2)


def evidence(refresher: Refresher) -> dict[str, np.ndarray]:
    """All that was learned, as plain arrays."""
    s, run = refresher.memory.state, refresher.memory.state.run
    found = {f"run.{name}": run[name] for name in run.dtype.names if name not in QUEUES | ADDRESSES}
    page = s.page.copy()
    page["place"] = np.where(page["place"] < CHOSEN, 0, page["place"])
    page["pos"] = np.where(page["place"] == AWAY, page["pos"], 0)
    ends = zip(page["point"] - (page["points"] > 0), page["point_end"], strict=True)
    spans = np.concatenate([s.point[:0], *(s.point[begin:end] for begin, end in ends)])
    page["point_end"] -= page["point"]
    page["timer"] = page["timer"] >= 0
    page["point"] = page["value_pos"] = 0
    found |= {f"page.{name}": page[name] for name in page.dtype.names}
    found |= {f"point.{name}": spans[name] for name in spans.dtype.names}
    found |= {f"trust.{name}": s.trust[name][: run[0].rows] for name in s.trust.dtype.names}
    sites = int(page["site"].max(initial=0)) + 1
    rest = {"columns": s.columns[: len(page)], "row": s.site["row"][:sites], "slot": refresher.memory.slot_of[:60]}
    return found | rest | {name: getattr(s, name) for name in ("popular", "gaps", "totals", "option")}


def assert_same(one: Refresher, other: Refresher) -> None:
    ours, theirs = evidence(one), evidence(other)
    assert {name for name in ours if not np.array_equal(ours[name], theirs[name])} == set()


def assert_continues_equally(one: Refresher, other: Refresher, now: float) -> None:
    """Both make the same choices after their queues were rebuilt from the evidence."""
    orders = []
    for refresher in (one, other):
        frontier = open_frontier(SITES)
        kernels.settle_all(refresher.memory.handle)
        refresher.return_all(now)
        order: list[int] = []
        for step in range(20):
            choice = refresher.choose(frontier, now + 1_000.0 + step, -np.inf)
            order += choice.pages if choice else []
        orders.append(order)
    assert orders[0] == orders[1] and len(orders[0]) > 5


@EVERY
def test_the_log_restores_everything(policy: Policy) -> None:
    refresher, frontier = new_refresher(policy)
    blobs = []
    for seed in range(3):
        now = random_calls(refresher, frontier, CALLS, seed)
        blobs.append(refresher.take())
    again, _ = new_refresher(policy)
    assert again.replay(b"".join(blobs)) > 2 * CALLS and again.take() == b""
    assert_same(refresher, again)
    assert_continues_equally(refresher, again, now)


@EVERY
def test_a_snapshot_and_the_log_since_restore_everything(policy: Policy, tmp_path: Path) -> None:
    refresher, frontier = new_refresher(policy)
    random_calls(refresher, frontier, CALLS, 1)
    refresher.save(tmp_path / "refresh")
    refresher.take()
    now = random_calls(refresher, frontier, CALLS, 2)
    again = Refresher.load(tmp_path / "refresh", policy)
    again.replay(refresher.take())
    assert_same(refresher, again)
    assert_continues_equally(refresher, again, now)


@pytest.mark.parametrize("missing", [0, 1])
def test_a_log_with_a_missing_part_is_refused(missing: int) -> None:
    refresher, frontier = new_refresher(policy_named("cgm"))
    blobs = []
    for seed in range(3):
        random_calls(refresher, frontier, 120, seed)
        blobs.append(refresher.take())
    del blobs[missing]
    with pytest.raises(ConfigError, match="a part of the log is missing; restore the folder"):
        new_refresher(policy_named("cgm"))[0].replay(b"".join(blobs))


def test_only_what_a_replay_needs_is_in_the_log() -> None:
    """A call while all sites are delayed and nothing is due adds nothing to the log, however often it is repeated."""
    refresher, frontier = new_refresher(policy_named("uniform"))
    frontier.hold_all(STARTED)
    refresher.join(0, 0, STARTED)
    for _ in range(2):
        refresher.choose(frontier, STARTED + 1.0, -np.inf)
    refresher.take()
    for _ in range(100):
        refresher.choose(frontier, STARTED + 2.0, -np.inf)
    assert refresher.take() == b""
    refresher.publish(0, 1, [(STARTED + 3.0, 0.5)], STARTED + 2.0)
    refresher.take()
    refresher.choose(frontier, STARTED + 4.0, -np.inf)
    assert refresher.take() != b""


def test_damaged_logs_and_snapshots_are_refused(tmp_path: Path) -> None:
    refresher, frontier = new_refresher(policy_named("cgm"))
    random_calls(refresher, frontier, 50, 1)
    blob = refresher.take()
    for at in (2, 5, 14, 100):
        wrong = bytearray(blob)
        wrong[at] ^= 1
        with pytest.raises(ConfigError, match="log of refresh is damaged"):
            new_refresher(policy_named("cgm"))[0].replay(bytes(wrong))
    with pytest.raises(ConfigError, match="damaged"):
        new_refresher(policy_named("cgm"))[0].replay(blob[:-1])
    refresher.save(tmp_path / "a")
    with pytest.raises(ConfigError, match="made with policy 'cgm', not 'xu'"):
        Refresher.load(tmp_path / "a", policy_named("xu"))
    about = tmp_path / "a" / "refresh.json"
    about.write_text(about.read_text().replace(f'"format": {FORMAT}', '"format": 1'))
    with pytest.raises(
        ConfigError,
        match=f"refresh snapshot format 1; this version reads {FORMAT}: use the version that wrote it",
    ):
        Refresher.load(tmp_path / "a", policy_named("cgm"))
    refresher.save(tmp_path / "a")
    with pytest.raises(ConfigError, match="made with columns"):
        Refresher.load(tmp_path / "a", policy_named("cgm").with_options(estimator="mle"))
    made_with = about.read_text()
    about.write_text(made_with.replace('"columns": []', '"columns": ["silent", "signals or crawls"]'))
    with pytest.raises(
        OtherVersionError, match=r"^[^\n]*: another version's numbers for policy 'cgm'; use the version that wrote it$"
    ):
        Refresher.load(tmp_path / "a", policy_named("cgm"))
    about.write_text(made_with)
    columns = tmp_path / "a" / "columns.npy"
    columns.write_bytes(columns.read_bytes()[:-1] + b"\1")
    with pytest.raises(ConfigError, match="the checksum does not match"):
        Refresher.load(tmp_path / "a", policy_named("cgm"))
    (tmp_path / "a" / "columns.npy").unlink()
    with pytest.raises(ConfigError, match="not a complete snapshot"):
        Refresher.load(tmp_path / "a", policy_named("cgm"))
    (tmp_path / "b").mkdir()
    with pytest.raises(ConfigError, match="is not a snapshot"):
        refresher.save(tmp_path / "b")
