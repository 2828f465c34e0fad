"""The answers of the frontier to its driver, and the results that the driver reports to the frontier."""

from collections.abc import Sequence
from typing import NamedTuple

from trapline.frontier.layout import FAILED, FETCHED, REFUSED, Array

__all__ = ["FAILED", "FETCHED", "REFUSED", "Drained", "Outcome", "Rescore", "Result", "Visit", "WaitUntil"]


class Visit(NamedTuple):
    """An order to fetch these pages of this site over one connection, in this sequence, before `expires_at`."""

    id: int
    site: int
    pages: list[int]
    expires_at: float


class WaitUntil(NamedTuple):
    """Nothing may be fetched before `time`. Infinity: only another call (a finished visit, a resolved site) can change that."""

    time: float


class Rescore(NamedTuple):
    """The page rank needs new scores of all pages (`Frontier.rescore`) before the crawl can continue."""

    fetched: int  # number of pages fetched so far; the scores must be computed from these pages


class Drained(NamedTuple):
    """No page waits and no visit is under way."""


class Result(NamedTuple):
    """Result of one page: FETCHED, FAILED (the page may be tried again) or REFUSED (the page is never tried again)."""

    page: int
    result: int
    links: Sequence[int] | Array = ()
    response_s: float = float("nan")


class Outcome(NamedTuple):
    """Report on a visit that has ended."""

    results: Sequence[Result] = ()
    connection_s: float = float("nan")
    served: int = 0  # number of responses received over this connection
    closed: bool = False  # the server closed the connection after these responses
    allowed: int = 0  # requests per connection that the server announced; 0: it announced none
    not_before: float = float("-inf")  # Retry-After, as an absolute time
    failed: bool = False  # the site failed and no page is charged: there was no connection, or no robots.txt to obey
