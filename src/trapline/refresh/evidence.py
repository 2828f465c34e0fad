"""What is noted of a page when something happens to it. The only writer of page and site records.

It knows what a crawler can see, and not what is true. Each event is told to the policy first and noted afterwards, so that the
policy can compare what it hears with what was known. A live crawl and the replayer call the same functions.
"""

from trapline.jit import b1, f8, helper, i8, void
from trapline.refresh.layout import CENSUS, NORMAL, SUPER, State, StateType, View
from trapline.refresh.policy import call_rule
from trapline.refresh.popularity import learn_popularity

SAME_S = 60.0  # a signal and a point so close to each other are of the same update


@helper(f8(StateType, i8, i8, f8))
def ask(s: State, function: int, page: int, now: float) -> float:
    """Call a function of the policy, if it has it."""
    if function < 0:
        return 0.0
    view = View(s.run, s.page, s.columns, s.site, s.point, s.option, s.popular, s.gaps, s.totals)
    return call_rule(function, view, page, now)


@helper(void(StateType, i8, f8))
def note_access(s: State, page: int, now: float) -> None:
    ask(s, s.run[0].on_access, page, now)
    p = s.page[page]
    s.popular[0, min(p.accesses, CENSUS - 1)] -= 1.0
    p.accesses += 1
    p.hits += 1
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
        _note_announced(s, p.site, page, now)
        _note_announced(s, len(s.site) - 1, page, now)
    if p.signals == 0:
        p.first_signal_s = now
    p.signals += 1
    p.all_signals += 1
    p.last_signal_s = now
    s.run[0].signals += 1
    s.run[0].since_revision += 1


@helper(void(StateType, i8, f8))
def note_point(s: State, page: int, now: float) -> None:
    """A published moment is now."""
    ask(s, s.run[0].on_point, page, now)
    p = s.page[page]
    _note_promise(s, p.site, page, now)
    _note_promise(s, len(s.site) - 1, page, now)
    p.point += 1
    p.points += 1


@helper(void(StateType, i8, f8, b1))
def note_crawl(s: State, page: int, now: float, changed: bool) -> None:
    run = s.run[0]
    run.changed = changed
    ask(s, run.on_crawl, page, now)
    p = s.page[page]
    if p.level != NORMAL:
        _note_trust(s, p.site, page, now, changed)
        _note_trust(s, len(s.site) - 1, page, now, changed)
    p.watched_s += now - p.crawled_s
    p.crawls += 1
    p.changes += changed
    p.changed = changed
    p.crawled_s = now
    p.signals = 0
    p.hits = 0
    run.crawls += 1
    run.changes += changed


@helper(void(StateType, i8, i8, f8, b1))
def _note_trust(s: State, x: int, page: int, now: float, changed: bool) -> None:
    """What this crawl says about the signals of site x: were they right, and do they tell everything?"""
    p = s.page[page]
    site = s.site[x]
    if p.signals == 1:
        site.prompted += 1.0
        site.confirmed += changed
    elif p.signals == 0:
        watched_s = now - p.crawled_s
        site.unprompted_s += watched_s
        site.expected += p.all_signals / max(now, 1.0) * watched_s
        site.surprises += changed


@helper(void(StateType, i8, i8, f8))
def _note_promise(s: State, x: int, page: int, now: float) -> None:
    """A point of site x is now; a signal of the same moment has been heard already."""
    p = s.page[page]
    s.site[x].promised += s.point[p.point].p
    s.site[x].kept += p.all_signals > 0 and now - p.last_signal_s <= SAME_S


@helper(void(StateType, i8, i8, f8))
def _note_announced(s: State, x: int, page: int, now: float) -> None:
    """A signal of a page that publishes points: was there one for it?"""
    p = s.page[page]
    came = p.points > 0 and now - s.point[p.point - 1].at_s <= SAME_S
    comes = p.point < p.point_end and s.point[p.point].at_s - now <= SAME_S
    s.site[x].signals += 1.0
    s.site[x].announced += came or comes
    s.site[x].kept += came and not comes
