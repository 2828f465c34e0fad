"""The decision core: it decides which page to fetch next.

It does no IO, reads no clock and logs nothing: every method takes `now`. Laws: docs/frontier.md. This folder holds the
interface, the layout of the state, and what keeps, moves and explains the state; `core/` is the compiled state machine.
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
