"""What providers tell of the pages of a live crawl: which signals count, and what a site's channel is worth.

It stands between `Refresher.signalled` and evidence.py. A signal counts unless
- it tells what the last crawl saw already, or repeats within SAME_S what was told since then;
- it is unverified and its site has no channel that is believed: alone it never changes what a page is taken for;
- its channel was struck out (trust.py) and this signal was not drawn to be followed all the same.
Of several signals for one update the one that is believed most counts.
"""

from trapline.jit import f8, helper, i8, void
from trapline.refresh.evidence import SAME_S, note_signal
from trapline.refresh.layout import AUDITED, NORMAL, SMART, State, StateType
from trapline.refresh.policies.trust import is_struck_out, precision_of
from trapline.refresh.queue import heed
from trapline.refresh.timers import relevel
from trapline.rng import uniform

AUDIT = 0.03  # share of a struck out channel's signals that are followed


@helper(void(StateType, i8, i8, f8))
def tell_site(s: State, x: int, row: int, now: float) -> None:
    """From now on this row tells the site's updates; 0: nobody does."""
    site = s.site[x]
    site.row = row
    for i in range(site.pages):
        relevel(s, s.value[site.block + i].id)
    for i in range(site.pages):
        heed(s, s.value[site.block + i].id, now)


@helper(void(StateType, i8, i8, f8, f8))
def hear(s: State, page: int, row: int, moment: float, now: float) -> None:
    p = s.page[page]
    told = s.trust[row]
    told.heard += 1
    if moment < p.crawled_s - SAME_S or (told.unverified and p.level == NORMAL):
        return
    at_s = min(now, max(moment, p.crawled_s, p.last_signal_s))
    believed_more = precision_of(s, row) > precision_of(s, p.trust)
    if p.all_signals > 0 and at_s - p.last_signal_s < SAME_S and p.signals > 0:
        if believed_more:
            p.trust = row
            heed(s, page, now)
        return
    if is_struck_out(s, row):
        if told.unverified or uniform(p.id, told.heard) >= AUDIT:
            return
        p.marks |= AUDITED
        p.level = max(p.level, SMART)
    elif not told.unverified and s.site[p.site].row == 0:
        tell_site(s, p.site, row, now)
    if p.signals == 0 or believed_more:
        p.trust = row
    note_signal(s, page, at_s)
    heed(s, page, now)


@helper(void(StateType, i8, f8))
def judge_channel(s: State, page: int, now: float) -> None:
    """After a crawl: a channel that has lied too often tells its site's updates no more."""
    x = s.page[page].site
    if s.site[x].row > 0 and is_struck_out(s, s.site[x].row):
        tell_site(s, x, 0, now)
    relevel(s, page)
