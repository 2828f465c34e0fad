"""The paper's scores: how much harm was done since the last crawl, in accesses times seconds of staleness.

    normal  S = 1/2 (now - last crawl) (N + c)                                N = accesses since the last crawl         Eq. 5
    smart   S = sum over missed updates m of (t_{m+1} - t_m) N_{t_{m+1}}      N_t = accesses of the stale copy up to t    Eq. 4
    super   as smart; and for a published point that has come, until the end of its cycle,
            S = beta S_past + (1 - beta) S_future,  S_future = P C / sum of C                                          Eq. 6, 7

C = accesses expected in a cycle = alpha C_{p-1} + (1 - alpha) mean(C_{p-5} .. C_{p-2}), C_d = accesses in cycle d (cycles
before the first are skipped), P = the published probability. To be added, both parts are divided by the largest of their kind.
Cost: O(1) an event.
Source: Xu, Li, Qu, Labrinidis, 4.1 and 4.2, with the repairs of what is ambiguous or cannot be meant, each an option. 0 is the repair:

past = 0            the last update counts until now: t_{U+1} = now
       1            exact area: the sum of (now - a) over accesses a of the stale copy
       2            literal: nothing after the last update counts
ties = 0            of missed updates that nobody has noticed, the oldest comes first
       1            the page that was not crawled for longest
future = 0          C as above
         1          literal Eq. 6: divided by the page's own accesses in five cycles, so that popularity drops out
unified = 0         both parts of Eq. 7 divided by the largest of their kind
          1         literal: S_past by the number of all accesses so far, S_future as it is
frozen = 0          scores as of now, but S_past within Eq. 7 as of the cycle's beginning
         1          all scores as of the cycle's beginning: what happens in it is not seen before its end, except published points
past_of_super = 0   a super page without a point that has come: S_past
                1   beta S_past
swapped = 0         normal by Eq. 5, smart by Eq. 4, as the text has it
          1         as its Table 1 has it: smart by Eq. 5, normal by Eq. 4, which without known updates is 0: pages in turn

LITERAL_OPTIONS has all equations as printed. The elements of the paper's queue are a page's two scores. It gives slots to elements in
order of their scores, each the first free one from its time on; to take the largest at each slot in turn comes to the same.
Differs from the paper: "largest" is that of the crawls and points of the last cycle that had any, because this cycle's are not known yet.
"""

import math

from trapline.jit import shared
from trapline.refresh.layout import NORMAL, SUPER, View
from trapline.refresh.policy import Policy, rule

# Columns: N; the part of S that no longer grows (past = 1: the sum of stale access times); cycle of the newest C_d; the
# frozen score and its cycle; C_d at the place d mod 6, two to a column: a float holds two whole numbers below 2^26 exactly.
N, CLOSED, COUNTED_IN, HELD, HELD_IN, C = range(6)
RING = 6
HALF = 2.0**26
# Totals: the largest of a kind and of the next cycle; all accesses in cycle d, at the place d mod 6.
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
TURN = 1e-6  # accesses: decides where nobody has noticed a missed update


@shared
def past_score(s: View, page: int, now: float) -> float:
    """Eq. 4, or Eq. 5 where updates are not told."""
    p = s.page[page]
    swapped = s.option[SWAPPED] == 1.0 and p.level != SUPER
    if (p.level == NORMAL) != swapped:
        return 0.5 * (now - p.crawled_s) * (p.hits + s.option[SMALL_C])
    if p.level == NORMAL:
        return TURN * (now - p.crawled_s)
    return known_score(s, page, now) if p.signals > 0 else 0.0


@shared
def known_score(s: View, page: int, now: float) -> float:
    """Eq. 4 of a page that misses updates."""
    p = s.page[page]
    n, closed = s.columns[page, N], s.columns[page, CLOSED]
    turn = TURN * (now - (p.crawled_s if s.option[TIES] else p.first_signal_s))
    if s.option[PAST] == AREA:
        return turn + n * (now - p.crawled_s) - closed
    return closed + turn if s.option[PAST] == LITERAL else closed + turn + (now - p.last_signal_s) * n


@shared
def counted(s: View, page: int, cycle: float) -> float:
    """C_d; nothing is known of cycles before the first."""
    newest = s.columns[page, COUNTED_IN]
    return at_place(s, page, int(cycle) % RING) if newest - RING < cycle <= newest and cycle >= 0.0 else 0.0


