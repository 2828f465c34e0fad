"""The scores of Xu et al.: the harm done since the last crawl, in accesses times seconds of staleness.

    normal  S = 1/2 (now - last crawl) (N + c)                                N = accesses since the last crawl         Eq. 5
    smart   S = sum over missed updates m of (t_{m+1} - t_m) N_{t_{m+1}}      N_t = accesses of the stale copy up to t    Eq. 4
    super   as smart; and after a published point, until the end of its cycle,
            S = beta S_past + (1 - beta) S_future,  S_future = P C / sum of C                                          Eq. 6, 7

C = accesses expected in a cycle = alpha C_{p-1} + (1 - alpha) mean(C_{p-5} .. C_{p-2}), C_d = accesses in cycle d (cycles
before the first are skipped), P = the published probability. Before they are added, both parts are divided by the largest
score of their kind. Cost: O(1) per event.
Source: Xu, Li, Qu, Labrinidis, 4.1 and 4.2. What is ambiguous or cannot be meant in the paper is repaired; each repair is an
option, and 0 is the repair:

past = 0            the last update counts until now: t_{U+1} = now
       1            exact area: the sum of (now - a) over accesses a of the stale copy
       2            literal: nothing after the last update counts
ties = 0            among pages whose missed updates no access has met, the oldest missed update comes first
       1            the page whose last crawl is the oldest comes first
future = 0          C as above
         1          literal Eq. 6: divided by the page's own accesses in five cycles, so that popularity cancels out
unified = 0         both parts of Eq. 7 are divided by the largest score of their kind
          1         literal: S_past is divided by the number of all accesses so far, S_future is not divided
frozen = 0          scores as of now, but S_past within Eq. 7 as of the beginning of the cycle
         1          all scores as of the beginning of the cycle: except for published points, events count only after its end
past_of_super = 0   a super page without a point that has passed in this cycle: S_past
                1   beta S_past
swapped = 0         normal by Eq. 5, smart by Eq. 4, as in the paper's text
          1         as in its Table 1: smart by Eq. 5, normal by Eq. 4, which is 0 without known updates: pages in turn

LITERAL_OPTIONS sets all equations as printed. The elements of the paper's queue are the two scores of a page. The paper gives
slots to elements in the order of their scores, to each the first free slot from its time on. Taking the largest score at each
slot in turn has the same result.
Differs from the paper: the "largest score" is taken over the crawls and points of the last cycle that had any, because those
of this cycle are not known yet.
"""

import math

from trapline.compiled.jit import shared
from trapline.refresh.core.layout import NORMAL, SUPER, PolicyView
from trapline.refresh.policy import Policy, rule

# Columns: N; the part of S that no longer grows (past = 1: the sum of stale access times); the cycle of the newest C_d; the
# frozen score and its cycle; C_d at place d mod 6, two in each column: a float holds two integers below 2^26 exactly.
N, CLOSED, COUNTED_IN, HELD, HELD_IN, C = range(6)
RING = 6
HALF = 2.0**26
# Totals: the largest score of each kind, for this cycle and gathered for the next one; all accesses in cycle d, at place d mod 6.
MOST_PAST, MOST_PAST_NEXT, MOST_FUTURE, MOST_FUTURE_NEXT, ALL_C = range(5)
PAST, TIES, FUTURE, UNIFIED, FROZEN, PAST_OF_SUPER, SWAPPED, SMALL_C, ALPHA, BETA = range(10)
OPTIONS = {
    "past": 0.0,
    "ties": 0.0,
    "future": 0.0,
    "unified": 0.0,
    "frozen": 0.0,
    "past_of_super": 0.0,
    "swapped": 0.0,
    "c": 1.0,
    "alpha": 0.8,
    "beta": 0.8,
}
LITERAL_OPTIONS = {"past": 2.0, "future": 1.0, "unified": 1.0, "frozen": 1.0}
AREA, LITERAL = 1.0, 2.0
TURN = 1e-6  # accesses; decides between pages whose missed updates no access has met


