"""Trust in signals, learned from crawls: the precision and recall of the signals of each site and channel. Not a policy.

Crawls after exactly one signal, which find something new or not, give the precision pi. Crawls without a signal that find
something new give the odds o = (1 - recall) / recall, as surprises divided by the updates that signals led to expect. With r
the rate of a page's signals, updates come at rate (1 + o) pi r, updates without a signal at alpha = o pi r, and false signals
at nu = (1 - pi) r. Notation: NCIS (Busa-Fekete et al. 2025). The prior of a site's channel is the same channel at other
sites, and the prior of a channel is PRECISION and MISSED. A replay has one channel: a site is shrunk to all sites.

In a live crawl outcomes are forgotten slowly (TRUST.keeps), so that a site that sends false signals loses influence, and
regains it when its signals become true. A channel of a site that is right less often than STRUCK is struck out: its signals
are ignored, except for a share that is followed as if it were trusted (AUDITED), to test whether its signals are true by
now.
"""

from trapline.compiled.jit import shared
from trapline.refresh.core.layout import AUDITED, PolicyView, RefreshState

PRECISION, MISSED = 0.95, 0.02
FIRST, OF_ALL = 4.0, 8.0  # number of crawls that the first prior, and the prior of the parent row, count for
STRUCK = 0.02  # precision below which a channel is struck out


@shared
def believed(hits: float, tries: float, up_hits: float, up_tries: float, first: float) -> float:
    """Return the share hits / tries, shrunk to the share of the parent row, which is shrunk to `first`."""
    of_others = (up_hits + FIRST * first) / (up_tries + FIRST)
    return (hits + OF_ALL * of_others) / (tries + OF_ALL)


@shared
def precision_of(s: PolicyView | RefreshState, x: int) -> float:
    """Return the precision of the signals of a row (a site's channel)."""
    row = s.trust[x]
    up = s.trust[row.parent]
    return min(row.most, believed(row.confirmed, row.prompted, up.confirmed, up.prompted, PRECISION))


@shared
def precision(s: PolicyView, page: int) -> float:
    """Return the precision of the page's signals. Those of an audited page count as those of an unknown channel."""
    return PRECISION if s.page[page].marks & AUDITED else precision_of(s, s.page[page].trust)


@shared
def is_struck_out(s: PolicyView | RefreshState, x: int) -> bool:
    """Return whether the row is struck out, by its own outcomes alone. 25 false signals in a row are enough.

    >>> from types import SimpleNamespace as record
    >>> [is_struck_out(record(trust=[record(confirmed=right, prompted=25.0)]), 0) for right in (0.0, 1.0)]
    [True, False]
    """
    return s.trust[x].confirmed + 0.5 < STRUCK * (s.trust[x].prompted + 1.0)


@shared
def missed_odds(s: PolicyView, page: int) -> float:
    """Return o, the number of unsignalled updates per signalled update."""
    row = s.trust[s.page[page].trust]
    up = s.trust[row.parent]
    return believed(row.surprises, row.expected, up.surprises, up.expected, MISSED)


@shared
def signal_rate(s: PolicyView, page: int, now: float) -> float:
    """Return the page's signals per second. The mean over all pages is a prior that counts for half a signal."""
    watched_s = max(now - s.page[page].joined, 1.0)
    mean_s = len(s.page) / (s.run[0].signals + 1.0) * (max(now, 1.0) if s.page[page].joined > 0 else watched_s)
    return (s.page[page].all_signals + 0.5) / (watched_s + 0.5 * mean_s)


@shared
def kept_share(s: PolicyView, x: int) -> float:
    """Return the factor for the probabilities that this row publishes: points with an update divided by points promised."""
    row = s.trust[x]
    up = s.trust[row.parent]
    return believed(row.kept, row.promised, up.kept, up.promised, PRECISION)


@shared
def unannounced_share(s: PolicyView, page: int) -> float:
    """Return the share of the signals that came without a published point, among pages that publish points."""
    row = s.trust[s.page[page].trust]
    up = s.trust[row.parent]
    return believed(row.signals - row.announced, row.signals, up.signals - up.announced, up.signals, MISSED)
