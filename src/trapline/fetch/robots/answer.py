"""The rules that follow from the response to a request for robots.txt: RFC 9309, 2.3.1 and 2.4. Step 5 in docs/architecture.md.

The module does not fetch and reads no clock. The caller follows redirects (at most MOST_REDIRECTS, every hop through the address
guard), fetches the file again after `expires_in_s`, and passes how long the file has been unreachable.

| response | what may be fetched | fetched again after |
|---|---|---|
| 2xx, complete | what the file says | max-age, between an hour and a day; a day if none is given |
| 3xx, too many or without a target | everything: there is no file | the same |
| 4xx except 407 and 429 | everything: there is no file | the same |
| 407, 429, 5xx, anything else, no response | nothing | the site's back-off, or Retry-After (1) |
| the same, for 30 days | everything, as if there were no file | a day |

(1) For a file on another site: Retry-After, between five minutes and a day.

The RFC counts 429 among the statuses for "no file". We count it with 5xx: otherwise, a server that demands fewer requests would seem
to allow everything. Google, too, treats it like 500 and 503 (developers.google.com/search/docs/crawling-indexing/reduce-crawl-rate).
407 comes from a proxy, and says nothing about the file.
"""

from typing import NamedTuple

from trapline.fetch.robots.parser import ALLOW_ALL, DISALLOW_ALL, Robots, parse

MOST_REDIRECTS = 5  # 2.3.1.2
DAY_S = 86_400.0
LONGEST_S = DAY_S  # 2.4: not more than 24 hours
SHORTEST_S = 3_600.0  # otherwise a server with max-age=0 would have the file fetched before every visit
FIRST_RETRY_S = 300.0
GIVEN_UP_AFTER_S = 30 * DAY_S  # 2.3.1.4: a reasonably long period of time, for example, 30 days


_NOT_ABOUT_THE_FILE = frozenset({407, 429})


class RobotsVerdict(NamedTuple):
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
) -> RobotsVerdict:
    """Return the rules that follow from one response, or from a failure.

    Without a response, `status` is 0 and `failure` a kind of fetch/failure.py; both are set if the body did not arrive completely.
    `max_age_s`: for how long the response may still be used (`lifetime_s`); None: a day. `unreachable_for_s`: time from the first to
    the current response of an unbroken run of responses that are `is_unreachable`.
    """
    if is_unreachable(status, failure):
        return _unreachable(_what_failed(status, failure), retry_after_s, unreachable_for_s)
    age_s = LONGEST_S if max_age_s is None else min(max_age_s, LONGEST_S)
    if status < 300:
        return RobotsVerdict(parse(body, agent), age_s, "read")
    return RobotsVerdict(
        ALLOW_ALL, age_s, f"none: too many redirects ({status})" if status < 400 else f"none ({status})"
    )


def is_unreachable(status: int, failure: str) -> bool:
    """Return whether such a response leaves the content of the file unknown (2.3.1.4)."""
    return status in _NOT_ABOUT_THE_FILE or not 200 <= status < 500 or (status < 300 and bool(failure))


def lifetime_s(max_age_s: float) -> float:
    """Return for how long a response with this max-age is used: between SHORTEST_S and LONGEST_S."""
    return _between(SHORTEST_S, max_age_s, LONGEST_S)


def _unreachable(cause: str, retry_after_s: float | None, since_s: float) -> RobotsVerdict:
    if since_s >= GIVEN_UP_AFTER_S:
        return RobotsVerdict(ALLOW_ALL, LONGEST_S, f"unreachable for 30 days ({cause}): treated as if there were none")
    return RobotsVerdict(
        DISALLOW_ALL, _between(FIRST_RETRY_S, retry_after_s or 0.0, LONGEST_S), f"unreachable ({cause})"
    )


def _what_failed(status: int, failure: str) -> str:
    return " ".join(str(part) for part in (status, failure) if part)


def _between(least: float, value: float, most: float) -> float:
    return min(max(least, value), most)
