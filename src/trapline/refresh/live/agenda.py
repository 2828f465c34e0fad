"""The agenda: it decides whether to fetch new pages next, or to refetch pages. No other module decides between the two.

The frontier has the new pages and says which sites may be visited. The refresher knows the value of refetching a page now.
`Turns` says which of the two goes first. A driver, live or simulated, calls `Agenda.next` in place of `Frontier.next`, and
reports results to both.

State: `under_way` has the pages that are being refetched. `next` adds pages; `came`, `gone` and `over` remove them.
"""

import math

import numpy as np

from trapline.errors import InvariantError
from trapline.frontier import FETCHED, REFUSED, Drained, Frontier, Rescore, Visit, WaitUntil
from trapline.frontier.layout import MOST_PER_VISIT, Array, resized
from trapline.refresh.live.calls import NOTHING
from trapline.refresh.live.refresher import Choice, Refresher

# ---- Turns: whether a new page or a refetch is next. It only computes with numbers, and knows neither frontier nor refresher.
#
# By share: a given share of all requested pages are refetches, as long as pages of both kinds may be requested. A kind that cannot use its
# turn leaves it to the other. The same holds for each site, so that one page that changes all the time does not take every visit of its
# site. By price: a page is refetched, before any new page, if its value is at least the price, and otherwise not at all. In both cases at
# most `rate` pages per second are refetched: a token bucket has one token per page, and a visit is cut to the number of tokens.
#
# Law: in every period of t seconds at most rate * t + `burst_of(rate)` pages are refetched, however often the crawl is stopped and resumed
# in that period.

_MOST_CREDIT = 100.0  # pages; limits the refetches that follow one another after a long time without any
_MOST_SITE_CREDIT = 10.0  # pages; about a visit
_BURST_S = 1.0  # seconds of the rate that may come together
# A crawl of few sites requests nothing during their delays, and then a whole visit. So the bucket keeps what the rate left unused in a
# delay of this length, up to a visit of this many pages.
_DELAY_S, _VISIT = 15.0, 10.0


def burst_of(rate: float) -> float:
    """Return how many pages may be refetched at once, if none were for a while.

    >>> burst_of(0.01), burst_of(0.4), burst_of(2.0), burst_of(50.0)
    (1.0, 6.0, 10.0, 50.0)
    """
    return max(1.0, rate * _BURST_S, min(rate * _DELAY_S, _VISIT))


class Turns:
    """The turns of new pages and refetches, by a share or by a price, and the rate limit of refetches."""

    def __init__(
        self, share: float = 0.5, price: float | None = None, rate: float = math.inf, least: float = 0.0
    ) -> None:
        """`least`: the least value of a page that is refetched, without a price."""
        self._share, self._price, self._rate, self._least = share, price, rate, least
        self._credit = 0.0  # pages that may be refetched by the share, and were not yet
        self._at_site = np.zeros(64)  # the same by site, counted while pages of both kinds wait there
        self._burst = burst_of(rate)
        self._tokens = self._burst
        self._at: float | None = None  # when the tokens were last counted; None: never

    def go_on(self) -> None:
        """Empty the bucket when a crawl resumes: its old content is unknown, and a full bucket would give every start a burst."""
        self._tokens = 0.0

    @property
    def least(self) -> float:
        """Least value of a page that is refetched."""
        return self._least if self._price is None else self._price

    def is_first(self, now: float) -> bool:
        """Return whether refetches come before new pages now."""
        return self.may(now) and (self._price is not None or self._credit + self._share >= 1.0)

    def may(self, now: float) -> bool:
        """Return whether the rate admits one more refetch now."""
        return self.most(now) > 0

    def most(self, now: float) -> int:
        """Return how many refetches the rate admits now."""
        if self._rate == math.inf:
            return MOST_PER_VISIT
        since = now if self._at is None else self._at
        self._at = max(since, now)
        self._tokens = min(self._tokens + self._rate * (self._at - since), self._burst)
        return int(self._tokens + 1e-9)

    def may_at(self, now: float) -> float:
        """Return the time from which the rate admits a refetch."""
        return now if self.may(now) else now + (1.0 - self._tokens) / self._rate

    def of_sites(self) -> tuple[Array, float]:
        """Return the credit of each site (0 for sites beyond the end of the array), and the credit that a site needs.

        A site with less credit is not refetched as long as new pages wait there.
        """
        return self._at_site, -math.inf if self._price is not None else 1.0 - self._share - 1e-6

    def at_site(self, site: int, new: int, refetches: int) -> None:
        """Count requested pages of a site at which pages of both kinds wait: `new` pages and `refetches` refetched pages."""
        if site >= len(self._at_site):
            self._at_site = resized(self._at_site, 2 * site, len(self._at_site))
        credit = float(self._at_site[site]) + self._share * new - (1.0 - self._share) * refetches
        self._at_site[site] = max(min(credit, _MOST_SITE_CREDIT), -_MOST_SITE_CREDIT)

    def new(self, pages: int) -> None:
        """Count requested new pages."""
        self._credit = min(self._credit + self._share * pages, _MOST_CREDIT)

    def count_refetches(self, pages: int) -> None:
        """Count refetches; there must be no more than `most` allowed."""
        self._credit = max(self._credit - (1.0 - self._share) * pages, -_MOST_CREDIT)
        if self._rate < math.inf:
            self._tokens -= pages


