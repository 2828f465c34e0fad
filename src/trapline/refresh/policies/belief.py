"""The share of a page's signals that are true, and the number of updates without a signal, learned for each page from its
crawls. Not a policy.

    pi = share of signals that are true         o = number of unsignalled updates per signalled update

If a crawl found something new, each of the n signals since the crawl before was true with probability pi / (1 - f), and the
expected number of unsignalled updates was o pi T / (1 - f). Here f = exp(-o pi T) (1 - pi)^n (1 - SILENT) is the probability
of nothing new. T = n or, without signals, the probability that a signal would have come, 1 - exp(-H) (gaps.py): unsignalled
updates come in the same bursts as the others. That is one step of expectation-maximisation (Dempster, Laird, Rubin 1977).
Crawls without signals teach o, the others teach pi. Old crawls of a page count less.

pi of a page is shrunk to the precision of its site by trust.py, which uses only crawls after exactly one signal, or to the
mean pi of the site's pages here, if that is less. o of a page is shrunk to o of all pages, and this to ODDS. A crawl of a
page without signals is how o becomes known, so ODDS must not be 0.

A page with signals and a page without use the same columns for different numbers. The sign of SILENT says which numbers the
columns hold. In a live crawl a site can begin to send signals or lose all trust; then its pages start again with empty
columns.
"""

import math

from trapline.compiled.jit import shared
from trapline.refresh.core.layout import AUDITED, CERTAIN, NORMAL, PolicyView
from trapline.refresh.policies.gaps import age_of, expected_signals
from trapline.refresh.policies.trust import believed, precision, signal_rate

# Columns. SILENT: the probability that there was an update at a published point without a signal (-1: a page without signals, see
# above). The others are aged sums. Of a page with signals: SIGNALS received, UNSIGNALLED updates, SIGNALLED updates that a signal
# could have announced, TRUE signals. Of a page without signals: the changes, and the seconds, that its crawls are worth
# (rate_belief.py).
SILENT, SIGNALS, UNSIGNALLED, SIGNALLED, TRUE = range(5)
CHANGES, WATCHED_S = SIGNALS, UNSIGNALLED
# A snapshot with other names is refused, so the old words stay: told = signalled, untold = unsignalled.
COLUMNS = ("silent", "signals or changes", "untold or seconds", "told", "true signals")
# Totals over all pages: UNSIGNALLED and SIGNALLED, as above; the mean change rate of pages without signals (rate_belief.py).
ALL_UNSIGNALLED, ALL_SIGNALLED, MEAN_RATE = range(3)
ODDS, ODDS_WEIGHT = 0.2, 2.0  # o before anything is learned, and the number of updates that this prior counts for
PRIOR_WEIGHT = 4.0  # number of signals, or updates, that the prior from other pages counts for


@shared
def is_begun(s: PolicyView, page: int) -> bool:
    """Return whether the page's columns hold the numbers that its level needs: those of a page with signals, or of one without."""
    return (s.columns[page, SILENT] < 0.0) == (s.page[page].level == NORMAL)


@shared
def begin_anew(s: PolicyView, page: int) -> None:
    """Clear the page's columns and mark whether they are for a page with signals."""
    s.columns[page] = 0.0
    s.columns[page, SILENT] = -1.0 if s.page[page].level == NORMAL else 0.0


@shared
def true_share(s: PolicyView, page: int) -> float:
    """Return pi, the share of the page's signals that are true."""
    of_site = precision(s, page)
    if s.page[page].marks & AUDITED:
        return of_site
    row = s.trust[s.page[page].trust]
    up = s.trust[row.parent]
    of_site = min(of_site, believed(row.believed, row.beliefs, up.believed, up.beliefs, 1.0))
    if not is_begun(s, page):
        return of_site
    own = s.columns[page]
    return min(CERTAIN, (own[TRUE] + PRIOR_WEIGHT * of_site) / (own[SIGNALS] + PRIOR_WEIGHT))


@shared
def unsignalled_odds(s: PolicyView, page: int) -> float:
    """Return o, the number of unsignalled updates of the page per signalled update."""
    of_all = (s.totals[ALL_UNSIGNALLED] + ODDS_WEIGHT * ODDS) / (s.totals[ALL_SIGNALLED] + ODDS_WEIGHT)
    if not is_begun(s, page):
        return of_all
    own = s.columns[page]
    return (own[UNSIGNALLED] + PRIOR_WEIGHT * of_all) / (own[SIGNALLED] + PRIOR_WEIGHT)


@shared
def silent(s: PolicyView, page: int) -> float:
    """Return the probability that there was an update at published points that passed without a signal."""
    return max(0.0, s.columns[page, SILENT])


@shared
def signal_opportunity(s: PolicyView, page: int, now: float, rate: float) -> float:
    """Return T: the number of signals since the last crawl or, if there are none, the probability that one would have come."""
    p = s.page[page]
    if p.signals > 0:
        return p.signals
    age = age_of(s, page, now, rate)
    crawled = expected_signals(s, age - rate * (now - p.crawled_s))
    return 1.0 - math.exp(crawled - expected_signals(s, age))


@shared
def note_belief(s: PolicyView, page: int) -> None:
    """Add the page's pi to the means of its site and of the rows above it, which are the prior for other pages and other sites."""
    pi, x = true_share(s, page), s.page[page].trust
    while True:
        row = s.trust[x]
        row.beliefs = row.keeps * row.beliefs + 1.0
        row.believed = row.keeps * row.believed + pi
        if x == 0:
            return
        x = row.parent


@shared
def learn_from_crawl(s: PolicyView, page: int, now: float, age: float) -> None:
    """Learn pi and o from a crawl of a page with signals. The k-th last crawl counts age^k."""
    own, n = s.columns[page], s.page[page].signals
    pi, o, t = (
        true_share(s, page),
        unsignalled_odds(s, page),
        signal_opportunity(s, page, now, signal_rate(s, page, now)),
    )
    fresh = math.exp(-o * pi * t) * (1.0 - pi) ** float(n) * (1.0 - own[SILENT])
    share = pi * s.run[0].changed / max(1e-9, 1.0 - fresh)
    own[SILENT] = 0.0
    if n == 0:
        own[UNSIGNALLED] = age * own[UNSIGNALLED] + o * t * share
        own[SIGNALLED] = age * own[SIGNALLED] + pi * t
        s.totals[ALL_UNSIGNALLED] += o * t * share
        s.totals[ALL_SIGNALLED] += pi * t
    else:
        own[TRUE] = age * own[TRUE] + n * share
        own[SIGNALS] = age * own[SIGNALS] + n
        note_belief(s, page)
