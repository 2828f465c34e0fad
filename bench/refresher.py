"""Measures speed and memory of the refresher of a live crawl: python bench/refresher.py [pages sites slots [policy ...]]

One core, after compilation, in virtual time. Sites have skewed sizes (Zipf), each its own address, and a delay of 15 s. There
are 100 decisions a second, each for one page; the chosen page is crawled a second later, and the delay of its site begins
then. Prints microseconds per joining page and per decision, the number of pages whose value a decision computes (only for
the policy name "looks"), the share of decisions that found a page, and bytes per page.
"""

import gc
import sys
import time
from collections import deque

import numpy as np

from trapline.frontier import Frontier, Rules
from trapline.refresh import Policy, Refresher, all_policies, policy_named, rule
from trapline.refresh.core.layout import PolicyView
from trapline.refresh.policies.estimators import access_rate, change_rate, lost
from trapline.strategies import pair

DELAY_S, PER_S, FETCH_S = 15.0, 100.0, 1.0
WARM_UP = 0.3
LOOKS = 15


def make(policy: Policy, pages: int, sites: int) -> tuple[Refresher, Frontier, float]:
    rng = np.random.default_rng(1)
    weight = np.arange(1, sites + 1) ** -0.8
    site_of = rng.choice(sites, pages, p=weight / weight.sum())
    frontier = Frontier(pair("opic", "top-page"), Rules(delay_s=DELAY_S))
    frontier.add_sites(sites, 0.0, groups=np.arange(sites, dtype=np.int32))
    refresher = Refresher(policy, 0.0)
    quality = rng.pareto(1.5, pages)
    started = time.process_time()
    for page in range(pages):
        refresher.join(page, int(site_of[page]), page / PER_S, float(quality[page]))
    joined_us = (time.process_time() - started) / pages * 1e6
    return refresher, frontier, joined_us


def run(refresher: Refresher, frontier: Frontier, slots: int) -> tuple[float, float, float]:
    """Return microseconds per decision, their 99.9 % quantile, and the share of decisions that found a page."""
    rng, under_way, taken, found = np.random.default_rng(2), deque[tuple[float, int]](), [], 0
    start = float(refresher.memory.whole.run[0].now)
    signals = rng.integers(0, refresher.pages, slots)
    for slot in range(slots):
        now = start + slot / PER_S
        while under_way and under_way[0][0] <= now:
            at, page = under_way.popleft()
            refresher.crawled(page, at, bool(rng.random() < 0.3))
        began = time.thread_time()
        choice = refresher.choose(frontier, now)
        taken.append(time.thread_time() - began)
        if choice is not None:
            found += 1
            frontier.set_site(choice.site, now, not_before=now + FETCH_S + DELAY_S)
            under_way.extend((now + FETCH_S, page) for page in choice.pages)
        refresher.signalled(int(signals[slot]), 0, now, now) if slot % 4 == 0 else None
        if slot % 10_000 == 0:
            refresher.take()
    after = np.array(taken[int(WARM_UP * slots) :]) * 1e6
    return float(after.mean()), float(np.quantile(after, 0.999)), found / slots


def bytes_a_page(refresher: Refresher) -> float:
    s, n = refresher.memory.whole, refresher.pages
    rows = (s.page, s.columns) if refresher.policy.still else (s.page, s.columns, s.waiting, s.hot)
    per_page = sum(array.nbytes / len(array) for array in rows)
    return per_page + s.value.itemsize * float(s.run[0].pool) / n + refresher.memory.slot_of.itemsize


@rule
def counted(s: PolicyView, page: int, now: float) -> float:
    s.totals[LOOKS] += 1.0
    return access_rate(s, page, now) * lost(change_rate(s, page), now - s.page[page].crawled_s)


def main(pages: int, sites: int, slots: int, names: list[str]) -> None:
    for name in names or list(all_policies()):
        policy = Policy("looks", counted) if name == "looks" else policy_named(name)
        refresher, frontier, joined_us = make(policy, pages, sites)
        looked = refresher.memory.whole.totals[LOOKS]
        mean, tail, found = run(refresher, frontier, slots)
        looks = (refresher.memory.whole.totals[LOOKS] - looked) / slots
        print(
            f"{name:14} {joined_us:5.1f} us a join   {mean:6.1f} us a decision, 99.9 %: {tail:7.0f} us   {looks:6.1f} looks   "
            f"found {found:.2f}   {bytes_a_page(refresher):4.0f} bytes a page",
            flush=True,
        )
        del refresher, frontier
        gc.collect()


if __name__ == "__main__":
    sizes = [int(size) for size in sys.argv[1:4]] or [1_000_000, 10_000, 200_000]
    main(*sizes, sys.argv[4:])
