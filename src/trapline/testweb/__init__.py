"""A test web: serves any graph as real web sites over loopback HTTP, and keeps its own log of requests.

Politeness and freshness of a crawler are judged from that log. The test web is for users (`trapline testweb`), tests, the
demo and benchmarks. It is the server side of a crawl, never a part of the crawler.
"""

from trapline.testweb.answers.answer import answer
from trapline.testweb.answers.message import OTHER, ROBOTS_FILE, Request, Sending, ServedAnswer, get
from trapline.testweb.answers.render import render
from trapline.testweb.checks.freshness import (
    AccessTimes,
    ChangeHistory,
    CopyFreshness,
    FetchTimes,
    fetches_of,
    freshness,
    history_of,
    popularity,
)
from trapline.testweb.checks.politeness import Findings, Promise, check
from trapline.testweb.server.log import RequestLog
from trapline.testweb.server.pings import PingCounts
from trapline.testweb.server.process import Served, serve
from trapline.testweb.server.server import Server
from trapline.testweb.web.behaviour import (
    ATTACKS,
    FAULTS,
    HARMLESS,
    REDIRECTS,
    REFUSALS,
    ROBOTS,
    VALIDATORS,
    Behaviour,
    Mix,
)
from trapline.testweb.web.changes import PageChanges, changes_of
from trapline.testweb.web.providers import LEVELS, Providers, SignalSettings, providers_of
from trapline.testweb.web.served_web import ServedWeb, build_web

__all__ = [
    "ATTACKS",
    "FAULTS",
    "HARMLESS",
    "LEVELS",
    "OTHER",
    "REDIRECTS",
    "REFUSALS",
    "ROBOTS",
    "ROBOTS_FILE",
    "VALIDATORS",
    "AccessTimes",
    "Behaviour",
    "ChangeHistory",
    "CopyFreshness",
    "FetchTimes",
    "Findings",
    "Mix",
    "PageChanges",
    "PingCounts",
    "Promise",
    "Providers",
    "Request",
    "RequestLog",
    "Sending",
    "Served",
    "ServedAnswer",
    "ServedWeb",
    "Server",
    "SignalSettings",
    "answer",
    "build_web",
    "changes_of",
    "check",
    "fetches_of",
    "freshness",
    "get",
    "history_of",
    "popularity",
    "providers_of",
    "render",
    "serve",
]
