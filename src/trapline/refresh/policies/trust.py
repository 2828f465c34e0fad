"""How far a page's signals are believed, learned from crawls: their precision and recall, by site and channel. Not a policy.

After exactly one signal a crawl found something new or not: precision pi. Without a signal it found something all the same: the odds
o = (1 - recall) / recall, as surprises over the updates that signals made expect. With r the rate of a page's signals,
updates come at (1 + o) pi r, those that nobody tells at alpha = o pi r, and false signals at nu = (1 - pi) r. Notation:
spec of NCIS (Busa-Fekete et al. 2025). A site's channel that has shown nothing yet is believed like that channel elsewhere, and a channel
that nobody has used like PRECISION and MISSED say. A replay knows one channel: a site is shrunk to all sites.

In a live crawl outcomes are forgotten slowly (TRUST.keeps), so that a liar loses influence and one who was reformed gains it back. A
channel of a site that is right less often than STRUCK is struck out: its signals count as nothing, but for a share that is followed as
if it were believed (AUDITED), to see whether it tells the truth by now.
"""

from trapline.jit import shared
from trapline.refresh.layout import AUDITED, State, View

PRECISION, MISSED = 0.95, 0.02
FIRST, OF_ALL = 4.0, 8.0  # crawls that these beliefs are worth
STRUCK = 0.02


@shared
def believed(hits: float, tries: float, up_hits: float, up_tries: float, first: float) -> float:
    """A share, shrunk to that of its parent row, and this to what is believed at first."""
    of_others = (up_hits + FIRST * first) / (up_tries + FIRST)
    return (hits + OF_ALL * of_others) / (tries + OF_ALL)


@shared
def precision_of(s: View | State, x: int) -> float:
    row = s.trust[x]
    up = s.trust[row.parent]
    return min(row.most, believed(row.confirmed, row.prompted, up.confirmed, up.prompted, PRECISION))


@shared
def precision(s: View, page: int) -> float:
    return PRECISION if s.page[page].marks & AUDITED else precision_of(s, s.page[page].trust)


@shared
def is_struck_out(s: View | State, x: int) -> bool:
    """By its own outcomes alone: 25 false signals one after the other are enough.

    >>> from types import SimpleNamespace as record
    >>> [is_struck_out(record(trust=[record(confirmed=right, prompted=25.0)]), 0) for right in (0.0, 1.0)]
    [True, False]
    """
    return s.trust[x].confirmed + 0.5 < STRUCK * (s.trust[x].prompted + 1.0)


@shared
def missed_odds(s: View, page: int) -> float:
    row = s.trust[s.page[page].trust]
    up = s.trust[row.parent]
    return believed(row.surprises, row.expected, up.surprises, up.expected, MISSED)


@shared
def signal_rate(s: View, page: int, now: float) -> float:
    """Signals per second; the mean of all pages is worth half a signal."""
    watched_s = max(now - s.page[page].joined, 1.0)
    mean_s = len(s.page) / (s.run[0].signals + 1.0) * (max(now, 1.0) if s.page[page].joined > 0 else watched_s)
    return (s.page[page].all_signals + 0.5) / (watched_s + 0.5 * mean_s)


@shared
def kept_share(s: View, x: int) -> float:
    """By what the probabilities that this row publishes are to be multiplied: points with an update over points promised."""
    row = s.trust[x]
    up = s.trust[row.parent]
    return believed(row.kept, row.promised, up.kept, up.promised, PRECISION)


@shared
def unannounced_share(s: View, page: int) -> float:
    """Of the signals of pages that publish points: those without a point."""
    row = s.trust[s.page[page].trust]
    up = s.trust[row.parent]
    return believed(row.signals - row.announced, row.signals, up.signals - up.announced, up.signals, MISSED)
