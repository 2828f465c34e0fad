"""The frontier gives the same answers as the oracle (docs/frontier.md, first paragraph), call by call, on random webs."""

import math
from collections import Counter

import pytest

from tests.frontier.worlds import (
    PAIRS,
    Event,
    Rank,
    World,
    check_webs,
    drive,
    fast_frontier,
    hostile_worlds,
    naive_frontier,
)


def first_difference(fast: list[Event], slow: list[Event]) -> str:
    """Where two traces part, with the calls that led there: pytest's own diff of long lists hides it."""
    at = next((i for i, (a, b) in enumerate(zip(fast, slow, strict=False)) if a != b), min(len(fast), len(slow)))
    before = "\n".join(f"  both    {event}" for event in slow[max(0, at - 12) : at])
    return f"step {at}\n{before}\n  fast    {fast[at : at + 1]}\n  oracle  {slow[at : at + 1]}"


@pytest.mark.parametrize("rank", PAIRS, ids="-x-".join)
def test_answers_as_the_oracle_does(rank: Rank) -> None:
    def is_equal(world: World) -> None:
        slow = drive(naive_frontier(rank, world), world)
        fast = drive(fast_frontier(rank, world), world)
        assert fast == slow, first_difference(fast, slow)

    check_webs(is_equal, hostile_worlds(), rank, compiled=200, uncompiled=60)


def features(trace: list[Event]) -> set[str]:
    """What a trace shows of the laws, as words."""
    found = set()
    for kind, _, *rest in (event for event in trace if event[0] != "states"):
        found.add(kind)
        if kind == "next":
            answer = rest[0]
            found.add("wait for ever" if answer == ("wait", math.inf) else answer[0])
            found.add("several pages" if answer[0] == "visit" and len(answer[3]) > 1 else answer[0])
        elif kind in ("report", "finish"):
            found.add(f"{kind} {rest[-1]}")
        elif "refused" in rest:
            found.add(f"{kind} refused")
    return found | {f"page state {state}" for state in trace[-1][1]}


def test_the_webs_reach_what_they_are_for() -> None:
    """A comparison on webs where nothing happens would prove nothing."""
    rank = Rank("opic", "crawl-ability")
    seen: Counter[str] = Counter()

    def collect(world: World) -> None:
        found = features(drive(naive_frontier(rank, world), world))
        seen.update(found)
        seen.update(["visits in batches"] if world.rules["batch"] and "visit" in found else [])

    check_webs(collect, hostile_worlds(), rank, compiled=200, uncompiled=200)
    answers = ["visit", "several pages", "wait", "wait for ever", "drained", "visits in batches"]
    ends = ["report True", "report False", "finish True", "finish False"]
    calls = ["set_site", "discover", "resolve", "move", "resolve refused", "move refused"]
    states = [f"page state {state}" for state in range(5) if state != 2]
    # LEASED (2) is no final state: every lease expires before a crawl ends.
    assert not [what for what in answers + ends + calls + states if seen[what] < 3]