@shared
def at_place(s: View, page: int, place: int) -> float:
    pair = s.columns[page, C + place // 2]
    upper = math.floor(pair / HALF)
    return upper if place % 2 else pair - upper * HALF


@shared
def add_at_place(s: View, page: int, place: int, count: float) -> None:
    s.columns[page, C + place // 2] += count * HALF if place % 2 else count


@shared
def expected(s: View, last: float, older: float, cycle: float) -> float:
    """Accesses in this cycle, from those in the last one and in the four before."""
    return s.option[ALPHA] * last + (1.0 - s.option[ALPHA]) * older / max(1.0, min(RING - 2, cycle - 1.0))


@shared
def future_score(s: View, page: int, cycle: float, p_update: float) -> float:
    """Eq. 6. The repaired one is divided by the same sum for all pages, which matters only where it is not divided by the largest."""
    last, older = counted(s, page, cycle - 1.0), 0.0
    for d in range(2, RING):
        older += counted(s, page, cycle - d)
    if s.option[FUTURE]:
        return p_update * (s.option[ALPHA] * last + (1.0 - s.option[ALPHA]) * older) / max(last + older, 1.0)
    share = p_update * expected(s, last, older, cycle)
    return share / max(all_expected(s, cycle), 1e-9) if s.option[UNIFIED] else share


@shared
def all_expected(s: View, cycle: float) -> float:
    older = 0.0
    for d in range(2, RING):
        older += s.totals[ALL_C + int(cycle - d) % RING]
    return expected(s, s.totals[ALL_C + int(cycle - 1.0) % RING], older, cycle)


@shared
def held(s: View, page: int, cycle: float) -> float:
    """The past score as of the beginning of the cycle. If anything happened to the page since, it was noted then."""
    if s.columns[page, HELD_IN] == cycle:
        return s.columns[page, HELD]
    return max(0.0, past_score(s, page, cycle * s.run[0].cycle_s))


@shared
def hold(s: View, page: int, now: float) -> None:
    cycle = math.floor(now / s.run[0].cycle_s)
    s.columns[page, HELD] = held(s, page, cycle)
    s.columns[page, HELD_IN] = cycle


@shared
def point_has_come(s: View, page: int, cycle: float) -> bool:
    """Whether a published point of this cycle has passed without a crawl since."""
    p = s.page[page]
    if p.points == 0:
        return False
    at_s = s.point[p.point - 1].at_s
    return at_s >= p.crawled_s and math.floor(at_s / s.run[0].cycle_s) == cycle


@shared
def unit_of_future(s: View) -> float:
    """What a future score of 1 weighs among past scores, which are left as they are."""
    if s.option[UNIFIED]:
        return s.run[0].accesses
    return s.totals[MOST_PAST] / max(s.totals[MOST_FUTURE], 1e-9)


@rule
def score(s: View, page: int, now: float) -> float:
    cycle = math.floor(now / s.run[0].cycle_s)
    past = held(s, page, cycle) if s.option[FROZEN] else past_score(s, page, now)
    alone = s.option[BETA] * past if s.option[PAST_OF_SUPER] and s.page[page].level == SUPER else past
    if not point_has_come(s, page, cycle):
        return alone
    future = future_score(s, page, cycle, s.point[s.page[page].point - 1].p)
    mixed = s.option[BETA] * held(s, page, cycle) + (1.0 - s.option[BETA]) * future * unit_of_future(s)
    return max(alone, mixed)


@rule
def on_access(s: View, page: int, now: float) -> float:
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
def on_signal(s: View, page: int, now: float) -> float:
    hold(s, page, now)
    p = s.page[page]
    if p.signals > 0 and s.option[PAST] != AREA:
        s.columns[page, CLOSED] += (now - p.last_signal_s) * s.columns[page, N]
    return 0.0


@rule
def on_point(s: View, page: int, now: float) -> float:
    cycle = math.floor(now / s.run[0].cycle_s)
    future = future_score(s, page, cycle, s.point[s.page[page].point].p)
    s.totals[MOST_FUTURE_NEXT] = max(s.totals[MOST_FUTURE_NEXT], future)
    return 0.0


@rule
def on_crawl(s: View, page: int, now: float) -> float:
    s.totals[MOST_PAST_NEXT] = max(s.totals[MOST_PAST_NEXT], past_score(s, page, now))
    s.columns[page, N] = 0.0
    s.columns[page, CLOSED] = 0.0
    s.columns[page, HELD] = 0.0
    s.columns[page, HELD_IN] = math.floor(now / s.run[0].cycle_s)
    return 0.0


@rule
def on_cycle(s: View, page: int, now: float) -> float:
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
