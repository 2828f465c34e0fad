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
def believed(hits: float, tries: float, all_hits: float, all_tries: float, first: float) -> float:
    """A site's share, shrunk to that of all sites, and that to what is believed at first."""
    of_all = (all_hits + FIRST * first) / (all_tries + FIRST)
    return (hits + OF_ALL * of_all) / (tries + OF_ALL)


@shared
def precision(s: View, page: int) -> float:
    every, site = s.site[len(s.site) - 1], s.site[s.page[page].site]
    return min(0.9999, believed(site.confirmed, site.prompted, every.confirmed, every.prompted, PRECISION))


@shared
def missed_odds(s: View, page: int) -> float:
    every, site = s.site[len(s.site) - 1], s.site[s.page[page].site]
    return believed(site.surprises, site.expected, every.surprises, every.expected, MISSED)


@shared
def signal_rate(s: View, page: int, now: float) -> float:
    """Signals per second; the mean of all pages is worth half a signal."""
    mean = (s.run[0].signals + 1.0) / len(s.page)
    return (s.page[page].all_signals + 0.5) / (1.0 + 0.5 / mean) / max(now, 1.0)


@shared
def kept_share(s: View, page: int) -> float:
    """By what the published probabilities are to be multiplied: points with an update over points promised."""
    every, site = s.site[len(s.site) - 1], s.site[s.page[page].site]
    return believed(site.kept, site.promised, every.kept, every.promised, PRECISION)


@shared
def unannounced_share(s: View, page: int) -> float:
    """Of the signals of pages that publish points: those without a point."""
    every, site = s.site[len(s.site) - 1], s.site[s.page[page].site]
    return believed(site.signals - site.announced, site.signals, every.signals - every.announced, every.signals, MISSED)
