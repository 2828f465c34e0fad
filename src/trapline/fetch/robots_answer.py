"""What came of asking for a robots.txt, read as rules: RFC 9309, 2.3.1 and 2.4. Step 5 of the way of a URL.

It does not fetch and keeps no time: the caller follows redirects (at most MOST_REDIRECTS, every hop through the address guard), asks
again when `expires_in_s` has passed, and says for how long the file has been unreachable.

| answer | what we may fetch | asked again after |
|---|---|---|
| 2xx, whole | what the file says | max-age, between an hour and a day; a day if none is given |
| 3xx, too many or nowhere | everything: there is no file | the same |
| 4xx but 429 | everything: there is no file | the same |
| 429, 5xx, anything else, no answer | nothing | the site's back-off, or Retry-After (1) |
| the same, for 30 days | everything, as if there were no file | a day |

(1) A file on another site: Retry-After, between five minutes and a day.

429 is in the RFC's class of "no file". We count it with 5xx: a server that asks for less would otherwise be taken to allow
everything. To Google, too, it says the same as 500 and 503 (developers.google.com/search/docs/crawling-indexing/reduce-crawl-rate).
"""

from typing import NamedTuple

from trapline.fetch.robots import ALLOW_ALL, DISALLOW_ALL, Robots, parse

MOST_REDIRECTS = 5  # 2.3.1.2
DAY_S = 86_400.0
LONGEST_S = DAY_S  # 2.4: not more than 24 hours
SHORTEST_S = 3_600.0  # a server that says max-age=0 would have it fetched before every visit
FIRST_RETRY_S = 300.0
GIVEN_UP_AFTER_S = 30 * DAY_S  # 2.3.1.4: a reasonably long period of time, for example, 30 days


class Verdict(NamedTuple):
    robots: Robots
    expires_in_s: float
    reason: str  # for people


def read_answer(
    status: int,
    failure: str,
    body: bytes,
    agent: str,
    *,
    max_age_s: float | None = None,
    retry_after_s: float | None = None,
    unreachable_for_s: float = 0.0,
) -> Verdict:
    """The rules that follow from one answer, or from none.

    `status` is 0 and `failure` a kind of failure.py if there was no answer; both are set if the body of one did not arrive whole.
    `max_age_s`: for how long it may still be used (`lifetime_s`); None: a day. `unreachable_for_s`: since the first of the unbroken run
    of answers that are `is_unreachable`, to this one.
    """
    if is_unreachable(status, failure):
        return _unreachable(_what_failed(status, failure), retry_after_s, unreachable_for_s)
    age_s = LONGEST_S if max_age_s is None else min(max_age_s, LONGEST_S)
    if status < 300:
        return Verdict(parse(body, agent), age_s, "read")
    return Verdict(ALLOW_ALL, age_s, f"none: a redirect too many ({status})" if status < 400 else f"none ({status})")


def is_unreachable(status: int, failure: str) -> bool:
    """Whether such an answer leaves open what the file says (2.3.1.4)."""
    return status == 429 or not 200 <= status < 500 or (status < 300 and bool(failure))


def lifetime_s(max_age_s: float) -> float:
    """For how long an answer may be used whose Cache-Control says so."""
    return _between(SHORTEST_S, max_age_s, LONGEST_S)


def _unreachable(what: str, retry_after_s: float | None, since_s: float) -> Verdict:
    if since_s >= GIVEN_UP_AFTER_S:
        return Verdict(ALLOW_ALL, LONGEST_S, f"unreachable for 30 days ({what}): as if there were none")
    return Verdict(DISALLOW_ALL, _between(FIRST_RETRY_S, retry_after_s or 0.0, LONGEST_S), f"unreachable ({what})")


def _what_failed(status: int, failure: str) -> str:
    return " ".join(str(part) for part in (status, failure) if part)


def _between(least: float, value: float, most: float) -> float:
    return min(max(least, value), most)
