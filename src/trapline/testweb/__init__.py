"""Any graph served as real web sites over loopback HTTP, with a log of its own, from which politeness and freshness are judged.

For users (`trapline testweb`), tests, the demo and benchmarks: the far side of a crawl, never a part of one.
"""

from trapline.testweb.answer import answer
from trapline.testweb.behaviour import ATTACKS, FAULTS, HARMLESS, REDIRECTS, REFUSALS, ROBOTS, Behaviour, Mix
from trapline.testweb.changes import Changes, changes_of
from trapline.testweb.freshness import (
    Accesses,
    Fetches,
    Freshness,
    History,
    fetches_of,
    freshness,
    history_of,
    popularity,
)
from trapline.testweb.log import Log
from trapline.testweb.message import OTHER, ROBOTS_FILE, Answer, Sending
from trapline.testweb.pings import PingCounts
from trapline.testweb.politeness import Findings, Promise, check
from trapline.testweb.providers import LEVELS, Providers, Telling, providers_of
from trapline.testweb.render import render
from trapline.testweb.request import Request, get
from trapline.testweb.serve import Served, serve
from trapline.testweb.server import Server
from trapline.testweb.validators import VALIDATORS
from trapline.testweb.web import Web, build_web

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
    "Accesses",
    "Answer",
    "Behaviour",
    "Changes",
    "Fetches",
    "Findings",
    "Freshness",
    "History",
    "Log",
    "Mix",
    "PingCounts",
    "Promise",
    "Providers",
    "Request",
    "Sending",
    "Served",
    "Server",
    "Telling",
    "Web",
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
