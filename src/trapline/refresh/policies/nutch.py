"""Adaptive intervals: a page's interval shrinks when a crawl finds something new and grows otherwise. The most overdue page
is crawled first.

    interval *= 1 - decrease if there was something new, else 1 + increase;  value = -(last crawl + interval)

The interval stays between 60 s and a year. Cost: O(log pages) per crawl.
Source: Apache Nutch, AdaptiveFetchSchedule, with the rates of its configuration file.
Differs from Nutch: the first interval is the time in which all pages are crawled once, not 30 days; there is no "sync
delta"; a slot for which no page is due takes the page that will be due next.
"""

from trapline.refresh.core.layout import PolicyView
from trapline.refresh.policy import Policy, rule

INTERVAL = 0
INCREASE, DECREASE = range(2)
LEAST_S, MOST_S = 60.0, 365.0 * 86_400.0


@rule
def overdue(s: PolicyView, page: int, now: float) -> float:
    """Return the value: minus the time at which the page is due."""
    interval_s = s.columns[page, INTERVAL]
    if interval_s == 0.0:
        interval_s = len(s.page) / s.run[0].slots_per_s
    return -(s.page[page].crawled_s + interval_s)


@rule
def on_crawl(s: PolicyView, page: int, now: float) -> float:
    """Adapt the interval to the result of the crawl."""
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
    uses_signals=False,
)