# ---- agenda

# Least wait after no page had the value that its price requires: values grow slowly, so there is no use in asking again at once.
_LOOK_AGAIN_S = 0.25


class Agenda:
    """The choice between new pages of a frontier and refetches of a refresher."""

    def __init__(self, frontier: Frontier, refresher: Refresher, turns: Turns, continuous: bool = False) -> None:
        """`continuous`: the crawl does not end when no new page is left."""
        self.refresher, self._frontier = refresher, frontier
        self._turns, self._continuous = turns, continuous
        self.under_way: set[int] = set()
        if refresher.pages > 0:  # the crawl resumes: pages were fetched before
            turns.go_on()

    def next(self, now: float) -> Visit | WaitUntil | Rescore | Drained:
        """Answer like `Frontier.next`, but the visit may be a revisit."""
        turns = self._turns
        tried = turns.is_first(now) and self.goes_on
        visit = self._revisit(now, *turns.of_sites()) if tried else None
        if visit is not None:
            return visit
        answer = self._frontier.next(now)
        if isinstance(answer, Visit):
            turns.new(len(answer.pages))
            if self.refresher.has_waiting(answer.site):
                turns.at_site(answer.site, len(answer.pages), 0)
            return answer
        if isinstance(answer, Rescore) or not self.goes_on:
            return answer
        return (self._revisit(now) if turns.may(now) and not tried else None) or self._wait(answer, now)

    @property
    def goes_on(self) -> bool:
        """Whether pages are refetched at all. A crawl that is not continuous ends with its new pages."""
        return self._continuous or self._frontier.has_new

    def _revisit(self, now: float, credit: Array = NOTHING, needs: float = -math.inf) -> Visit | None:
        """Begin a revisit to the pages that the refresher chooses, if it chooses any."""
        choice = self.refresher.choose(self._frontier, now, self._turns.least, credit, needs)
        return None if choice is None else self._visit(choice, now)

    def _has_new(self, site: int) -> bool:
        """Return whether new pages wait at the site."""
        return self._frontier.has_waiting(site)

    def _visit(self, choice: Choice, now: float) -> Visit:
        visit = self._frontier.revisit(choice.site, choice.pages[: self._turns.most(now)], now)
        if not isinstance(visit, Visit):
            raise InvariantError(
                f"site {choice.site} was chosen for a revisit, but it cannot be visited before {visit.time}"
            )
        for page in choice.pages[len(visit.pages) :]:
            self.refresher.returned(page, now)
        self.under_way.update(visit.pages)
        self._turns.count_refetches(len(visit.pages))
        if self._has_new(visit.site):
            self._turns.at_site(visit.site, 0, len(visit.pages))
        return visit

    def _wait(self, answer: WaitUntil | Drained, now: float) -> WaitUntil:
        moment = max(self.refresher.next_moment(), self._turns.may_at(now), now + _LOOK_AGAIN_S)
        return WaitUntil(min(moment, answer.time) if isinstance(answer, WaitUntil) else moment)

    def came(
        self,
        page: int,
        site: int,
        result: int,
        now: float,
        changed: bool | None,
        quality: float = 1.0,
        age_s: float = math.inf,
    ) -> None:
        """Report the result of a page to the refresher, after it was reported to the frontier.

        `changed`: whether a refetched page differs from the copy; None: unknown, which counts as no change. `quality`: the quality
        of a new page, which is used as long as no page was accessed. `age_s`: time since the page last changed, as its server
        states; infinity: the server does not state it.
        """
        refresher, is_refetch = self.refresher, page in self.under_way
        self.under_way.discard(page)
        if result == FETCHED and is_refetch:
            refresher.crawled(page, now, bool(changed), age_s)
        elif result == FETCHED:
            refresher.join(page, site, now, quality)
        elif is_refetch and result == REFUSED:
            refresher.leave(page, now)
        elif is_refetch:
            refresher.failed(page, now)

    def gone(self, page: int, now: float) -> None:
        """Report that a refetched page is not available. The frontier gets no result for it, and our copy remains."""
        self.under_way.discard(page)
        self.refresher.gone(page, now)

    def over(self, visit: Visit, now: float) -> None:
        """Report the end of a visit, after the frontier knows it. Pages not requested return to the queue; the site is checked again."""
        for page in self.under_way.intersection(visit.pages):
            self.under_way.discard(page)
            self.refresher.returned(page, now)
        self.refresher.visited(visit.site)
