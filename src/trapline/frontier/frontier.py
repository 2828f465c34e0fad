"""The public interface of the frontier: it checks arguments, calls the compiled kernels, and returns their answers.

It knows no clocks, sockets, URLs or files (snapshot.py writes the state, journal.py the log of calls). Laws: docs/frontier.md.
"""

import math
from collections.abc import Sequence

import numpy as np

from trapline.errors import ConfigError, InvariantError
from trapline.frontier import changes
from trapline.frontier.answers import FAILED, FETCHED, REFUSED, Drained, Outcome, Rescore, Visit, WaitUntil
from trapline.frontier.changes import StrategyChange
from trapline.frontier.core import arrivals, kernels, page_quality, revisits
from trapline.frontier.core.arrivals import Arrivals
from trapline.frontier.core.core import MOST_ID, Core
from trapline.frontier.explain import PageExplanation, SiteExplanation, explain_page, explain_site
from trapline.frontier.journal import NOT_GIVEN, Call
from trapline.frontier.layout import (
    AS_RULES,
    BY_ORDER,
    DRAINED,
    ENDED,
    GONE,
    LEASED,
    MOST_PER_VISIT,
    QUALITY_UNKNOWN,
    RANK_LIMIT,
    RESCORE,
    WAIT,
    Array,
)
from trapline.frontier.rules import MOST_SECONDS, Rules
from trapline.frontier.transfer import SiteExport, export_site, fetched_elsewhere, gone_elsewhere, import_site

Answer = Visit | WaitUntil | Rescore | Drained
_INT32 = np.dtype(np.int32)
_NO_LINKS = np.zeros(0, _INT32)
_RESULTS = (FETCHED, FAILED, REFUSED)
# Integers, because reading a member of an enum takes as long as a kernel
_NEXT, _REPORT, _FINISH = int(Call.NEXT), int(Call.REPORT), int(Call.FINISH)
_INFINITY = math.inf


def _ids(values: Sequence[int] | Array) -> Array:
    """Return the ids as the kernels take them (a contiguous int32 array). Copies them only if necessary."""
    if type(values) is np.ndarray and values.dtype == _INT32 and values.ndim == 1 and values.flags.carray:
        return values
    given = np.asarray(values)
    if given.size == 0:
        return _NO_LINKS
    if given.ndim != 1 or given.dtype.kind not in "iub":
        raise InvariantError(f"ids of type {given.dtype} and shape {given.shape}; give integers in one dimension")
    if given.min() < -MOST_ID or given.max() > MOST_ID:
        raise InvariantError(f"an id is too large; give ids in 0..{MOST_ID}")
    return given.astype(np.int32)