@shared
def past_score(s: PolicyView, page: int, now: float) -> float:
    """Return S_past: Eq. 4, or Eq. 5 for a page without signals."""
    p = s.page[page]
    swapped = s.option[SWAPPED] == 1.0 and p.level != SUPER
    if (p.level == NORMAL) != swapped:
        return 0.5 * (now - p.crawled_s) * (p.hits + s.option[SMALL_C])
    if p.level == NORMAL:
        return TURN * (now - p.crawled_s)
    return known_score(s, page, now) if p.signals > 0 else 0.0


@shared
def known_score(s: PolicyView, page: int, now: float) -> float:
    """Return Eq. 4 for a page with missed updates."""
    p = s.page[page]
    n, closed = s.columns[page, N], s.columns[page, CLOSED]
    turn = TURN * (now - (p.crawled_s if s.option[TIES] else p.first_signal_s))
    if s.option[PAST] == AREA:
        return turn + n * (now - p.crawled_s) - closed
    return closed + turn if s.option[PAST] == LITERAL else closed + turn + (now - p.last_signal_s) * n


@shared
def counted(s: PolicyView, page: int, cycle: float) -> float:
    """Return C_d; 0 for a cycle that is no longer kept, and for cycles before the first."""
    newest = s.columns[page, COUNTED_IN]
    return at_place(s, page, int(cycle) % RING) if newest - RING < cycle <= newest and cycle >= 0.0 else 0.0


