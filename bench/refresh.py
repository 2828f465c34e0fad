"""Measures speed and memory of the replayer, on one core, after compilation: python bench/refresh.py [pages updates [policy ...]]

Prints for each policy, at the level smart and with 0.1 crawls per update: seconds of replay; microseconds per event (update,
signal, access or crawl) and per crawl; and bytes per page of the data that a crawler would keep: evidence, the policy's
columns and the queue. The updates and the true state of pages belong to the replayer and are not counted.
"""

import resource
import sys
import time

from trapline.compiled.jit import ready
from trapline.refresh import (
    Policy,
    ReplayConditions,
    ReplayWorld,
    all_policies,
    draw_world,
    drawn_trace,
    policy_named,
    replay_world,
)
from trapline.refresh.replay.replayer import make_state

CAPACITY = 0.1


def bytes_a_page(world: ReplayWorld, policy: Policy) -> float:
    state = make_state(world, policy, 1.0)
    per_page = (state.page, state.columns, state.waiting, state.hot, state.value)
    return sum(array.nbytes for array in per_page if len(array) >= world.trace.pages) / world.trace.pages


def main(pages: int, updates: int, names: list[str]) -> None:
    ready()
    tiny = draw_world(drawn_trace("bursty", 500, 5_000, 30.0, seed=1), ReplayConditions(accesses=500), 1)
    world = draw_world(drawn_trace("bursty", pages, updates, 30.0, seed=1), ReplayConditions(accesses=2 * pages), 1)
    for name in names or list(all_policies()):
        policy = policy_named(name)
        replay_world(tiny, policy, CAPACITY)  # compiles the kernels of the policy
        started = time.process_time()
        found = replay_world(world, policy, CAPACITY)
        seconds = time.process_time() - started
        events = len(world.update) + len(world.signal) + len(world.access) + found.crawls
        print(
            f"{name:14} {seconds:7.1f} s   {seconds / events * 1e6:5.2f} us an event   "
            f"{seconds / found.crawls * 1e6:6.1f} us a crawl   {bytes_a_page(world, policy):4.0f} bytes a page   "
            f"binary {found.binary:.3f}",
            flush=True,
        )
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    sizes = [int(size) for size in sys.argv[1:3]] or [1_000_000, 10_000_000]
    main(*sizes, sys.argv[3:])
