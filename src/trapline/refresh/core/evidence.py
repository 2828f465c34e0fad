"""The evidence about pages: it records accesses, signals, published points and crawls in the page and trust records.

Only this module writes the evidence. It knows what a crawler can observe, not what is true. Each event goes to the policy
first and is recorded afterwards, so that the policy can compare the event with the evidence before it. A live crawl and the
replayer call the same functions. Outcomes are added to the row of the page's site and channel, to the row of the channel, and
to the row of all.
"""

import math

from trapline.compiled.jit import b1, f8, helper, i8, shared, void
from trapline.refresh.core.layout import (
    ACCESS_CLASSES,
    GRID,
    MORE_POINTS,
    NORMAL,
    ONE_POINT,
    PROMISED,
    SUPER,
    UNVERIFIED,
    PolicyView,
    RefreshState,
    StateType,
    view_of,
)
from trapline.refresh.policies.trust import precision_of
from trapline.refresh.policy import call_rule
from trapline.rng import uniform

# ---- The popularity of a page with n accesses. It is less than n suggests where n is large by chance, and more where n is small.
#
# The pages are a sample of an unknown mixture of Poisson rates. The mixture is learned from the numbers of pages with 0, 1, 2, ...
# accesses (the access classes) by a few steps of expectation-maximisation over a grid of rates: the non-parametric maximum likelihood of
# Kiefer and Wolfowitz 1956, in the form of Laird 1978. The estimate for a page with n accesses is the mean rate given n. For pages with
# more accesses than the classes distinguish, the estimate is their own count. Cost: 64 x 32 x steps each time that the number of accesses
# has grown by a tenth.
#
# In a live crawl old accesses count less: every half-life all counts are halved, and so is the time that they cover (`forget`). While
# there are no accesses at all, the quality of the pages replaces them.

_STEPS = 8
_LEAST, _RATIO = 0.03, 1.3  # the grid, in accesses so far: 0.03 to 0.03 * 1.3^31 = 102
# Accesses per second of the mean page where no accesses are known; any number gives the same order.
_BY_QUALITY = 1.0 / 86_400.0


@helper(f8(i8))
def _expected(g: int) -> float:
    """Return a rate of the grid, as the expected number of accesses so far."""
    return _LEAST * _RATIO**g


@helper(void(StateType))
def _fill_likelihoods(s: RefreshState) -> None:
    """Set guess[n, g] to the Poisson probability of n accesses at rate g, for all counts except the last."""
    for g in range(GRID):
        x = _expected(g)
        s.guess[0, g] = math.exp(-x)
        for n in range(1, ACCESS_CLASSES - 1):
            s.guess[n, g] = s.guess[n - 1, g] * x / n


@helper(void(StateType))
def _improve(s: RefreshState) -> None:
    """Make one step of expectation-maximisation: each rate gets the share of pages that it explains."""
    shares = s.guess[ACCESS_CLASSES - 1]
    gained = s.best  # used as scratch space for GRID numbers
    gained[:GRID] = 1e-9
    for n in range(ACCESS_CLASSES - 1):
        if s.popular[0, n] > 0.0:
            likely = 0.0
            for g in range(GRID):
                likely += shares[g] * s.guess[n, g]
            for g in range(GRID):
                gained[g] += s.popular[0, n] * shares[g] * s.guess[n, g] / max(likely, 1e-300)
    whole = gained[:GRID].sum()
    for g in range(GRID):
        shares[g] = gained[g] / whole


@helper(void(StateType, f8))
def learn_popularity(s: RefreshState, now: float) -> None:
    """Set popular[1, n], the expected accesses per second of a page that had n accesses so far."""
    _fill_likelihoods(s)
    for _ in range(_STEPS):
        _improve(s)
    shares = s.guess[ACCESS_CLASSES - 1]
    for n in range(ACCESS_CLASSES - 1):
        whole, mean = 0.0, 0.0
        for g in range(GRID):
            likely = shares[g] * s.guess[n, g]
            whole += likely
            mean += likely * _expected(g)
        s.popular[1, n] = mean / max(whole, 1e-300) / max(now - s.run[0].forgotten_s, 1.0)


@shared
def access_rate(s: RefreshState | PolicyView, page: int, now: float) -> float:
    """Return the expected accesses per second of the page."""
    run, n = s.run[0], s.page[page].accesses
    if run.accesses == 0 and run.quality > 0.0:
        return s.page[page].quality / run.quality * len(s.page) * _BY_QUALITY
    if n < ACCESS_CLASSES - 1:
        return s.popular[1, n]
    return n / max(now - run.forgotten_s, 1.0)


@helper(void(StateType, f8))
def forget(s: RefreshState, now: float) -> None:
    """Halve the counts of accesses and the time that they cover. Odd counts are rounded up or down at random."""
    run = s.run[0]
    s.popular[0] = 0.0
    for page in range(len(s.page)):
        p = s.page[page]
        p.accesses = int(0.5 * p.accesses + 0.5 * (p.accesses % 2) * (2.0 * (uniform(p.id, run.cycle) < 0.5) - 1.0))
        s.popular[0, min(p.accesses, ACCESS_CLASSES - 1)] += 1.0
    run.forgotten_s = now - 0.5 * (now - run.forgotten_s)
    run.halved_s = now
    run.next_popularity_update = run.accesses


# ---- evidence

MOST_COUNTED = 2**30  # largest count of a page's accesses; its record has 32 bits
SAME_S = 60.0  # a signal and a point that are at most this far apart belong to the same update


@helper(f8(StateType, i8, i8, f8))
def ask(s: RefreshState, function: int, page: int, now: float) -> float:
    """Call a function of the policy and return its result; 0 if the policy does not have the function."""
    if function < 0:
        return 0.0
    return call_rule(function, view_of(s), page, now)