@shared
def at_place(s: PolicyView, page: int, place: int) -> float:
    """Return the count at one of the six places."""
    pair = s.columns[page, C + place // 2]
    upper = math.floor(pair / HALF)
    return upper if place % 2 else pair - upper * HALF


@shared
def add_at_place(s: PolicyView, page: int, place: int, count: float) -> None:
    """Add to the count at one of the six places."""
    s.columns[page, C + place // 2] += count * HALF if place % 2 else count


@shared
def expected(s: PolicyView, last: float, older: float, cycle: float) -> float:
    """Return the accesses expected in this cycle, from those in the last cycle and in the four before it."""
    return s.option[ALPHA] * last + (1.0 - s.option[ALPHA]) * older / max(1.0, min(RING - 2, cycle - 1.0))


@shared
def future_score(s: PolicyView, page: int, cycle: float, p_update: float) -> float:
    """Return Eq. 6. The sum by which the repaired form divides is the same for all pages, so it is needed only with `unified` = 1."""
    last, older = counted(s, page, cycle - 1.0), 0.0
    for d in range(2, RING):
        older += counted(s, page, cycle - d)
    if s.option[FUTURE]:
        return p_update * (s.option[ALPHA] * last + (1.0 - s.option[ALPHA]) * older) / max(last + older, 1.0)
    share = p_update * expected(s, last, older, cycle)
    return share / max(all_expected(s, cycle), 1e-9) if s.option[UNIFIED] else share


@shared
def all_expected(s: PolicyView, cycle: float) -> float:
    """Return the accesses to all pages expected in this cycle."""
    older = 0.0
    for d in range(2, RING):
        older += s.totals[ALL_C + int(cycle - d) % RING]
    return expected(s, s.totals[ALL_C + int(cycle - 1.0) % RING], older, cycle)


@shared
def held(s: PolicyView, page: int, cycle: float) -> float:
    """Return S_past as of the beginning of the cycle. If the page had an event since then, `hold` has stored it."""
    if s.columns[page, HELD_IN] == cycle:
        return s.columns[page, HELD]
    return max(0.0, past_score(s, page, cycle * s.run[0].cycle_s))


@shared
def hold(s: PolicyView, page: int, now: float) -> None:
    """Store S_past as of the beginning of the cycle, before an event changes it."""
    cycle = math.floor(now / s.run[0].cycle_s)
    s.columns[page, HELD] = held(s, page, cycle)
    s.columns[page, HELD_IN] = cycle


@shared
def point_has_come(s: PolicyView, page: int, cycle: float) -> bool:
    """Return whether a published point of this cycle has passed and the page was not crawled since."""
    p = s.page[page]
    if p.points == 0:
        return False
    at_s = s.point[p.point - 1].at_s
    return at_s >= p.crawled_s and math.floor(at_s / s.run[0].cycle_s) == cycle


@shared
def unit_of_future(s: PolicyView) -> float:
    """Return the factor that converts future scores to the scale of past scores."""
    if s.option[UNIFIED]:
        return s.run[0].accesses
    return s.totals[MOST_PAST] / max(s.totals[MOST_FUTURE], 1e-9)


@rule
def score(s: PolicyView, page: int, now: float) -> float:
    cycle = math.floor(now / s.run[0].cycle_s)
    past = held(s, page, cycle) if s.option[FROZEN] else past_score(s, page, now)
    alone = s.option[BETA] * past if s.option[PAST_OF_SUPER] and s.page[page].level == SUPER else past
    if not point_has_come(s, page, cycle):
        return alone
    future = future_score(s, page, cycle, s.point[s.page[page].point - 1].p)
    mixed = s.option[BETA] * held(s, page, cycle) + (1.0 - s.option[BETA]) * future * unit_of_future(s)
    return max(alone, mixed)


@rule
def on_access(s: PolicyView, page: int, now: float) -> float:
    hold(s, page, now)
    cycle = math.floor(now / s.run[0].cycle_s)
    newest = s.columns[page, COUNTED_IN]
    for skipped in range(int(max(newest + 1.0, cycle - RING + 1)), int(cycle) + 1):
        add_at_place(s, page, skipped % RING, -at_place(s, page, skipped % RING))
    s.columns[page, COUNTED_IN] = cycle
    add_at_place(s, page, int(cycle) % RING, 1.0)
    s.totals[ALL_C + int(cycle) % RING] += 1.0
    if s.page[page].signals > 0:
        s.columns[page, N] += 1.0
        if s.option[PAST] == AREA:
            s.columns[page, CLOSED] += now - s.page[page].crawled_s
    return 0.0


@rule
def on_signal(s: PolicyView, page: int, now: float) -> float:
    hold(s, page, now)
    p = s.page[page]
    if p.signals > 0 and s.option[PAST] != AREA:
        s.columns[page, CLOSED] += (now - p.last_signal_s) * s.columns[page, N]
    return 0.0


@rule
def on_point(s: PolicyView, page: int, now: float) -> float:
    cycle = math.floor(now / s.run[0].cycle_s)
    future = future_score(s, page, cycle, s.point[s.page[page].point].p)
    s.totals[MOST_FUTURE_NEXT] = max(s.totals[MOST_FUTURE_NEXT], future)
    return 0.0


@rule
def on_crawl(s: PolicyView, page: int, now: float) -> float:
    s.totals[MOST_PAST_NEXT] = max(s.totals[MOST_PAST_NEXT], past_score(s, page, now))
    s.columns[page, N] = 0.0
    s.columns[page, CLOSED] = 0.0
    s.columns[page, HELD] = 0.0
    s.columns[page, HELD_IN] = math.floor(now / s.run[0].cycle_s)
    return 0.0


@rule
def on_cycle(s: PolicyView, page: int, now: float) -> float:
    s.totals[ALL_C + round(now / s.run[0].cycle_s) % RING] = 0.0
    for largest in (MOST_PAST, MOST_FUTURE):
        if s.totals[largest + 1] > 0.0:
            s.totals[largest] = s.totals[largest + 1]
            s.totals[largest + 1] = 0.0
    return 0.0


POLICY = Policy(
    "xu",
    score,
    on_access=on_access,
    on_signal=on_signal,
    on_point=on_point,
    on_crawl=on_crawl,
    on_cycle=on_cycle,
    columns=("stale hits", "closed", "counted in", "held", "held in", *("accesses of two cycles",) * (RING // 2)),
    options=OPTIONS,
)
