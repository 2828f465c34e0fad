"""How much a visit may take, and how long a site then rests: the rules, per site."""

from trapline.frontier.layout import BACKLOG, FRONT, MOST_PER_VISIT, Record, State, StateType
from trapline.jit import f8, helper, i8, shared

NO_LIMIT = 1 << 31


@helper(i8(StateType, i8, i8))
def budget_left(s: State, x: int, level: int) -> int:
    """Pages that the site may still give; of a backlog, after the pages already chosen."""
    site = s.site[x]
    budget = site.budget if site.budget >= 0 else s.run[0].pages_per_site
    if site.budget < 0 and budget == 0:
        return NO_LIMIT
    left = budget - site.taken
    return left - s.queue[x, FRONT].waiting if level == BACKLOG else left


@helper(i8(StateType, i8))
def connection_limit(s: State, x: int) -> int:
    """The most pages that one connection to the site may ask for: k, requests per connection and our own bound."""
    site = s.site[x]
    limit = min(site.requests, MOST_PER_VISIT)
    k = site.per_connection if site.per_connection >= 0 else s.run[0].per_connection
    return min(limit, k) if k > 0 else limit


@helper(i8(StateType, i8, i8))
def visit_limit(s: State, x: int, level: int) -> int:
    """P of the site: what one connection may ask for, and the budget."""
    return max(0, min(connection_limit(s, x), budget_left(s, x, level)))


@shared
def rest_s(run: Record, site: Record) -> float:
    """w: the site's own, or by its size (castillo-thesis 4.5.2). Site ranks may use it too."""
    if site.delay_s == site.delay_s:
        return site.delay_s
    return run.small_site_delay_s if site.known < run.small_site_pages else run.delay_s


@helper(f8(StateType, i8))
def backoff_s(s: State, x: int) -> float:
    run = s.run[0]
    failures = s.site[x].failures
    if failures == 0:
        return 0.0
    return min(run.backoff_s * 2.0 ** (failures - 1), run.backoff_most_s)