@helper(void(StateType, i8, f8))
def note_access(s: RefreshState, page: int, now: float) -> None:
    """Record an access, and learn the popularity again when the accesses have grown by a tenth."""
    ask(s, s.run[0].on_access, page, now)
    p = s.page[page]
    s.popular[0, min(p.accesses, ACCESS_CLASSES - 1)] -= 1.0
    p.accesses = min(p.accesses + 1, MOST_COUNTED)
    p.hits = min(p.hits + 1, MOST_COUNTED)
    s.popular[0, min(p.accesses, ACCESS_CLASSES - 1)] += 1.0
    run = s.run[0]
    run.accesses += 1
    if run.accesses >= run.next_popularity_update:
        learn_popularity(s, now)
        run.next_popularity_update = run.accesses + max(8, run.accesses // 10)


@helper(void(StateType, i8, f8))
def note_signal(s: RefreshState, page: int, now: float) -> None:
    """Record a signal."""
    ask(s, s.run[0].on_signal, page, now)
    p = s.page[page]
    if p.level == SUPER:
        _note_announced(s, page, now)
    if p.signals == 0:
        p.first_signal_s = now
    p.signals += 1
    p.all_signals += 1
    p.last_signal_s = now
    s.run[0].signals += 1
    s.run[0].since_revision += s.run[0].uses_signals


@helper(void(StateType, i8, f8))
def note_point(s: RefreshState, page: int, now: float) -> None:
    """Record that the page's next published point has come."""
    ask(s, s.run[0].on_point, page, now)
    p = s.page[page]
    if not is_silent(s, page):
        _note_promise(s, p.point, p.all_signals > 0 and now - p.last_signal_s <= SAME_S)
    p.marks |= MORE_POINTS if p.marks & ONE_POINT else ONE_POINT
    p.point += 1
    p.points += 1


@helper(void(StateType, i8, f8, b1, f8))
def note_crawl(s: RefreshState, page: int, now: float, changed: bool, age_s: float) -> None:
    """Record a crawl. `age_s`: time since the page last changed, as its server states; infinity: the server does not state it."""
    run = s.run[0]
    run.changed = changed
    run.age_s = age_s
    ask(s, run.on_crawl, page, now)
    p = s.page[page]
    if p.level != NORMAL:
        _note_trust(s, page, now, changed)
    if is_silent(s, page) and p.marks & (ONE_POINT | MORE_POINTS) == ONE_POINT and p.signals == 0:
        _note_promise(s, p.point - 1, changed)
    p.crawls += 1
    p.changes += changed
    p.crawled_s = now
    p.signals = 0
    p.hits = 0
    p.marks &= PROMISED
    run.crawls += 1
    run.changes += changed


@helper(b1(StateType, i8))
def is_silent(s: RefreshState, page: int) -> bool:
    """Return whether no channel signals the updates of the page's site. Then only crawls show whether published points were kept."""
    return s.run[0].live and s.site[s.page[page].site].row == 0


@helper(void(StateType, i8, f8, b1))
def _note_trust(s: RefreshState, page: int, now: float, changed: bool) -> None:
    """Record what this crawl shows about the signals of its page: whether a signal was true, or whether an update had no signal."""
    p = s.page[page]
    x = p.trust
    true_signals = precision_of(s, x) * p.all_signals / max(now - p.joined, 1.0) * (now - p.crawled_s)
    while True:
        row = s.trust[x]
        if p.signals == 1:
            row.prompted = row.keeps * row.prompted + 1.0
            row.confirmed = row.keeps * row.confirmed + changed
        elif p.signals == 0:
            row.expected = row.keeps * row.expected + true_signals
            row.surprises = row.keeps * row.surprises + changed
        if x == 0:
            return
        x = row.parent


@helper(void(StateType, i8, b1))
def _note_promise(s: RefreshState, point: int, kept: bool) -> None:
    """Record whether a published point was kept, in the rows of its publisher. A point of very low probability is not counted."""
    x = s.point[point].row
    probability = s.point[point].p
    while probability > UNVERIFIED:
        row = s.trust[x]
        row.promised = row.keeps * row.promised + probability
        row.kept = row.keeps * row.kept + kept
        if x == 0:
            return
        x = row.parent


@helper(void(StateType, i8))
def _note_late(s: RefreshState, x: int) -> None:
    """Record that a promise of this row was kept after all: its signal came a little later than the point."""
    while True:
        s.trust[x].kept += 1.0
        if x == 0:
            return
        x = s.trust[x].parent


@helper(b1(StateType, i8))
def _is_promise(s: RefreshState, point: int) -> bool:
    """Return whether the probability of the point is high enough to be counted."""
    return s.point[point].p > UNVERIFIED


@helper(void(StateType, i8, f8))
def _note_announced(s: RefreshState, page: int, now: float) -> None:
    """Record whether a signal of a page that publishes points came at the time of a point."""
    p = s.page[page]
    last, next_ = p.point - 1, p.point
    came = p.points > 0 and now - s.point[last].at_s <= SAME_S and _is_promise(s, last)
    comes = next_ < p.point_end and s.point[next_].at_s - now <= SAME_S and _is_promise(s, next_)
    # If another signal came shortly before the point, or after it, the point is counted as kept already.
    if came and not comes and (p.all_signals == 0 or p.last_signal_s < s.point[last].at_s - SAME_S):
        _note_late(s, s.point[last].row)
    x = p.trust
    while True:
        row = s.trust[x]
        row.signals = row.keeps * row.signals + 1.0
        row.announced = row.keeps * row.announced + (came or comes)
        if x == 0:
            return
        x = row.parent
