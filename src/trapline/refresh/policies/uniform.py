"""All pages in turn, whatever is known of them: value = -(last crawl). Cost: O(log pages) a crawl. The baseline of
Cho & Garcia-Molina 2000.

>>> from types import SimpleNamespace as record
>>> longest_ago(record(page=[record(crawled_s=5.0)]), 0, 9.0)
-5.0
"""

from trapline.refresh.layout import View
from trapline.refresh.policy import Policy, rule


@rule
def longest_ago(s: View, page: int, now: float) -> float:
    return -s.page[page].crawled_s


POLICY = Policy("uniform", longest_ago, still=True, hears=False)
