"""The tables that an export reads from the database alone: pages, requisites, fetches and sites."""

from collections.abc import Iterator
from datetime import UTC, datetime

from trapline.crawler.engine.records import OUT_OF_BAND, ROBOTS_FILE
from trapline.crawler.engine.row_kinds import FAILED, FETCHED, FORBIDDEN, IS_PAGE, REFUSED, RESULTS
from trapline.crawler.engine.tally import is_redirect
from trapline.crawler.store.warc import base32
from trapline.export.source import ExportSource, Row
from trapline.fetch import failure
from trapline.fetch.html.page import NOARCHIVE, NOFOLLOW, NOINDEX

WAITING, ABANDONED, REQUISITE = "waiting", "abandoned", "requisite"
REDIRECT, ROBOTS = "redirect", "robots.txt"

# The contents of a page that has not changed (304) are those of an earlier fetch.
_PAGES = """select page.id, url, origin, last.result, last.status, last.error, body.mime, body.bytes, last.started, body.digest,
body.marks, abandoned_site.site is not null, page_quality.quality from page join site on site.id = page.site
left join last_fetch on last_fetch.page = page.id
left join fetch as last on last.seq = last_fetch.seq
left join fetch as body on body.seq = case last.status when 304 then last_fetch.body else last.seq end
left join page_quality on page_quality.page = page.id
left join abandoned_site on abandoned_site.site = page.site where page.id > ? and page.id <= ?
and not exists (select 1 from extra_page where extra_page.page = page.id) order by page.id"""
_REQUISITES = """select requisite.page, page.url, origin, role, state, named.url, status, error, mime, bytes, started, digest
from requisite join page on page.id = requisite.page join site on site.id = page.site left join page as named on named.id = needed_by
left join last_request on last_request.page = requisite.page left join fetch using (seq)
where requisite.page > ? and requisite.page <= ? and state <> 'page' order by requisite.page"""
_FETCHES = """select seq, fetch.page, url, origin, visit, address, started, first_byte_s, total_s, result, status, error, fetch.bytes,
mime, digest, found, truncated, changed, warc.name, offset, length, marks, requisite.page is not null
from fetch join page on page.id = fetch.page join site on site.id = page.site left join warc on warc.id = file
left join requisite on requisite.page = fetch.page
where seq > ? and seq <= ? order by seq"""
_SITE_TOTALS = f"""create temp table site_total (site integer primary key, known, fetched, errors, forbidden, bytes);
insert into site_total select site, count(*), total({IS_PAGE}),
total(result in ({FAILED}, {REFUSED}) and error <> '{failure.ROBOTS}'), total(result = {REFUSED} and error = '{failure.ROBOTS}'),
total(case when {IS_PAGE} then fetch.bytes end) from page left join last_fetch on last_fetch.page = page.id
left join fetch on fetch.seq = last_fetch.seq where page.id <= {{last}}
and not exists (select 1 from extra_page where extra_page.page = page.id) group by site;
create temp table last_robots (site integer primary key, status);
insert into last_robots select site, status from robots where seq in (select max(seq) from robots group by site)"""
_SITES = """select id, origin, ifnull(known, 0), ifnull(fetched, 0), ifnull(errors, 0), ifnull(forbidden, 0), ifnull(site_total.bytes, 0),
last_robots.status, kind, why from site left join site_total on site_total.site = id left join last_robots on last_robots.site = id
left join abandoned_site on abandoned_site.site = id where id > ? and id <= ? order by id"""


def pages(source: ExportSource) -> Iterator[Row]:
    """Yield one row per known page, with its last fetch."""
    source.need("last_fetch", "extra_page")
    for id, url, origin, result, status, error, mime, size, started, digest, marks, *rest in source.rows(
        "pages", _PAGES, source.bounds.page
    ):
        is_abandoned, quality = rest
        named = result_name(result, error, status, marks or 0) if result is not None else ""
        state = named or (ABANDONED if is_abandoned else WAITING)
        masks = (None,) * 3 if marks is None else (bool(marks & mark) for mark in (NOINDEX, NOFOLLOW, NOARCHIVE))
        yield (
            id,
            url,
            origin,
            state,
            status or None,
            error or None,
            mime or None,
            size,
            moment(started),
            hash_text(digest),
            *masks,
            quality,
        )


def requisites(source: ExportSource) -> Iterator[Row]:
    """Yield one row per requisite that is no page, with its last request."""
    source.need("last_request")
    for *row, status, error, mime, size, started, digest in source.rows("requisites", _REQUISITES, source.bounds.page):
        yield *row, status or None, error or None, mime or None, size, moment(started), hash_text(digest)


def fetches(source: ExportSource) -> Iterator[Row]:
    """Yield one row per attempt to fetch a page."""
    for row in source.rows("fetches", _FETCHES, source.bounds.fetch):
        seq, page, url, origin, visit, address, started, first_byte_s, total_s, result, status, error, *rest = row
        size, mime, digest, found, truncated, changed, warc, offset, length, marks, is_requisite = rest
        is_named = is_requisite and result == OUT_OF_BAND
        name = REQUISITE if is_named else result_name(result, error, status, marks)
        yield (
            *(seq, page, url, origin, visit, address or None, moment(started), first_byte_s, total_s),
            *(name, status or None, error or None, size, mime or None, hash_text(digest), found),
            *(truncated or None, None if changed is None else bool(changed), warc, offset, length),
        )


def sites(source: ExportSource) -> Iterator[Row]:
    """Yield one row per known site."""
    source.need("last_fetch", "extra_page")
    for statement in _SITE_TOTALS.format(last=source.bounds.page).split(";"):
        source.database.execute(statement)
    for id, origin, *numbers, robots, kind, why in source.rows("sites", _SITES, source.bounds.site):
        yield id, origin, *map(int, numbers), robots or None, kind, why


def result_name(result: int, error: str, status: int = 200, marks: int = 0) -> str:
    """Return the result of a fetch in one word.

    >>> result_name(REFUSED, "robots"), result_name(REFUSED, "http"), result_name(FETCHED, "", 301)
    ('forbidden', 'refused', 'redirect')
    """
    if is_redirect(result, status):
        return REDIRECT
    if result == FETCHED and marks & ROBOTS_FILE:
        return ROBOTS
    return FORBIDDEN if result == REFUSED and error == failure.ROBOTS else RESULTS[result]


def moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def hash_text(digest: bytes | None) -> str | None:
    """Return a digest as archives and their index write it."""
    return None if digest is None else f"sha1:{base32(digest)}"
