"""Any graph served as real web sites over loopback HTTP, with a log of its own and a checker of politeness.

For users (`trapline testweb`), tests, the demo and benchmarks: the far side of a crawl, never a part of one.
"""

from trapline.testweb.answer import answer
from trapline.testweb.behaviour import ATTACKS, FAULTS, HARMLESS, REDIRECTS, REFUSALS, ROBOTS, Behaviour, Mix
from trapline.testweb.log import Log
from trapline.testweb.message import OTHER, ROBOTS_FILE, Answer, Sending
from trapline.testweb.politeness import Findings, Promise, check
from trapline.testweb.render import render
from trapline.testweb.request import Request, get
from trapline.testweb.serve import Served, serve
from trapline.testweb.server import Server
from trapline.testweb.web import Web, build_web

__all__ = [
    "ATTACKS",
    "FAULTS",
    "HARMLESS",
    "OTHER",
    "REDIRECTS",
    "REFUSALS",
    "ROBOTS",
    "ROBOTS_FILE",
    "Answer",
    "Behaviour",
    "Findings",
    "Log",
    "Mix",
    "Promise",
    "Request",
    "Sending",
    "Served",
    "Server",
    "Web",
    "answer",
    "build_web",
    "check",
    "get",
    "render",
    "serve",
]