class Frontier(Core):
    """The discovered pages that are not fetched yet, in two levels (sites, and pages of a site), and when each site may be visited."""

    # ---- pages, sites, inputs

    def add_sites(self, count: int, now: float, groups: Sequence[int] | Array | None = None) -> int:
        """Register `count` sites and return the id of the first. `groups`: the group of each site; None: no site is resolved yet."""
        first, run = self.sites, self.state.run[0]
        chosen = np.full(count, -1, np.int32) if groups is None else _ids(groups)
        if len(chosen) != count or (count and chosen.min() < -1):
            least = chosen.min(initial=0)
            raise InvariantError(
                f"add_sites: {len(chosen)} groups for {count} sites, the least is {least}; give one per site, -1 or more"
            )
        self.check_group(int(chosen.max(initial=-1)), first + count)
        run.now = max(float(run.now), _moment(now))
        self.note(Call.ADD_SITES, chosen, count, now)
        self.make_room(sites=first + count, groups=int(chosen.max(initial=-1)) + 1)
        new = self.state.site[first : first + count]
        new["delay_s"], new["ready_at"] = math.nan, -math.inf
        new["group"] = chosen
        for name in ("visit", "budget", "per_connection"):
            new[name] = -1
        new["requests"] = self.rules.first_requests
        queues = self.state.queue[first : first + count]
        queues["log2"] = queues["next_log2"] = queues["age_log2"] = -1
        run.sites = first + count
        self._set_first_limits(first, count)
        return first

    def _set_first_limits(self, first: int, count: int) -> None:
        rules = self.rules
        limit = min(rules.first_requests, MOST_PER_VISIT, rules.per_connection or MOST_PER_VISIT)
        limit = min(limit, rules.pages_per_site or limit)
        self.state.queue[first : first + count]["limit"] = limit

    def known_pages(self, site: int) -> int:
        """Return how many pages of the site were discovered."""
        return int(self.state.site[site].known)

    def add_pages(self, sites: Sequence[int] | Array, dynamic: Sequence[bool] | Array | None = None) -> int:
        """Register one page per entry of `sites`, which is the site of the page, and return the id of the first page.

        `dynamic`: whether each page is dynamic (it has a depth limit of its own). The pages are UNKNOWN until they are discovered.
        """
        first, owners = self.pages, _ids(sites)
        count = len(owners)
        given = owners if dynamic is None else np.concatenate((owners, _ids(dynamic)))
        marked = len(given) - count
        if dynamic is not None and marked != count:
            raise InvariantError(f"add_pages: {marked} dynamic marks for {count} pages; give one mark per page")
        if first + count > len(self.state.page):
            self.make_room(pages=first + count)
        if not self.run_kernel(kernels.register_pages, given, count, marked):
            raise InvariantError(f"add_pages: a site is not registered; there are sites 0..{self.sites - 1}")
        self.note(Call.ADD_PAGES, given, len(given), count)
        return first

    def set_column(self, name: str, values: Sequence[float] | Array, first: int | None = None) -> None:
        """Set one input of the page rank for pages first, first + 1, ..., or for every registered page if `first` is None."""
        if name not in self.strategy.page.inputs:
            raise ConfigError(f"page rank {self.strategy.page.name!r} takes no input {name!r}")
        column = self.strategy.page.columns.index(name)
        given = np.array(values, np.float64, ndmin=1)
        if given.ndim != 1 or (first is None and len(given) != self.pages):
            raise InvariantError(
                f"set_column: values of shape {given.shape} for {self.pages} pages; to set fewer, give the first page too"
            )
        first = first or 0
        if first < 0 or first + len(given) > self.pages:
            raise InvariantError(f"set_column: {len(given)} values from page {first} on; there are {self.pages} pages")
        self.note(Call.SET_COLUMN, given, len(given), column, first)
        self.state.columns[first : first + len(given), column] = given

    # ---- the three calls of a crawl

    def discover(self, pages: Sequence[int] | Array, now: float) -> None:
        """Discover pages that no fetched page links to: seeds, sitemap entries, pings."""
        given = _ids(pages)
        self.run_kernel(kernels.discover_pages, given, len(given), _moment(now))
        self.note(Call.DISCOVER, given, len(given), now)

    def receive(self, arrived: Arrivals, now: float) -> None:
        """Process links to pages of this partition from pages that another partition fetched."""
        arrivals.receive(self, arrived, _moment(now))

    def next(self, now: float) -> Answer:
        """Return what to do at `now`: make a visit, wait, compute new scores (`rescore`), or stop because the frontier is drained."""
        n = self.run_kernel(kernels.next_visit, _moment(now), self.out, self.moment)
        moment = self.moment_view[0]
        if n >= 0:
            numbers = self.out_view[: n + 2]
            visit_id, site, *pages = numbers.tolist()
            answer: Answer = Visit(visit_id, site, pages, moment)
        elif n == RESCORE:
            numbers = self.out_view[:1]
            answer = Rescore(numbers[0])
        else:
            numbers = self.out_view[:0]
            answer = Drained() if n == DRAINED else WaitUntil(moment)
        if self.journal is not None:
            self.journal.write(_NEXT, numbers, len(numbers), n, now, moment)
        return answer

    def report(
        self,
        visit: Visit,
        page: int,
        result: int,
        now: float,
        links: Sequence[int] | Array = _NO_LINKS,
        response_s: float = math.nan,
    ) -> bool:
        """Report the result of one page of a visit, with the pages that its links lead to. Return False if the visit has already ended."""
        if result not in _RESULTS:
            raise InvariantError(f"result {result} of page {page} is unknown; give FETCHED, FAILED or REFUSED")
        _check_measured(response_s)
        found, visit_id = _ids(links), visit.id
        n = len(found)
        answer = self.run_kernel(kernels.report_page, visit_id, page, result, _moment(now), response_s, found, n)
        if self.journal is not None:
            self.journal.write(_REPORT, found, n, visit_id, page, result, now, response_s)
        return answer != ENDED

    def finish(self, visit: Visit, outcome: Outcome, now: float) -> bool:
        """Report the results of the outcome and end the visit. Return False if the visit has already ended."""
        _check_measured(outcome.connection_s)
        for result in outcome.results:
            if not self.report(visit, result.page, result.result, now, result.links, result.response_s):
                return False
        answered = (visit.id, _requests(outcome), int(outcome.failed))
        numbers = (*answered, _moment(now), outcome.connection_s, outcome.not_before)
        answer = self.run_kernel(kernels.finish_visit, *numbers)
        if self.journal is not None:
            self.journal.write(_FINISH, None, 0, *numbers)
        return answer != ENDED

    def revisit(self, site: int, pages: Sequence[int] | Array, now: float) -> Visit | WaitUntil:
        """Begin a visit that fetches again the first of these fetched pages of the site, as many as one visit may take.

        Return WaitUntil if the site may not be visited at `now`. With no pages, the visit is for an out-of-band fetch: the
        driver requests something that is not a page of the frontier.
        """
        self.check_site(site)
        given = _ids(pages)
        count = len(given)
        n = self.run_kernel(revisits.revisit_pages, site, given, count, _moment(now), self.out, self.moment)
        visit_id, moment = self.out_view[0], self.moment_view[0]
        self.note(Call.REVISIT, given, count, site, n, visit_id, now, moment)
        return WaitUntil(moment) if n == WAIT else Visit(visit_id, site, given[:n].tolist(), moment)

    def visit(self, site: int, now: float) -> Visit | WaitUntil:
        """Begin a visit to the waiting pages of this site that are next. Return WaitUntil if the site may not be visited at `now`.

        If no page of the site waits, the visit has no pages.
        """
        self.check_site(site)
        n = self.run_kernel(revisits.visit_site, site, _moment(now), self.out, self.moment)
        moment = self.moment_view[0]
        numbers = self.out_view[: n + 2 if n >= 0 else 0]
        self.note(Call.VISIT, numbers, len(numbers), site, n, now, moment)
        return WaitUntil(moment) if n == WAIT else Visit(numbers[0], site, numbers[2:].tolist(), moment)

    def rescore(self, scores: Sequence[float] | Array, now: float) -> None:
        """Set new scores, one for every registered page, for a page rank that uses scores."""
        name, given = self.strategy.page.scores, np.ascontiguousarray(scores, np.float64)
        if not name:
            raise ConfigError(f"page rank {self.strategy.page.name!r} uses no scores")
        if given.shape != (self.pages,) or not np.isfinite(given).all():
            raise ConfigError(
                f"rescore: {given.shape} numbers for {self.pages} pages; give one finite number for each page"
            )
        self.note(Call.RESCORE, given, len(given), _moment(now))
        self.state.columns[: self.pages, self.strategy.page.columns.index(name)] = given
        self.run_kernel(kernels.rescore_pages, now)

    def set_quality(self, page: int, quality: float, links: Sequence[int] | Array, now: float) -> bool:
        """Set the quality of a fetched page, which was not known when the page was reported, and rank again the pages it links to.

        `links`: as they were reported. The page rank must have the input `fetched_quality`. Return False, and change nothing,
        if the quality of the page is known already, or if another partition has the page.
        """
        name = "fetched_quality"
        if name not in self.strategy.page.inputs:
            raise ConfigError(f"page rank {self.strategy.page.name!r} takes no input {name!r}")
        if not 0.0 <= quality < RANK_LIMIT:
            raise InvariantError(f"the quality {quality} of page {page} is not a number from 0 to 2^42")
        column, state = self.strategy.page.columns.index(name), self.page_state(page)
        if state <= LEASED:
            raise InvariantError(f"page {page} is not fetched; report it before its quality")
        if state == GONE or self.page_value(page, column) != QUALITY_UNKNOWN:
            return False
        found = _ids(links)
        n = len(found)
        self.run_kernel(page_quality.set_page_quality, page, column, quality, found, n, _moment(now))
        self.note(Call.SET_QUALITY, found, n, page, quality, now)
        return True

    # ---- sites

    def resolve(self, site: int, group: int, now: float) -> None:
        """Set the group (IP address) of a site."""
        self.check_site(site, not_visited=True)
        if group < 0:
            raise InvariantError(f"group {group} of site {site} is negative; give a group of at least 0")
        self.check_group(group, self.sites)
        self.note(Call.RESOLVE, None, 0, site, group, _moment(now))
        self.make_room(groups=group + 1)
        self.run_kernel(kernels.change_site, site, group, _moment(now))

    def set_site(
        self,
        site: int,
        now: float,
        *,
        delay_s: float | None = None,
        per_connection: int | None = None,
        pages: int | None = None,
        not_before: float | None = None,
    ) -> None:
        """Set the rules of one site: its own delay w, pages per connection k and page budget, and a time before which it is not visited.

        None leaves a rule as it is. AS_RULES removes the site's own value, so that the common rules apply.
        """
        self.check_site(site)
        for label, value, most in (
            ("delay", delay_s, MOST_SECONDS),
            ("k", per_connection, MOST_ID),
            ("budget", pages, MOST_ID),
        ):
            if value is not None and value != AS_RULES and not 0 <= value <= most:
                raise ConfigError(f"site {site}: its {label} is {value}; it must be in 0..{most:g}")
        if not_before is not None and not_before != not_before:
            raise ConfigError(f"site {site}: not_before is NaN; it must be a time in seconds")
        record = self.state.site[site]
        _moment(now)
        own_k, budget = (NOT_GIVEN if number is None else number for number in (per_connection, pages))
        times = (math.nan if moment is None else moment for moment in (delay_s, not_before))
        self.note(Call.SET_SITE, None, 0, site, own_k, budget, now, *times)
        if delay_s is not None:
            record.delay_s = math.nan if delay_s == AS_RULES else delay_s
        if per_connection is not None:
            record.per_connection = per_connection
        if pages is not None:
            record.budget = pages
        if not_before is not None and not_before > record.ready_at:
            record.ready_at, record.delay_rule = not_before, BY_ORDER
        self.run_kernel(kernels.change_site, site, int(record.group), _moment(now))

    def hold_all(self, now: float) -> None:
        """Delay every site and every address by its full delay from `now`; keep longer delays. For a crawl that resumes after a stop."""
        self.run_kernel(kernels.hold_sites, _moment(now))
        self.note(Call.HOLD_ALL, None, 0, now)

    def export_site(self, site: int, now: float) -> SiteExport:
        """Remove a site, to be imported into another partition. Its waiting pages become GONE here, and its budget becomes 0."""
        return export_site(self, site, now)

    def import_site(self, export: SiteExport, site: int, pages: Sequence[int] | Array, now: float) -> None:
        """Import a site from another partition as a new site here. `pages`: the local ids of its waiting pages.

        An export may come in parts (`SiteExport.parts`); the site must be new only for the first part.
        """
        import_site(self, export, site, pages, now)

    def gone_elsewhere(self, pages: Sequence[int] | Array, now: float) -> None:
        """Mark registered, undiscovered pages of an imported site as GONE: another partition fetched them, or was refused."""
        gone_elsewhere(self, pages, _moment(now))

    def fetched_elsewhere(self, pages: Sequence[int] | Array, depths: Sequence[int] | Array, now: float) -> None:
        """Mark pages of an imported site as FETCHED, each with its depth: another partition fetched them. They can be revisited."""
        fetched_elsewhere(self, pages, depths, _moment(now))

    # ---- changes between two runs

    def change_rules(self, rules: Rules, now: float) -> None:
        """Replace the rules, and delay every site and every address by its new delay from `now` on. No visit may be under way."""
        changes.change_rules(self, rules, _moment(now))

    def change_strategy(self, change: StrategyChange, number: int, fetches: int, now: float) -> None:
        """Replace the strategy and rank all waiting pages anew. No visit may be under way.

        `number`, `fetches`: for the log, which has neither strategies nor links: by these, `replay` asks for the same change again.
        """
        changes.change_strategy(self, change, number, fetches, _moment(now))

    def withdraw(self, pages: Sequence[int] | Array, now: float) -> None:
        """Remove waiting pages, which are GONE then: the scope of the crawl no longer admits them."""
        changes.withdraw(self, pages, _moment(now))

    def readmit(self, pages: Sequence[int] | Array, now: float) -> None:
        """Make GONE pages UNKNOWN again: the scope of the crawl admits them again."""
        changes.readmit(self, pages, _moment(now))

    # ---- inspection

    def open_at(self, site: int) -> float:
        """Return the time from which the site may be visited, past or future. Infinity: only another call can change that."""
        self.check_site(site)
        return revisits.site_open_at(self.handle, site)

    def connection_limit(self, site: int) -> int:
        """Return the largest number of pages that one visit to the site may request."""
        self.check_site(site)
        return revisits.site_connection_limit(self.handle, site)

    def budget_left(self, site: int) -> int:
        """Return how many pages may still be fetched from the site; 0 or less: none."""
        self.check_site(site)
        return revisits.site_budget_left(self.handle, site)

    def explain_site(self, site: int, now: float) -> SiteExplanation:
        """Return the site's rank, the sites before it, until when it must wait, and by which rule."""
        return explain_site(self, site, now)

    def explain_page(self, page: int, now: float) -> PageExplanation:
        """Return the page's rank, the number of pages before it in its site, and the explanation of its site."""
        return explain_page(self, page, now)


def _requests(outcome: Outcome) -> int:
    """Return the number of requests per connection that the server announced or was seen to allow; 0: it showed neither."""
    if not (outcome.allowed or outcome.closed):
        return 0
    requests = outcome.allowed or max(1, outcome.served)
    return min(max(requests, 0), MOST_PER_VISIT)  # a server may announce any number


def _moment(now: float) -> float:
    """Return `now`, or raise InvariantError if it is not finite."""
    if not -_INFINITY < now < _INFINITY:
        raise InvariantError(f"now is {now}; it must be a finite time in seconds")
    return now


def _check_measured(seconds: float) -> None:
    if seconds < 0 or seconds == _INFINITY:
        raise InvariantError(
            f"a measured time is {seconds} s; it must be finite and at least 0, or NaN if nothing was measured"
        )
