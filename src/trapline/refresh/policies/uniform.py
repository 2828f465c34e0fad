"""Crawls all pages in turn, regardless of the evidence: value = -(last crawl). Cost: O(log pages) per crawl.

Source: the baseline of Cho & Garcia-Molina 2000.

>>> from types import SimpleNamespace as record
>>> longest_ago(record(page=[record(crawled_s=5.0)]), 0, 9.0)
-5.0
"""

from trapline.refresh.core.layout import PolicyView
from trapline.refresh.policy import Policy, rule


@rule
def longest_ago(s: PolicyView, page: int, now: float) -> float:
    return -s.page[page].crawled_s


POLICY = Policy("uniform", longest_ago, still=True, uses_signals=False)
