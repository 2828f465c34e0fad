"""What is noted of a page when something happens to it. The only writer of what page and trust records know.

It knows what a crawler can see, and not what is true. Each event is told to the policy first and noted afterwards, so that the
policy can compare what it hears with what was known. A live crawl and the replayer call the same functions. Outcomes go to the row of the
page's site and channel, to that of the channel, and to that of all.
"""

from trapline.jit import b1, f8, helper, i8, void
from trapline.refresh.layout import (
    CENSUS,
    MORE_POINTS,
    NORMAL,
    ONE_POINT,
    PROMISED,
    SUPER,
    UNVERIFIED,
    State,
    StateType,
    view_of,
)
from trapline.refresh.policies.trust import precision_of
from trapline.refresh.policy import call_rule
from trapline.refresh.popularity import learn_popularity

MOST_COUNTED = 2**30  # accesses of a page; its record has 32 bits
SAME_S = 60.0  # a signal and a point so close to each other are of the same update


@helper(f8(StateType, i8, i8, f8))
def ask(s: State, function: int, page: int, now: float) -> float:
    """Call a function of the policy, if it has it."""
    if function < 0:
        return 0.0
    return call_rule(function, view_of(s), page, now)


@helper(void(StateType, i8, f8))
def note_access(s: State, page: int, now: float) -> None:
    ask(s, s.run[0].on_access, page, now)
    p = s.page[page]
    s.popular[0, min(p.accesses, CENSUS - 1)] -= 1.0
    p.accesses = min(p.accesses + 1, MOST_COUNTED)
    p.hits = min(p.hits + 1, MOST_COUNTED)
    s.popular[0, min(p.accesses, CENSUS - 1)] += 1.0
    run = s.run[0]
    run.accesses += 1
    if run.accesses >= run.next_census:
        learn_popularity(s, now)
        run.next_census = run.accesses + max(8, run.accesses // 10)


@helper(void(StateType, i8, f8))
def note_signal(s: State, page: int, now: float) -> None:
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
    s.run[0].since_revision += s.run[0].hears


@helper(void(StateType, i8, f8))
def note_point(s: State, page: int, now: float) -> None:
    """A published moment is now."""
    ask(s, s.run[0].on_point, page, now)
    p = s.page[page]
    if not is_silent(s, page):
        _note_promise(s, p.point, p.all_signals > 0 and now - p.last_signal_s <= SAME_S)
    p.marks |= MORE_POINTS if p.marks & ONE_POINT else ONE_POINT
    p.point += 1
    p.points += 1


@helper(void(StateType, i8, f8, b1, f8))
def note_crawl(s: State, page: int, now: float, changed: bool, age_s: float) -> None:
    """`age_s`: since the page last changed, as its server says; infinity: it does not say."""
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
def is_silent(s: State, page: int) -> bool:
    """Whether nobody signals the updates of its site: then crawls alone tell whether published points were kept."""
    return s.run[0].live and s.site[s.page[page].site].row == 0


@helper(void(StateType, i8, f8, b1))
def _note_trust(s: State, page: int, now: float, changed: bool) -> None:
    """What this crawl says about the signals of its page: were they right, and do they tell everything?"""
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
def _note_promise(s: State, point: int, kept: bool) -> None:
    """A point has passed, and whoever published it is judged by it. One that promised hardly anything is no outcome."""
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
def _note_late(s: State, x: int) -> None:
    """A promise of this row was kept after all: its signal came a little later."""
    while True:
        s.trust[x].kept += 1.0
        if x == 0:
            return
        x = s.trust[x].parent


@helper(b1(StateType, i8))
def _is_promise(s: State, point: int) -> bool:
    return s.point[point].p > UNVERIFIED


@helper(void(StateType, i8, f8))
def _note_announced(s: State, page: int, now: float) -> None:
    """A signal of a page that publishes points: was there one for it?"""
    p = s.page[page]
    last, next_ = p.point - 1, p.point
    came = p.points > 0 and now - s.point[last].at_s <= SAME_S and _is_promise(s, last)
    comes = next_ < p.point_end and s.point[next_].at_s - now <= SAME_S and _is_promise(s, next_)
    # A point that a signal came before, or another one after, was counted as kept then.
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
