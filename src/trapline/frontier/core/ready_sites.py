"""The sites and groups that may be visited. A site is among the ready sites of its group, delayed, unresolved, or out.

Which function maintains which heap
- A group's heap (in the pool) holds its ready sites by rank. `join_ready_sites` adds them, `leave` removes them.
- READY holds the groups that can be visited now, by their best site. DELAYED_GROUPS holds the groups that have a ready
  site and must wait for a time. `settle_group` maintains both.
- DELAYED_SITES holds the sites that must wait longer than their group. `place` adds them, `wake` and `leave` remove them.
Invariants
- A group is in READY only if it has a ready site and no visit, and its delay is over. Every site of its heap may then be
  visited too, because a site joins the ready sites only if it need not wait longer than its group. So a visit to one of
  N sites on one address delays one group, not N sites.
"""

from trapline.compiled.jit import b1, helper, i8, void
from trapline.frontier.core import blocks, heap
from trapline.frontier.layout import (
    COMPETES,
    DELAYED,
    DELAYED_GROUPS,
    DELAYED_SITES,
    FRONT,
    OUT,
    READY,
    UNRESOLVED,
    FrontierState,
    StateType,
)
from trapline.frontier.ranking import rank_site

grow_block, has_room = blocks.grow, blocks.has_room
sift_up, replace, remove = heap.sift_up, heap.replace, heap.remove

# ---- groups


@helper(void(StateType, i8))
def remove_group(s: FrontierState, g: int) -> None:
    """Remove the group from READY or DELAYED_GROUPS."""
    run = s.run[0]
    group = s.group[g]
    if group.place == COMPETES:
        remove(s.heap[READY], 0, run.ready, s.group["pos"], group.pos)
        run.ready -= 1
    elif group.place == DELAYED:
        remove(s.heap[DELAYED_GROUPS], 0, run.delayed_groups, s.group["pos"], group.pos)
        run.delayed_groups -= 1
    group.place = OUT


@helper(void(StateType, i8))
def settle_group(s: FrontierState, g: int) -> None:
    """Put the group where it belongs: into READY with the rank of its best site, into DELAYED_GROUPS, or into neither."""
    run = s.run[0]
    group = s.group[g]
    if group.visit >= 0 or group.members == 0:
        remove_group(s, g)
    elif group.ready_at > run.now:
        if group.place != DELAYED:
            remove_group(s, g)
            group.place = DELAYED
            n = run.delayed_groups
            run.delayed_groups = n + 1
            sift_up(s.heap[DELAYED_GROUPS], 0, s.group["pos"], n, -group.ready_at, g, g)
    else:
        first = s.pool[group.block]
        if group.place == COMPETES:
            replace(s.heap[READY], 0, run.ready, s.group["pos"], group.pos, first.key, first.serial, g)
            return
        remove_group(s, g)
        group.place = COMPETES
        n = run.ready
        run.ready = n + 1
        sift_up(s.heap[READY], 0, s.group["pos"], n, first.key, first.serial, g)


# ---- sites


@helper(void(StateType, i8))
def leave(s: FrontierState, x: int) -> None:
    """Remove the site from the ready, delayed or unresolved sites."""
    run = s.run[0]
    site = s.site[x]
    if site.place == COMPETES:
        group = s.group[site.group]
        remove(s.pool, group.block, group.members, s.site["pos"], site.pos)
        group.members -= 1
        run.ready_sites -= 1
        settle_group(s, site.group)
    elif site.place == DELAYED:
        remove(s.heap[DELAYED_SITES], 0, run.delayed_sites, s.site["pos"], site.pos)
        run.delayed_sites -= 1
    elif site.place == UNRESOLVED:
        run.unresolved -= 1
    site.place = OUT


@helper(void(StateType, i8))
def join_ready_sites(s: FrontierState, x: int) -> None:
    """Evaluate the site's rank and add the site to the ready sites of its group."""
    site = s.site[x]
    group = s.group[site.group]
    n = group.members
    if n >= (1 << group.log2 if group.log2 >= 0 else 0):
        group.block = grow_block(s, group.block, group.log2, n)
        group.log2 = max(group.log2 + 1, blocks.SMALLEST_LOG2)
    site.place = COMPETES
    s.run[0].ready_sites += 1
    group.members = n + 1
    rank = rank_site(s, x, FRONT)
    sift_up(s.pool, group.block, s.site["pos"], n, rank, s.queue[x, FRONT].best_serial, x)
    settle_group(s, site.group)


@helper(void(StateType, i8))
def place(s: FrontierState, x: int) -> None:
    """Put the site where it belongs: among the ready, the delayed or the unresolved sites, or out."""
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
        site.place = DELAYED
        n = run.delayed_sites
        run.delayed_sites = n + 1
        sift_up(s.heap[DELAYED_SITES], 0, s.site["pos"], n, -site.ready_at, x, x)
    else:
        join_ready_sites(s, x)


@helper(void(StateType, i8, i8))
def rerank(s: FrontierState, x: int, changed: int) -> None:
    """Evaluate the rank of a ready site again if it reads a changed value, and move the site in the heap of its group."""
    site = s.site[x]
    group = s.group[site.group]
    entry = s.pool[group.block + site.pos]
    rank = rank_site(s, x, FRONT) if changed & s.run[0].reads else entry.key
    serial = s.queue[x, FRONT].best_serial
    if rank == entry.key and serial == entry.serial:
        return
    was_first = site.pos == 0
    replace(s.pool, group.block, group.members, s.site["pos"], site.pos, rank, serial, x)
    if (was_first or site.pos == 0) and group.place == COMPETES:
        settle_group(s, site.group)


@helper(void(StateType, i8, i8))
def queue_changed(s: FrontierState, x: int, changed: int) -> None:
    """Update the site after a change of its front queue (`changed`: READS_* bits): place it if its queue got its first page or lost its
    last one, re-rank it if it is ready."""
    site = s.site[x]
    if site.visit >= 0:
        return
    if (s.queue[x, FRONT].planned > 0) != (site.place != OUT):
        place(s, x)
    elif site.place == COMPETES:
        rerank(s, x, changed)


@helper(b1(StateType))
def wake(s: FrontierState) -> bool:
    """Make sites and groups ready whose delay is over. Return False if the pool must grow first."""
    run = s.run[0]
    while run.delayed_sites > 0 and -s.heap[DELAYED_SITES, 0].key <= run.now:
        if not has_room(s):
            return False
        x = s.heap[DELAYED_SITES, 0].id
        leave(s, x)
        join_ready_sites(s, x)
    while run.delayed_groups > 0 and -s.heap[DELAYED_GROUPS, 0].key <= run.now:
        settle_group(s, s.heap[DELAYED_GROUPS, 0].id)
    return True
