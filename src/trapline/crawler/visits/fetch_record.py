"""A page request, and the record of its result: made in step 5 and stored in step 7 of docs/architecture.md.

The module holds plain values and converts one into the other. It decides nothing and sends nothing.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from trapline.crawler.discovery.sites import Site
from trapline.crawler.engine.records import Fetched
from trapline.crawler.visits.extra_queue import ExtraSource
from trapline.crawler.visits.judge import FetchVerdict
from trapline.fetch.http.response import Response
from trapline.frontier import Visit


class PageRequest(NamedTuple):
    """A page that was requested, or what is requested besides pages."""

    page: int
    url: str
    started: float
    request: bytes
    source: ExtraSource | None = None  # the owner of what is requested besides pages (extra_requests.py); None: a page
    marks: int = 0  # marks of the record besides those of the answer


def no_answer(
    visit: Visit, site: Site, request: PageRequest, result: int, kind: str, address: str, now: float
) -> Fetched:
    return Fetched(
        page=request.page,
        site=site.id,
        visit=visit.id,
        url=request.url,
        address=address,
        started=request.started,
        first_byte_s=math.nan,
        total_s=now - request.started,
        result=result,
        status=0,
        error=kind,
        request=request.request,
    )


def answer(
    visit: Visit,
    site: Site,
    request: PageRequest,
    response: Response,
    address: str,
    verdict: FetchVerdict,
    hrefs: Sequence[str],
    links: bytes,
) -> Fetched:
    """Return the record of an answered request.

    The fields are passed by position: by keyword, a record takes one to three microseconds longer, and every page has one.
    """
    return Fetched(
        request.page,
        site.id,
        visit.id,
        request.url,
        address,
        request.started,
        response.first_byte_s,
        response.total_s,
        verdict.result,
        response.status,
        verdict.error,
        request.request,
        response.head,
        response.wire,
        response.body,
        response.truncated,
        verdict.mime,
        verdict.marks | request.marks,
        hrefs,
        links,
    )
