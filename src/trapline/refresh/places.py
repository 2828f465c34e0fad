"""Where pages stand: in the queue of their site, and beside it waiting for a moment or hot; and where sites stand: open or shut.

It moves things, and knows neither values nor politeness. Who fills what
- the queue of a site (a heap in a block of State.value): every page of it that is not CHOSEN or AWAY, by its value when it was last
  looked at; filled by `enqueue`, emptied by `dequeue`.
- `waiting` and `hot`: some of these pages; filled by `let_wait` and `make_hot`, emptied by `park`.
- row OPEN of `sites`: sites with a page in their queue that may be visited as far as is known, by their first page; row SHUT: the others,
  by the moment at which to ask again. Filled by `open_site` and `shut_site`; whose queue is empty is in neither.
A replay has one site, always open. Blocks of a queue are 2^j entries; who outgrows one gets the double, and the old one goes to a free
list.
"""

from trapline.frontier.heap import remove, replace, sift_up
from trapline.jit import b1, f8, helper, i8, void
from trapline.refresh.layout import HOT, IDLE, OPEN, PARKED, SHUT, WAITS, State, StateType

# ---- beside the queue


@helper(void(StateType, i8))
def park(s: State, page: int) -> None:
    """In the queue of its site alone."""
    run = s.run[0]
    p = s.page[page]
    if p.place == HOT:
        run.hot -= 1
        last = s.hot[run.hot]
        s.hot[p.pos] = last
        s.page[last].pos = p.pos
    elif p.place == WAITS:
        remove(s.waiting, 0, run.waiting, s.page["pos"], p.pos)
        run.waiting -= 1
    p.place = PARKED


@helper(void(StateType, i8, f8))
def let_wait(s: State, page: int, until: float) -> None:
    run = s.run[0]
    p = s.page[page]
    if p.place == WAITS:
        replace(s.waiting, 0, run.waiting, s.page["pos"], p.pos, -until, page, page)
        return
    park(s, page)
    p.place = WAITS
    sift_up(s.waiting, 0, s.page["pos"], run.waiting, -until, page, page)
    run.waiting += 1


@helper(void(StateType, i8))
def make_hot(s: State, page: int) -> None:
    run = s.run[0]
    p = s.page[page]
    if p.place != HOT:
        park(s, page)
        p.place = HOT
        p.pos = run.hot
        s.hot[run.hot] = page
        run.hot += 1


# ---- sites


@helper(void(StateType, i8))
def _take_site_out(s: State, x: int) -> None:
    run = s.run[0]
    site = s.site[x]
    if site.place == OPEN:
        remove(s.sites[OPEN], 0, run.open, s.site["pos"], site.pos)
        run.open -= 1
    elif site.place == SHUT:
        remove(s.sites[SHUT], 0, run.shut, s.site["pos"], site.pos)
        run.shut -= 1
    site.place = IDLE


@helper(void(StateType, i8))
def open_site(s: State, x: int) -> None:
    run = s.run[0]
    site = s.site[x]
    _take_site_out(s, x)
    first = s.value[site.block]
    site.place = OPEN
    sift_up(s.sites[OPEN], 0, s.site["pos"], run.open, first.key, first.id, x)
    run.open += 1


@helper(void(StateType, i8, f8))
def shut_site(s: State, x: int, until: float) -> None:
    run = s.run[0]
    site = s.site[x]
    _take_site_out(s, x)
    if site.pages > 0:
        site.place = SHUT
        sift_up(s.sites[SHUT], 0, s.site["pos"], run.shut, -until, x, x)
        run.shut += 1


@helper(void(StateType, i8))
def _first_may_be_another(s: State, x: int) -> None:
    site = s.site[x]
    if site.place == OPEN:
        first = s.value[site.block]
        replace(s.sites[OPEN], 0, s.run[0].open, s.site["pos"], site.pos, first.key, first.id, x)


# ---- the queue of a site


@helper(void(StateType, i8, f8))
def revalue(s: State, page: int, value: float) -> None:
    """The page was looked at."""
    p = s.page[page]
    site = s.site[p.site]
    was_first = p.value_pos == 0
    replace(s.value, site.block, site.pages, s.page["value_pos"], p.value_pos, value, page, page)
    if was_first or p.value_pos == 0:
        _first_may_be_another(s, p.site)


@helper(void(StateType, i8, f8))
def enqueue(s: State, page: int, value: float) -> None:
    """Its site's block has room: `make_block_room`. A site that had no page is open until somebody finds it is not."""
    p = s.page[page]
    site = s.site[p.site]
    p.place = PARKED
    sift_up(s.value, site.block, s.page["value_pos"], site.pages, value, page, page)
    site.pages += 1
    if site.place == IDLE:
        open_site(s, p.site)
    else:
        _first_may_be_another(s, p.site)


@helper(void(StateType, i8, i8))
def dequeue(s: State, page: int, place: int) -> None:
    """Out of all queues; from now on it stands at `place`."""
    park(s, page)
    p = s.page[page]
    site = s.site[p.site]
    remove(s.value, site.block, site.pages, s.page["value_pos"], p.value_pos)
    site.pages -= 1
    p.place = place
    if site.pages == 0:
        _take_site_out(s, p.site)
    else:
        _first_may_be_another(s, p.site)


@helper(b1(StateType, i8))
def make_block_room(s: State, x: int) -> bool:
    """For one more page of the site. False: the pool must grow first."""
    site = s.site[x]
    if site.log2 >= 0 and site.members < 1 << site.log2:
        return True
    block = _take_block(s, site.log2 + 1)
    if block < 0:
        return False
    for i in range(site.pages):
        s.value[block + i] = s.value[site.block + i]
    if site.log2 >= 0:
        s.value[site.block].id = s.free[site.log2]
        s.free[site.log2] = site.block
    site.block = block
    site.log2 += 1
    return True


@helper(i8(StateType, i8))
def _take_block(s: State, log2: int) -> int:
    run = s.run[0]
    block = s.free[log2]
    if block >= 0:
        s.free[log2] = s.value[block].id
        return block
    if run.pool + (1 << log2) > len(s.value):
        return -1
    run.pool += 1 << log2
    return run.pool - (1 << log2)
