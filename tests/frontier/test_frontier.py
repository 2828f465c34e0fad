"""The frontier gives the same answers as the oracle (docs/frontier.md, first paragraph), call by call, on random webs."""

import math
from collections import Counter

import pytest

from tests.effort import slow
from tests.frontier.worlds import (
    HOSTILE_WORLDS,
    PAGE_RANKS,
    PAIRS,
    SITE_RANKS,
    Event,
    Rank,
    World,
    check_webs,
    draws,
    drive,
    fast_frontier,
    naive_frontier,
    share,
)
from tests.naive.frontier import AS_RULES
from tests.naive.ranks import twin_of_page_rank, twin_of_site_rank
from trapline.strategies import page_ranks, site_ranks

WEBS = 300


def first_difference(fast: list[Event], slow: list[Event]) -> str:
    """The place where two traces differ, with the calls before it. Pytest's own diff of long lists hides it."""
    at = next((i for i, (a, b) in enumerate(zip(fast, slow, strict=False)) if a != b), min(len(fast), len(slow)))
    before = "\n".join(f"  both    {event}" for event in slow[max(0, at - 12) : at])
    return f"step {at}\n{before}\n  fast    {fast[at : at + 1]}\n  oracle  {slow[at : at + 1]}"


@pytest.mark.parametrize("name", page_ranks())
def test_a_page_rank_declares_the_same_as_its_slow_twin(name: str) -> None:
    fast, slow = page_ranks()[name], twin_of_page_rank(name)
    declared = (fast.constant or fast.fifo, set(fast.inputs), fast.scores or None, fast.batched, fast.learns)
    assert declared == (slow.constant, set(slow.inputs), slow.scores, slow.batched, slow.learns)
    assert fast.hands_on == slow.hands_on


@pytest.mark.parametrize("name", site_ranks())
def test_a_site_rank_declares_the_same_as_its_slow_twin(name: str) -> None:
    assert set(site_ranks()[name].reads) == set(twin_of_site_rank(name).reads)


@pytest.mark.parametrize("rank", PAIRS, ids="-x-".join)
def test_the_frontier_answers_as_the_oracle_does(rank: Rank) -> None:
    def is_equal(world: World) -> None:
        slow = drive(naive_frontier(rank, world), world)
        fast = drive(fast_frontier(rank, world), world)
        assert fast == slow, first_difference(fast, slow)

    check_webs(is_equal, HOSTILE_WORLDS, rank, compiled=WEBS, uncompiled=60)


def features(trace: list[Event]) -> set[str]:
    """The features of the frontier that a trace uses, as words."""
    found = revisit_features(trace[:-2])
    states = {f"page state {state}" for state in trace[-2][1]}
    for kind, _, *rest in trace[:-2]:
        found.add(kind)
        if kind == "next":
            answer = rest[0]
            found.add("wait for ever" if answer == ("wait", math.inf) else answer[0])
            found.add("several pages" if answer[0] == "visit" and len(answer[3]) > 1 else answer[0])
        elif kind in ("report", "finish"):
            found.add(f"{kind} {rest[-1]}")
            if kind == "finish" and rest[-2:] == [True, True]:
                found.add("the site failed")
        elif kind == "set_site":
            found.update(f"{name} by the rules again" for name, value in rest[1] if value == AS_RULES)
        elif "refused" in rest or "done" in rest:
            found.add(f"{kind} {'refused' if 'refused' in rest else 'done'}")
    return found | states


def revisit_features(trace: list[Event]) -> set[str]:
    """How the revisits of a trace were answered and how they ended."""
    found = set()
    pages: dict[int, int] = {}  # of each revisit, the number of pages without a result
    for kind, _, *rest in trace:
        if kind == "revisit":
            answer = rest[-1]
            found.add("revisit answered: " + ("wait for ever" if answer == ("wait", math.inf) else answer[0]))
            if answer[0] == "visit":
                pages[answer[1]] = len(answer[3])
                found.add(f"revisit answered: {'some' if len(answer[3]) < len(rest[1]) else 'all'}")
        elif kind in ("report", "finish") and rest[0] in pages and rest[-1]:
            results = [rest[2]] if kind == "report" else [result for _, result, _ in rest[1]]
            found.update(f"revisit: {result}" for result in results)
            pages[rest[0]] -= len(results)
            if kind == "finish" and pages.pop(rest[0]):
                found.add("revisit: returned")
    return found | ({"revisit: expired"} if any(pages.values()) else set())


@slow
def test_the_random_webs_reach_every_feature() -> None:
    """A comparison on webs where nothing happens would prove nothing."""
    seen: Counter[str] = Counter()
    for world in draws(HOSTILE_WORLDS, 2 * WEBS):  # the rarest feature occurs in few webs
        found = features(drive(naive_frontier(Rank("batch-pagerank", "crawl-ability"), world), world))
        seen.update(found)
        if world.rules["batch"]:
            seen.update(f"{what} in batches" for what in found & {"visit", "rescore"})
    answers = ["visit", "several pages", "wait", "wait for ever", "rescore", "drained"]
    answers += ["visit in batches", "rescore in batches"]
    ends = ["report True", "report False", "finish True", "finish False", "the site failed"]
    taken_back = [f"{name} by the rules again" for name in ("delay_s", "per_connection", "pages")]
    calls = ["set_site", "discover", "resolve", "move", "resolve refused", "move refused", "rescore done", "receive"]
    again = [f"revisit answered: {what}" for what in ("visit", "wait", "wait for ever", "refused", "some", "all")]
    again += [f"revisit: {what}" for what in ("fetched", "failed", "refused", "returned", "expired")]
    states = [f"page state {state}" for state in range(5) if state != 2]
    # LEASED (2) is not a final state: every lease expires before a crawl ends.
    # The seed alone does not determine the webs, because hypothesis looks at the loaded modules. So one occurrence is enough.
    assert not [what for what in answers + ends + taken_back + calls + again + states if not seen[what]]


def test_every_rank_is_tried_on_every_web_and_every_pair_on_some() -> None:
    shares = {rank: share(rank, list(range(WEBS))) for rank in PAIRS}
    assert min(len(webs) for webs in shares.values()) >= WEBS // min(len(PAGE_RANKS), len(SITE_RANKS))
    for at in range(2):
        for name in {rank[at] for rank in PAIRS}:
            assert {web for rank, webs in shares.items() if rank[at] == name for web in webs} == set(range(WEBS))
