"""A frontier of URLs in a folder, which survives its process. It schedules for crawlers that fetch themselves."""

from trapline.durable.frontier import DurableFrontier
from trapline.durable.pages import HandedOut, KnownPage, NewPage, PutPage, QueuedPage, UrlVisit
from trapline.durable.scheduled import ScheduledFrontier

__all__ = [
    "DurableFrontier",
    "HandedOut",
    "KnownPage",
    "NewPage",
    "PutPage",
    "QueuedPage",
    "ScheduledFrontier",
    "UrlVisit",
]
