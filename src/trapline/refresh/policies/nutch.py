"""Intervals that shrink when a crawl finds something new and grow when not; the page most overdue first.

    interval *= 1 - decrease if there was something new, else 1 + increase;  value = -(last crawl + interval)

within 60 s and a year. Cost: O(log pages) a crawl. Source: Apache Nutch, AdaptiveFetchSchedule, with the rates of its configuration file.
Differs from it: the first interval is that of all pages in turn, not 30 days; without its "sync delta"; a slot for which no
page is due takes the next one that will be.
"""

from trapline.refresh.layout import View
from trapline.refresh.policy import Policy, rule

INTERVAL = 0
INCREASE, DECREASE = range(2)
LEAST_S, MOST_S = 60.0, 365.0 * 86_400.0


@rule
def overdue(s: View, page: int, now: float) -> float:
    interval_s = s.columns[page, INTERVAL]
    if interval_s == 0.0:
        interval_s = len(s.page) / s.run[0].slots_per_s
    return -(s.page[page].crawled_s + interval_s)


@rule
def on_crawl(s: View, page: int, now: float) -> float:
    interval_s = s.columns[page, INTERVAL]
    if interval_s == 0.0:
        interval_s = len(s.page) / s.run[0].slots_per_s
    factor = 1.0 - s.option[DECREASE] if s.run[0].changed else 1.0 + s.option[INCREASE]
    s.columns[page, INTERVAL] = min(MOST_S, max(LEAST_S, interval_s * factor))
    return 0.0


POLICY = Policy(
    "nutch",
    overdue,
    still=True,
    on_crawl=on_crawl,
    columns=("interval_s",),
    options={"increase": 0.4, "decrease": 0.2},
    hears=False,
)
