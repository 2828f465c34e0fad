"""Whose turn it is: that of a page never fetched, or of one that the crawl has. Pure: numbers in, numbers out.

By share: of all pages asked for, a share is fetched again, as long as pages of both kinds may be asked for; who cannot use its turn
leaves it to the other; and the same for each site by itself, so that one page that changes all the time does not take every visit of
its site. By price: a page is fetched again before any new one if that is worth the price, and else not at all. In both
cases no more are fetched again than `rate` a second: a bucket of tokens, one a page, and a visit is cut to as many as there are.

Law: in every stretch of t seconds at most rate * t + `burst_of(rate)` pages are asked for again, however often the crawl is stopped and
goes on in it.
"""

import math

import numpy as np

from trapline.frontier.layout import MOST_PER_VISIT, Array, resized

_MOST_CREDIT = 100.0  # pages: what was not wanted for long is not asked for all at once
_MOST_SITE_CREDIT = 10.0  # pages: about a visit
_BURST_S = 1.0  # of the rate that may come together
# A crawl of few sites asks for nothing while they rest, and then for a visit: what the rate left unused in that time, up to a visit.
_REST_S, _VISIT = 15.0, 10.0


def burst_of(rate: float) -> float:
    """Pages that may be asked for at once, if none were for a while.

    >>> burst_of(0.01), burst_of(0.4), burst_of(2.0), burst_of(50.0)
    (1.0, 6.0, 10.0, 50.0)
    """
    return max(1.0, rate * _BURST_S, min(rate * _REST_S, _VISIT))


class Turns:
    def __init__(self, share: float = 0.5, price: float | None = None, rate: float = math.inf) -> None:
        self._share, self._price, self._rate = share, price, rate
        self._credit = 0.0  # pages that may be fetched again by the share, and were not yet
        self._at_site = np.zeros(64)  # the same, by site, as long as pages of both kinds wait there
        self._burst = burst_of(rate)
        self._tokens = self._burst
        self._at: float | None = None  # when the tokens were counted; None: never so far

    def go_on(self) -> None:
        """The crawl was stopped, and nobody knows how much of its burst was left: none, or every start would be worth one."""
        self._tokens = 0.0

    @property
    def least(self) -> float:
        """What a page must be worth to be fetched again."""
        return 0.0 if self._price is None else self._price

    def is_first(self, now: float) -> bool:
        """Whether pages are fetched again before new ones are asked for."""
        return self.may(now) and (self._price is not None or self._credit + self._share >= 1.0)

    def may(self, now: float) -> bool:
        """Whether the rate admits one more."""
        return self.most(now) > 0

    def most(self, now: float) -> int:
        """How many pages the rate admits now."""
        if self._rate == math.inf:
            return MOST_PER_VISIT
        since = now if self._at is None else self._at
        self._at = max(since, now)
        self._tokens = min(self._tokens + self._rate * (self._at - since), self._burst)
        return int(self._tokens + 1e-9)

    def may_at(self, now: float) -> float:
        """The moment from which it does."""
        return now if self.may(now) else now + (1.0 - self._tokens) / self._rate

    def of_sites(self) -> tuple[Array, float]:
        """What each site has of its share (of those beyond the end 0), and what it needs: with less, and as long as new pages wait there,
        none is fetched again."""
        return self._at_site, -math.inf if self._price is not None else 1.0 - self._share - 1e-6

    def at_site(self, site: int, new: int, again: int) -> None:
        """So many pages of a site are asked for, while pages of both kinds wait there."""
        if site >= len(self._at_site):
            self._at_site = resized(self._at_site, 2 * site, len(self._at_site))
        credit = float(self._at_site[site]) + self._share * new - (1.0 - self._share) * again
        self._at_site[site] = max(min(credit, _MOST_SITE_CREDIT), -_MOST_SITE_CREDIT)

    def new(self, pages: int) -> None:
        """So many new pages are asked for."""
        self._credit = min(self._credit + self._share * pages, _MOST_CREDIT)

    def again(self, pages: int) -> None:
        """So many pages are asked for again: no more than `most` said."""
        self._credit = max(self._credit - (1.0 - self._share) * pages, -_MOST_CREDIT)
        if self._rate < math.inf:
            self._tokens -= pages
