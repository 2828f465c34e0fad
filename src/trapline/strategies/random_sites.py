"""Visits sites in random order: a site with many or good pages is no more likely to be next than another site.

Site rank: u(seed, -1 - n), a hash that is uniform in [0, 1); n = the serial of the site's best page. The rank therefore
changes when the best page changes, and the negative number keeps it independent of the ranks of pages. Page rank: random.
Cost: O(log sites) per change of a site's best page.
Source: the variant of the baseline in the spec, section 3.

>>> from types import SimpleNamespace as record
>>> drawn(record(run=[record(seed=7)]), None, record(best_serial=3)) == uniform(7, -4)
True
"""

from trapline.frontier.layout import RankView, Record
from trapline.frontier.ranking import site_rank
from trapline.rng import uniform
from trapline.strategies import SiteRank, Strategy, random_pages


@site_rank
def drawn(s: RankView, site: Record, queue: Record) -> float:
    return uniform(s.run[0].seed, -1 - int(queue.best_serial))


SITE = SiteRank("random", drawn, reads=("best",))
STRATEGY = Strategy("random-sites", random_pages.PAGE, SITE)
