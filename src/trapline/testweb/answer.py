"""What a web answers to a request: a pure function, so that a crawl in virtual time can have the answers without a network.

It knows no connection: what ends one, and when, is `connection`. It decides by the web, by the moment if the web changes, and by
whether the page was asked for before (of a fault that occurs once).
"""

from trapline.testweb import robots_txt
from trapline.testweb.behaviour import HARMLESS
from trapline.testweb.faults import faulty
from trapline.testweb.message import ROBOTS_FILE, Answer, Sending, head, html, plain
from trapline.testweb.paths import EXTRA, ROBOTS_TXT
from trapline.testweb.published import fields, published, robots_lines
from trapline.testweb.redirects import location
from trapline.testweb.render import render
from trapline.testweb.request import Request
from trapline.testweb.validators import Validators, http_date, validators
from trapline.testweb.web import Web


def answer(web: Web, site: int, request: Request, asked_before: bool = False, now: float = 0.0) -> Answer:
    """What the site answers, at this moment in seconds since 1970. To HEAD the same as to GET, whose body is then not sent."""
    if request.method not in ("GET", "HEAD"):
        return plain(405, "Allow: GET, HEAD", http10=web.behaviours[site].http10)
    made = _answer(web, site, request, asked_before, now)
    return made._replace(body=b"", version=-1) if request.method == "HEAD" else made


def _answer(web: Web, site: int, request: Request, asked_before: bool, now: float) -> Answer:
    http10, target = web.behaviours[site].http10, request.target
    if target == ROBOTS_TXT:
        return _robots(web, site)._replace(page=ROBOTS_FILE)
    page = web.paths.page(site, target)
    if page >= 0:
        return _page(web, page, request, asked_before, now)
    if web.providers and (file := published(web, site, target, now)):
        return file
    if target.startswith(EXTRA):
        if moved := location(web, site, target):
            return plain(moved[0], f"Location: {moved[1]}", http10=http10)
        number = target.removeprefix(f"{EXTRA}robots/")
        if number.isdecimal() and number.isascii() and len(number) < 10 and int(number) < web.sites:
            return plain(200, http10=http10, body=robots_txt.text(web, int(number)))._replace(page=ROBOTS_FILE)
    return plain(404, http10=http10)


def _robots(web: Web, site: int) -> Answer:
    http10, kind = web.behaviours[site].http10, web.behaviours[site].robots
    if kind == "none" and not robots_lines(web, site):
        return plain(404, http10=http10)
    if kind == "error":
        return plain(503, http10=http10)
    if elsewhere := robots_txt.location(web, site):
        return plain(301, f"Location: {elsewhere}", http10=http10)
    made = plain(200, http10=http10, body=robots_txt.text(web, site))
    return made._replace(sending=Sending.HALF_THEN_RESET) if kind == "reset" else made


def _page(web: Web, page: int, request: Request, asked_before: bool, now: float) -> Answer:
    http10, fault = web.behaviours[web.site[page]].http10, web.fault(page)
    if asked_before and fault == "unavailable-once":
        fault = ""
    if web.constant and not fault:
        return html(render(web, page), http10, page, version=0)
    if not web.exists(page, now):
        return plain(404, http10=http10)._replace(page=page)
    if fault:
        version = web.version(page, now) if fault in HARMLESS else -1
        return faulty(web, page, fault, request, now)._replace(page=page, version=version)
    return _version(web, page, request, now)


def _version(web: Web, page: int, request: Request, now: float) -> Answer:
    """Of a page that may change, or that tells its version."""
    http10, version = web.behaviours[web.site[page]].http10, web.version(page, now)
    valid = validators(web, page, now)
    if valid.confirm(request):
        return Answer(304, head(304, http10=http10) + _about(web, page, valid, now), b"", page=page, version=version)
    made = html(render(web, page, now), http10, page, version)
    return made._replace(head=made.head + _about(web, page, valid, now))


def _about(web: Web, page: int, valid: Validators, now: float) -> bytes:
    lines = (f"Date: {http_date(now)}", *valid.fields(), *fields(web, page))
    return "".join(f"{line}\r\n" for line in lines).encode()
