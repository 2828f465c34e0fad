"""What the frontier answers, and what it is told."""

from collections.abc import Sequence
from typing import NamedTuple

from trapline.frontier.layout import FAILED, FETCHED, REFUSED, Array

__all__ = ["FAILED", "FETCHED", "REFUSED", "Drained", "Outcome", "Rescore", "Result", "Visit", "WaitUntil"]


class Visit(NamedTuple):
    """Fetch these pages of this site over one connection, in this order, and be done by then."""

    id: int
    site: int
    pages: list[int]
    expires_at: float


class WaitUntil(NamedTuple):
    """Nothing may be fetched now. Infinity: only another call (a finished visit, a resolved site) can change that."""

    time: float


class Rescore(NamedTuple):
    """The page rank needs fresh scores of all pages (`Frontier.rescore`) before it goes on."""

    fetched: int  # pages fetched so far: what the scores are to be computed from


class Drained(NamedTuple):
    """Nothing waits and nothing is under way."""


class Result(NamedTuple):
    """What came of one page: FETCHED, FAILED (it may be tried again) or REFUSED (never again)."""

    page: int
    result: int
    links: Sequence[int] | Array = ()
    response_s: float = float("nan")


class Outcome(NamedTuple):
    """How a visit ended."""

    results: Sequence[Result] = ()
    connection_s: float = float("nan")
    served: int = 0  # responses over this connection
    closed: bool = False  # the server closed after them
    allowed: int = 0  # requests per connection that the server announced
    not_before: float = float("-inf")  # Retry-After, as an absolute time
    failed: bool = False  # the site failed, and no page did: no connection, or no rules to go by
