"""How many of a page's signals are true, and how many updates nobody signals: learned page by page from what crawls find. Not a policy.

    pi = share of signals that are true         o = updates that nobody signals, for each that somebody does

If a crawl found something new, each of the n signals since the one before was true with probability pi / (1 - f), and so many updates came
unsignalled as o pi T / (1 - f), where f = exp(-o pi T) (1 - pi)^n (1 - SILENT) is the chance of nothing new and T = n or, without
signals, the chance that there would be one, 1 - exp(-H) (gaps.py): updates that nobody signals come in the same bursts as the others.
That is one step of expectation-maximisation (Dempster, Laird, Rubin 1977). Crawls without signals teach o, the others pi; of a page old
crawls count less. A page is shrunk to its site by trust.py, which counts crawls after exactly one signal only, or, if that is less, to
what is believed here of the site's pages; o to that of all pages, and this to ODDS. A crawl of a page without signals is how o becomes
known: ODDS must not be 0.

The three numbers of a page serve it with signals or without. Which of the two they are of, the sign of SILENT says: in a live crawl
a site can begin to tell, or lose all belief, and then its pages begin anew.
"""

import math

from trapline.jit import shared
from trapline.refresh.layout import AUDITED, CERTAIN, NORMAL, View
from trapline.refresh.policies.gaps import age_of, expected_signals
from trapline.refresh.policies.trust import believed, precision, signal_rate

# Columns. The probability that published points without signal were updates all the same (-1: no signals, see above). Then, aged: with
# signals how many, updates that nobody signalled, those that somebody might have signalled, and signals that were true; without signals
# crawls, those that found something new, and the seconds between them.
SILENT, HEARD, UNTOLD, TOLD, TRUE = range(5)
CRAWLS, CHANGES, WATCHED_S = HEARD, UNTOLD, TOLD
COLUMNS = ("silent", "signals or crawls", "untold or changes", "told or seconds", "true signals")
# Totals: updates that nobody signalled, and those that somebody might have.
ALL_UNTOLD, ALL_TOLD = range(2)
ODDS, ODDS_WORTH = 0.2, 2.0
OWN_WORTH = 4.0  # signals, or updates, that the belief about others is worth


@shared
def is_begun(s: View, page: int) -> bool:
    """Whether the page's numbers are of a page with signals, if it has signals, and of one without if not."""
    return (s.columns[page, SILENT] < 0.0) == (s.page[page].level == NORMAL)


@shared
def begin_anew(s: View, page: int) -> None:
    s.columns[page] = 0.0
    s.columns[page, SILENT] = -1.0 if s.page[page].level == NORMAL else 0.0


@shared
def true_share(s: View, page: int) -> float:
    """pi"""
    of_site = precision(s, page)
    if s.page[page].marks & AUDITED:
        return of_site
    row = s.trust[s.page[page].trust]
    up = s.trust[row.parent]
    of_site = min(of_site, believed(row.believed, row.beliefs, up.believed, up.beliefs, 1.0))
    if not is_begun(s, page):
        return of_site
    own = s.columns[page]
    return min(CERTAIN, (own[TRUE] + OWN_WORTH * of_site) / (own[HEARD] + OWN_WORTH))


@shared
def untold_odds(s: View, page: int) -> float:
    """o"""
    of_all = (s.totals[ALL_UNTOLD] + ODDS_WORTH * ODDS) / (s.totals[ALL_TOLD] + ODDS_WORTH)
    if not is_begun(s, page):
        return of_all
    own = s.columns[page]
    return (own[UNTOLD] + OWN_WORTH * of_all) / (own[TOLD] + OWN_WORTH)


@shared
def silent(s: View, page: int) -> float:
    return max(0.0, s.columns[page, SILENT])


@shared
def told(s: View, page: int, now: float, rate: float) -> float:
    """T: signals since the last crawl; if there are none, the chance that there would be."""
    p = s.page[page]
    if p.signals > 0:
        return p.signals
    age = age_of(s, page, now, rate)
    crawled = expected_signals(s, age - rate * (now - p.crawled_s))
    return 1.0 - math.exp(crawled - expected_signals(s, age))


@shared
def note_belief(s: View, page: int) -> None:
    """What is believed of the page's signals now is a first guess for the other pages of its site and, less so, for other sites."""
    pi, x = true_share(s, page), s.page[page].trust
    while True:
        row = s.trust[x]
        row.beliefs = row.keeps * row.beliefs + 1.0
        row.believed = row.keeps * row.believed + pi
        if x == 0:
            return
        x = row.parent


@shared
def learn_from_crawl(s: View, page: int, now: float, age: float) -> None:
    """Of a page with signals. The k-th last crawl counts age^k."""
    own, n = s.columns[page], s.page[page].signals
    pi, o, t = true_share(s, page), untold_odds(s, page), told(s, page, now, signal_rate(s, page, now))
    fresh = math.exp(-o * pi * t) * (1.0 - pi) ** n * (1.0 - own[SILENT])
    share = pi * s.run[0].changed / max(1e-9, 1.0 - fresh)
    own[SILENT] = 0.0
    if n == 0:
        own[UNTOLD] = age * own[UNTOLD] + o * t * share
        own[TOLD] = age * own[TOLD] + pi * t
        s.totals[ALL_UNTOLD] += o * t * share
        s.totals[ALL_TOLD] += pi * t
    else:
        own[TRUE] = age * own[TRUE] + n * share
        own[HEARD] = age * own[HEARD] + n
        note_belief(s, page)
