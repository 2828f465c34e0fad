"""`opens_at` says when a visit could begin, without asking for one. The time is never later than the time at which
`next` gives a visit, and never "now" after `next` gave none."""

import math

from hypothesis import given
from hypothesis import strategies as st

from trapline.frontier import FAILED, FETCHED, Drained, Frontier, Outcome, Rescore, Result, Rules, Visit, WaitUntil
from trapline.strategies import pair

SITES, PAGES = 4, 40
STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.sampled_from([0.0, 0.5, 1.0, 30.0])), max_size=60)


def frontier_of(batch: int, ahead: bool, page_rank: str, delay_s: float) -> Frontier:
    rules = Rules(delay_s=delay_s, per_connection=3, batch=batch, batch_ahead=ahead, retries=1, backoff_s=60.0)
    frontier = Frontier(pair(page_rank, "larger-sites-first"), rules)
    frontier.add_sites(SITES, 0.0, [0, 1, 2, 2])
    frontier.add_pages([page % SITES for page in range(PAGES)])
    frontier.discover(range(8), 0.0)
    return frontier


@given(
    st.sampled_from([0, 1, 4]), st.booleans(), st.sampled_from(["fifo", "batch-pagerank"]), st.integers(0, 120), STEPS
)
def test_opens_at_agrees_with_next(
    batch: int, ahead: bool, page_rank: str, delay_s: int, steps: list[tuple[bool, int, float]]
) -> None:
    if page_rank == "batch-pagerank":
        batch = max(batch, 1)
    frontier, now, out = frontier_of(batch, ahead and batch > 0, page_rank, float(delay_s)), 0.0, list[Visit]()
    for ends, links, passed_s in steps:
        now += passed_s
        if ends and out:
            visit = out.pop(0)
            to = [(page + links) % PAGES for page in visit.pages]
            result = FETCHED if links else FAILED
            results = tuple(Result(page, result, to if links else (), 0.1) for page in visit.pages)
            frontier.finish(visit, Outcome(results, 0.1), now)
        before = frontier.opens_at(now)
        answer = frontier.next(now)
        if isinstance(answer, Visit | Rescore):
            assert before == now
        if isinstance(answer, Visit):
            out.append(answer)
        elif isinstance(answer, Rescore):
            frontier.rescore([1.0] * frontier.pages, now)
        else:
            assert frontier.opens_at(now) > now
            assert isinstance(answer, Drained | WaitUntil)
            if isinstance(answer, Drained):
                assert frontier.opens_at(now) == math.inf
