"""The decision core: it decides which page to fetch next.

It does no IO, reads no clock and logs nothing: every method takes `now`. Laws: docs/frontier.md.
"""

from trapline.frontier.answers import FAILED, FETCHED, REFUSED, Drained, Outcome, Rescore, Result, Visit, WaitUntil
from trapline.frontier.frontier import Frontier
from trapline.frontier.layout import AS_RULES
from trapline.frontier.rules import Rules

__all__ = [
    "AS_RULES",
    "FAILED",
    "FETCHED",
    "REFUSED",
    "Drained",
    "Frontier",
    "Outcome",
    "Rescore",
    "Result",
    "Rules",
    "Visit",
    "WaitUntil",
]
