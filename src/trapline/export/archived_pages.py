"""The contents of a crawl's pages, read from its archives: one page at a time, in the order in which they were archived.

A page of which the database says that there is a record, but whose record cannot be read, is yielded without contents, and counted. The
responses are parsed and judged as the crawl did it, by the same functions.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

from trapline.crawler.files.archived_responses import ArchivedResponses
from trapline.crawler.store.archive import RecordPlace
from trapline.crawler.visits.judge import FetchVerdict, judge
from trapline.export.source import ExportSource
from trapline.fetch.http.response import Response

_PAGES = """select seq, fetch.page, url, started, links, digest, file, offset, length
from last_body join fetch using (seq) join page on page.id = fetch.page where seq > ? and seq <= ? order by seq"""


class ArchivedPage(NamedTuple):
    id: int
    url: str
    started: float
    links: bytes  # pages that its links lead to, as in the table `fetch`
    response: Response | None  # None: its record cannot be read
    verdict: FetchVerdict | None  # None if and only if there is no response


def archived_pages(source: ExportSource, what: str) -> Iterator[ArchivedPage]:
    """Yield each page whose last successful fetch brought contents or a redirect. `what`: the name of the table, for progress."""
    source.need("last_body")
    limits, refetches = source.options.limits, source.options.refresh is not None
    responses = ArchivedResponses(source.database, source.folder, limits, lambda: source.need("first_of_digest"))
    with closing(responses) as archives:
        for _, page, url, started, links, digest, *place in source.rows(what, _PAGES, source.bounds.fetch):
            response = archives.response(RecordPlace(*place), digest) if place[0] is not None else "its record was lost"
            if isinstance(response, str):
                source.unreadable.add(page, f"{url}: {response}")
                yield ArchivedPage(page, url, started, links, None, None)
            else:
                verdict = judge(response, source.options.robots_token, limits.expanded_bytes, started, False, refetches)
                yield ArchivedPage(page, url, started, links, response, verdict)
