"""Who may be visited: sites and their groups between the contest, resting, and out of both.

Who fills and empties what
- a group's heap (in the pool): its sites in the contest, by rank; filled by `join_contest`, emptied by `leave`.
- READY: groups that can be visited now, by their first site; RESTING_GROUPS: groups with a site in the contest and a
  moment to wait for; both kept by `settle_group`. RESTING_SITES: sites that wait longer than their group; filled by
  `place`, emptied by `wake` and `leave`.
Invariants
- a group is in READY only if it has a site in the contest, no visit, and its moment has come; every site of its heap
  may then be visited too, because a site joins the contest only if it need not wait longer than its group. So N sites
  on one address are parked once, not N times, at every visit.
"""

from trapline.frontier import blocks, heap
from trapline.frontier.layout import (
    CONTEST,
    FRONT,
    OUT,
    READY,
    RESTING,
    RESTING_GROUPS,
    RESTING_SITES,
    UNRESOLVED,
    State,
    StateType,
)
from trapline.frontier.ranking import rank_site
from trapline.jit import b1, helper, i8, void

grow_block, has_room = blocks.grow, blocks.has_room
sift_up, replace, remove = heap.sift_up, heap.replace, heap.remove

# ---- groups


@helper(void(StateType, i8))
def remove_group(s: State, g: int) -> None:
    run = s.run[0]
    group = s.group[g]
    if group.place == CONTEST:
        remove(s.heap[READY], 0, run.ready, s.group["pos"], group.pos)
        run.ready -= 1
    elif group.place == RESTING:
        remove(s.heap[RESTING_GROUPS], 0, run.resting_groups, s.group["pos"], group.pos)
        run.resting_groups -= 1
    group.place = OUT


@helper(void(StateType, i8))
def settle_group(s: State, g: int) -> None:
    """Put the group where it belongs: READY under its first site, RESTING, or OUT."""
    run = s.run[0]
    group = s.group[g]
    if group.visit >= 0 or group.members == 0:
        remove_group(s, g)
    elif group.ready_at > run.now:
        if group.place != RESTING:
            remove_group(s, g)
            group.place = RESTING
            n = run.resting_groups
            run.resting_groups = n + 1
            sift_up(s.heap[RESTING_GROUPS], 0, s.group["pos"], n, -group.ready_at, g, g)
    else:
        first = s.pool[group.block]
        if group.place == CONTEST:
            replace(s.heap[READY], 0, run.ready, s.group["pos"], group.pos, first.key, first.serial, g)
            return
        remove_group(s, g)
        group.place = CONTEST
        n = run.ready
        run.ready = n + 1
        sift_up(s.heap[READY], 0, s.group["pos"], n, first.key, first.serial, g)


# ---- sites


@helper(void(StateType, i8))
def leave(s: State, x: int) -> None:
    """The site is neither in the contest nor resting."""
    run = s.run[0]
    site = s.site[x]
    if site.place == CONTEST:
        group = s.group[site.group]
        remove(s.pool, group.block, group.members, s.site["pos"], site.pos)
        group.members -= 1
        run.contest -= 1
        settle_group(s, site.group)
    elif site.place == RESTING:
        remove(s.heap[RESTING_SITES], 0, run.resting_sites, s.site["pos"], site.pos)
        run.resting_sites -= 1
    elif site.place == UNRESOLVED:
        run.unresolved -= 1
    site.place = OUT


@helper(void(StateType, i8))
def join_contest(s: State, x: int) -> None:
    site = s.site[x]
    group = s.group[site.group]
    n = group.members
    if n >= (1 << group.log2 if group.log2 >= 0 else 0):
        group.block = grow_block(s, group.block, group.log2, n)
        group.log2 = max(group.log2 + 1, blocks.SMALLEST_LOG2)
    site.place = CONTEST
    s.run[0].contest += 1
    group.members = n + 1
    rank = rank_site(s, x, FRONT)
    sift_up(s.pool, group.block, s.site["pos"], n, rank, s.queue[x, FRONT].best_serial, x)
    settle_group(s, site.group)


@helper(void(StateType, i8))
def place(s: State, x: int) -> None:
    """Put the site where it belongs: the contest, resting, unresolved, or out."""
    run = s.run[0]
    site = s.site[x]
    leave(s, x)
    if site.visit >= 0 or s.queue[x, FRONT].planned < 1:
        return
    if site.group < 0:
        site.place = UNRESOLVED
        run.unresolved += 1
        return
    run.turns += 1
    site.turn = run.turns
    if site.ready_at > run.now and site.ready_at > s.group[site.group].ready_at:
        site.place = RESTING
        n = run.resting_sites
        run.resting_sites = n + 1
        sift_up(s.heap[RESTING_SITES], 0, s.site["pos"], n, -site.ready_at, x, x)
    else:
        join_contest(s, x)


@helper(void(StateType, i8, i8))
def rerank(s: State, x: int, changed: int) -> None:
    site = s.site[x]
    group = s.group[site.group]
    entry = s.pool[group.block + site.pos]
    rank = rank_site(s, x, FRONT) if changed & s.run[0].reads else entry.key
    serial = s.queue[x, FRONT].best_serial
    if rank == entry.key and serial == entry.serial:
        return
    was_first = site.pos == 0
    replace(s.pool, group.block, group.members, s.site["pos"], site.pos, rank, serial, x)
    if (was_first or site.pos == 0) and group.place == CONTEST:
        settle_group(s, site.group)


@helper(void(StateType, i8, i8))
def queue_changed(s: State, x: int, changed: int) -> None:
    """The front queue of the site changed (READS_* bits): re-rank it if that matters, let it begin or stop to
    compete."""
    site = s.site[x]
    if site.visit >= 0:
        return
    if (s.queue[x, FRONT].planned > 0) != (site.place != OUT):
        place(s, x)
    elif site.place == CONTEST:
        rerank(s, x, changed)


@helper(b1(StateType))
def wake(s: State) -> bool:
    """Whoever rested long enough joins the contest. False: the pool must grow first."""
    run = s.run[0]
    while run.resting_sites > 0 and -s.heap[RESTING_SITES, 0].key <= run.now:
        if not has_room(s):
            return False
        x = s.heap[RESTING_SITES, 0].id
        leave(s, x)
        join_contest(s, x)
    while run.resting_groups > 0 and -s.heap[RESTING_GROUPS, 0].key <= run.now:
        settle_group(s, s.heap[RESTING_GROUPS, 0].id)
    return True
