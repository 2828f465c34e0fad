"""What to fetch next, of all there is: a new page, or one that the crawl has. The one place that decides between the two.

The frontier has the new pages and says who may be visited, the refresher knows what a page that was fetched is worth now, `Turns`
which of the two goes first. A driver, live or simulated, asks here instead of asking the frontier, and tells both what came of it.

Who owns what: `under_way` has the pages that are being fetched again. Who fills it: `next`. Who empties it: `came`, `gone` and
`over`.
"""

import math

from trapline.errors import InvariantError
from trapline.frontier import FETCHED, REFUSED, Drained, Frontier, Rescore, Visit, WaitUntil
from trapline.frontier.layout import FRONT, Array
from trapline.refresh.refresh_log import NOTHING
from trapline.refresh.refresher import Choice, Refresher
from trapline.refresh.turns import Turns

# Values grow slowly: whoever found nothing worth its price does not ask again at once.
_LOOK_AGAIN_S = 0.25


class Agenda:
    def __init__(self, frontier: Frontier, refresher: Refresher, turns: Turns, continuous: bool = False) -> None:
        """`continuous`: it does not end when nothing new is left."""
        self.refresher, self._frontier = refresher, frontier
        self._turns, self._continuous = turns, continuous
        self.under_way: set[int] = set()
        if refresher.pages > 0:  # fetched before this began
            turns.go_on()

    def next(self, now: float) -> Visit | WaitUntil | Rescore | Drained:
        """As the frontier answers; but the visit may be one to pages that the crawl has."""
        turns = self._turns
        asked = turns.is_first(now) and self.goes_on
        visit = self._revisit(now, *turns.of_sites()) if asked else None
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
        return (self._revisit(now) if turns.may(now) and not asked else None) or self._wait(answer, now)

    @property
    def goes_on(self) -> bool:
        """Whether pages are fetched again at all: a crawl that is not continuous ends with its new pages."""
        return self._continuous or self._frontier.has_new

    def _revisit(self, now: float, credit: Array = NOTHING, needs: float = -math.inf) -> Visit | None:
        choice = self.refresher.choose(self._frontier, now, self._turns.least, credit, needs)
        return None if choice is None else self._visit(choice, now)

    def _has_new(self, site: int) -> bool:
        """Whether the frontier would fetch new pages there."""
        return bool(self._frontier.state.queue["planned"][site, FRONT] > 0)

    def _visit(self, choice: Choice, now: float) -> Visit:
        visit = self._frontier.revisit(choice.site, choice.pages[: self._turns.most(now)], now)
        if not isinstance(visit, Visit):
            raise InvariantError(f"site {choice.site} was chosen, and cannot be visited before {visit.time}")
        for page in choice.pages[len(visit.pages) :]:
            self.refresher.returned(page, now)
        self.under_way.update(visit.pages)
        self._turns.again(len(visit.pages))
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
        worth: float = 1.0,
        age_s: float = math.inf,
    ) -> None:
        """What the frontier was told of a page, once it was. `changed`: of a page fetched again, whether it differs from the copy; None:
        nobody knows, which counts as no change. `worth`: of a new one, for as long as nobody accesses any. `age_s`: since it last changed,
        as its server says; infinity: it does not."""
        refresher, again = self.refresher, page in self.under_way
        self.under_way.discard(page)
        if result == FETCHED and again:
            refresher.crawled(page, now, bool(changed), age_s)
        elif result == FETCHED:
            refresher.join(page, site, now, worth)
        elif again and result == REFUSED:
            refresher.leave(page, now)
        elif again:
            refresher.failed(page, now)

    def gone(self, page: int, now: float) -> None:
        """A page that was asked for again is not to be had, and the frontier was not told: our copy stands."""
        self.under_way.discard(page)
        self.refresher.gone(page, now)

    def over(self, visit: Visit, now: float) -> None:
        """A visit has ended, the frontier knows: what it did not ask for is as it was, and its site may be open again."""
        for page in self.under_way.intersection(visit.pages):
            self.under_way.discard(page)
            self.refresher.returned(page, now)
        self.refresher.visited(visit.site)
