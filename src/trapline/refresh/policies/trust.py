"""How far a page's signals are believed, learned from crawls: their precision and recall, by site, shrunk to all sites. Not a policy.

After exactly one signal a crawl found something new or not: precision pi. Without a signal it found something all the same: the odds
o = (1 - recall) / recall, as surprises over the updates that signals made expect. With r the rate of a page's signals,
updates come at (1 + o) pi r, those that nobody tells at alpha = o pi r, and false signals at nu = (1 - pi) r. Notation:
spec of NCIS (Busa-Fekete et al. 2025). A site that has shown nothing yet is believed like all sites, and all sites at
first like PRECISION and MISSED say.
"""

from trapline.jit import shared
from trapline.refresh.layout import View

PRECISION, MISSED = 0.95, 0.02
FIRST, OF_ALL = 4.0, 8.0  # crawls that these beliefs are worth


@shared
def precision(s: View, page: int) -> float:
    every = s.site[len(s.site) - 1]
    site = s.site[s.page[page].site]
    of_all = (every.confirmed + FIRST * PRECISION) / (every.prompted + FIRST)
    return min(0.9999, (site.confirmed + OF_ALL * of_all) / (site.prompted + OF_ALL))


@shared
def missed_odds(s: View, page: int) -> float:
    every = s.site[len(s.site) - 1]
    site = s.site[s.page[page].site]
    of_all = (every.surprises + FIRST * MISSED) / (every.expected + FIRST)
    return (site.surprises + OF_ALL * of_all) / (site.expected + OF_ALL)


@shared
def signal_rate(s: View, page: int, now: float) -> float:
    """Signals per second; the mean of all pages is worth half a signal."""
    mean = (s.run[0].signals + 1.0) / len(s.page)
    return (s.page[page].all_signals + 0.5) / (1.0 + 0.5 / mean) / max(now, 1.0)


@shared
def kept_share(s: View, page: int) -> float:
    """By what the published probabilities are to be multiplied: points with an update over points promised."""
    every = s.site[len(s.site) - 1]
    site = s.site[s.page[page].site]
    of_all = (every.kept + FIRST * PRECISION) / (every.promised + FIRST)
    return (site.kept + OF_ALL * of_all) / (site.promised + OF_ALL)


@shared
def unannounced_share(s: View, page: int) -> float:
    """Of the signals of pages that publish points: those without a point."""
    every = s.site[len(s.site) - 1]
    site = s.site[s.page[page].site]
    of_all = (every.signals - every.announced + FIRST * MISSED) / (every.signals + FIRST)
    return (site.signals - site.announced + OF_ALL * of_all) / (site.signals + OF_ALL)
