"""The fetched pages of a crawl, read from its archives again and judged as when they came.

A crawl whose scope has become wider needs this: the database has only the links that the old scope admitted.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from trapline.crawler.engine.judge import FetchVerdict, judge
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.files.archived_responses import FIRST_OF_DIGEST, ArchivedResponses
from trapline.crawler.files.layout import connect
from trapline.crawler.files.reading import HAS_LINKS
from trapline.crawler.store.archive import RecordPlace

_BODIES = f"""select seq, fetch.page, url, started, digest, file, offset, length from fetch join page on page.id = fetch.page
where seq > ? and seq <= ? and {HAS_LINKS} and file is not null order by seq limit 256"""


class ReadAgain(NamedTuple):
    """A page that was read from its archive once more."""

    page: int
    url: str
    verdict: FetchVerdict


def read_again(folder: Path, options: CrawlOptions) -> Iterator[ReadAgain]:
    """Yield all pages of a crawl that have been fetched until now, in the order of their fetches. Those whose records cannot be
    read are left out."""
    with closing(connect(folder)) as database:
        (last,) = database.execute("select coalesce(max(seq), -1) from fetch").fetchone()
        for statement in FIRST_OF_DIGEST.format(last=last).split(";"):
            database.execute(statement)
        with closing(ArchivedResponses(database, folder, options.limits, lambda: None)) as responses:
            after = -1
            while rows := database.execute(_BODIES, (after, last)).fetchall():
                after = rows[-1][0]
                for _, page, url, started, digest, *place in rows:
                    response = responses.response(RecordPlace(*place), digest)
                    if not isinstance(response, str):
                        limit = options.limits.expanded_bytes
                        yield ReadAgain(page, url, judge(response, options.robots_token, limit, started))
