"""What a row of the table `fetch` is: its result, and in SQL whether it counts as a page, an error or a redirect (docs/crawl-summary.md).

tally.py counts records by the same rules while the crawl runs. Readers that must start fast import this module alone: it imports no
compiled code.
"""

from trapline.crawler.engine.records import OUT_OF_BAND, RETURNED, ROBOTS_FILE, SITE_FAILED
from trapline.fetch import failure

# Those of frontier/layout.py, which is not imported because it imports compiled code. A test compares them.
FETCHED, FAILED, REFUSED = 3, 5, 6
RESULTS = {
    FETCHED: "fetched",
    FAILED: "failed",
    REFUSED: "refused",
    RETURNED: "returned",
    OUT_OF_BAND: "out-of-band",
    SITE_FAILED: "site-failed",
}
"""Names of the values of the column `result`."""
FORBIDDEN = "forbidden"  # by robots.txt: no request was sent, and nothing failed
NOT_MODIFIED = 304
KIND = f"case when error = '{failure.ROBOTS}' and result = {REFUSED} then '{FORBIDDEN}' else error end"
"""SQL: the kind of error of a row of `fetch`; '': none."""
IS_ERROR = f"({KIND} not in ('', '{FORBIDDEN}', '{failure.MIME}') and result not in ({RETURNED}, {OUT_OF_BAND}))"
"""SQL: whether a row of `fetch` counts as an error."""
IS_FETCHED = f"result = {FETCHED}"
"""SQL: whether a row of `fetch` had an answer of 2xx or 3xx."""
IS_REDIRECT = f"({IS_FETCHED} and status between 300 and 399 and status != {NOT_MODIFIED})"
"""SQL: whether a row of `fetch` brought a redirect, which is no page."""
IS_PAGE = f"({IS_FETCHED} and not {IS_REDIRECT} and marks & {ROBOTS_FILE} = 0)"
"""SQL: whether a row of `fetch` brought a page. The row may be an error too: a page that cannot be decoded."""
IS_HANDED_OVER = (
    f"(result not in ({RETURNED}, {OUT_OF_BAND}) and (not {IS_FETCHED} or ({IS_PAGE} and status != {NOT_MODIFIED})))"
)
"""SQL: whether handlers and programs receive a row of `fetch`: a page with contents, or a failure."""
_FIRST = "count(distinct case when {} and fetch.changed is null then fetch.page end)"
PAGES = _FIRST.format(IS_PAGE)
"""SQL: the number of pages that rows of `fetch` brought. Each page counts once, however often it was fetched again.

`changed` is null in the first fetch of a page, because there is no earlier copy to compare with. A page that another
partition fetched before partitions were added therefore counts there, and not here."""
EXTRAS = "select page from published_list where not is_page union select page from requisite where state <> 'page'"
"""SQL: the rows of `page` that are no pages of the crawl: sitemaps, feeds and requisites, which are requested besides pages."""
REDIRECTS = _FIRST.format(IS_REDIRECT)
"""SQL: the number of URLs whose first answer was a redirect, in rows of `fetch`."""
