"""The paper's scores: how much harm was done since the last crawl, in accesses times seconds of staleness.

    normal  S = 1/2 (now - last crawl) (N + c)                                N = accesses since the last crawl         Eq. 5
    smart   S = sum over missed updates m of (t_{m+1} - t_m) N_{t_{m+1}}      N_t = accesses of the stale copy up to t    Eq. 4
    super   as smart; and for a published point that has come, until the end of its cycle,
            S = beta S_past + (1 - beta) S_future,  S_future = P C / sum of C                                          Eq. 6, 7

C = accesses expected in a cycle = alpha C_{p-1} + (1 - alpha) mean(C_{p-5} .. C_{p-2}), C_d = accesses in cycle d, P = the
published probability. To be added, both parts are divided by the largest of their kind. Cost: O(1) an event.
Source: Xu, Li, Qu, Labrinidis, 4.1 and 4.2, with the repairs of what is ambiguous or cannot be meant, each an option:

past = 0            the last update counts until now: t_{U+1} = now
       1            exact area: the sum of (now - a) over accesses a of the stale copy
       2            literal: nothing after the last update counts
future = 0          C as above
         1          literal: divided by the page's own accesses in five cycles, so that popularity drops out
frozen = 0          scores as of now
         1          scores as of the cycle's beginning
past_of_super = 0   S_past
                1   beta S_past

Differs from the paper: "largest" is that of the crawls and points of the last cycle that had any, because this cycle's are not known yet.
"""

import math

from trapline.jit import shared
from trapline.refresh.layout import NORMAL, SUPER, View
from trapline.refresh.policy import Policy, rule

# Columns: N; the part of S that no longer grows (past = 1: the sum of stale access times); cycle of the newest C_d; the
# frozen score and its cycle; C_d at the place d mod 6.
N, CLOSED, COUNTED_IN, HELD, HELD_IN, C = range(6)
RING = 6
# Totals.
MOST_PAST, MOST_PAST_NEXT, MOST_FUTURE, MOST_FUTURE_NEXT = range(4)
OPTIONS = {"past": 0.0, "future": 0.0, "frozen": 0.0, "past_of_super": 0.0, "c": 1.0, "alpha": 0.8, "beta": 0.8}
PAST, FUTURE, FROZEN, PAST_OF_SUPER, SMALL_C, ALPHA, BETA = range(7)
AREA, LITERAL = 1.0, 2.0
TURN = 1e-6  # accesses: of missed updates that nobody has noticed, the oldest comes first


@shared
def past_score(s: View, page: int, now: float) -> float:
    p = s.page[page]
    if p.level == NORMAL:
        return 0.5 * (now - p.crawled_s) * (p.hits + s.option[SMALL_C])
    if p.signals == 0:
        return 0.0
    n, closed = s.columns[page, N], s.columns[page, CLOSED]
    turn = TURN * (now - p.first_signal_s)
    if s.option[PAST] == AREA:
        return turn + n * (now - p.crawled_s) - closed
    return closed + turn if s.option[PAST] == LITERAL else closed + turn + (now - p.last_signal_s) * n


@shared
def counted(s: View, page: int, cycle: float) -> float:
    """C_d; nothing is known of cycles before the first."""
    newest = s.columns[page, COUNTED_IN]
    return s.columns[page, C + int(cycle) % RING] if newest - RING < cycle <= newest and cycle >= 0.0 else 0.0


@shared
def future_score(s: View, page: int, cycle: float, p_update: float) -> float:
    older = 0.0
    for d in range(2, RING):
        older += counted(s, page, cycle - d)
    last = counted(s, page, cycle - 1.0)
    if s.option[FUTURE] == 0.0:
        return p_update * (s.option[ALPHA] * last + (1.0 - s.option[ALPHA]) * older / (RING - 2))
    return p_update * (s.option[ALPHA] * last + (1.0 - s.option[ALPHA]) * older) / max(last + older, 1.0)


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


@rule
def score(s: View, page: int, now: float) -> float:
    cycle = math.floor(now / s.run[0].cycle_s)
    past = held(s, page, cycle) if s.option[FROZEN] else past_score(s, page, now)
    alone = s.option[BETA] * past if s.option[PAST_OF_SUPER] and s.page[page].level == SUPER else past
    if not point_has_come(s, page, cycle):
        return alone
    future = future_score(s, page, cycle, s.point[s.page[page].point - 1].p) / max(s.totals[MOST_FUTURE], 1e-9)
    return max(alone, s.option[BETA] * past + (1.0 - s.option[BETA]) * future * s.totals[MOST_PAST])


@rule
def on_access(s: View, page: int, now: float) -> float:
    hold(s, page, now)
    cycle = math.floor(now / s.run[0].cycle_s)
    newest = s.columns[page, COUNTED_IN]
    for skipped in range(int(max(newest + 1.0, cycle - RING + 1)), int(cycle) + 1):
        s.columns[page, C + skipped % RING] = 0.0
    s.columns[page, COUNTED_IN] = cycle
    s.columns[page, C + int(cycle) % RING] += 1.0
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
    columns=("stale hits", "closed", "counted in", "held", "held in", *("accesses of a cycle",) * RING),
    options=OPTIONS,
)
