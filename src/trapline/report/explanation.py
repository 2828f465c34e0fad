"""Why a page was fetched at its time, or why it has not been fetched yet, in words; the same for a site.

The past is read from the crawl's database. The future is read from the frontier, rebuilt from the last snapshot and the log since then.
The whole answer describes one moment: the last commit before the crawl was read.
"""

import math
import re
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext, suppress
from pathlib import Path
from typing import Protocol

from trapline.crawler.engine.records import OUT_OF_BAND, RETURNED, SITE_FAILED, VISITS, AbandonedSite
from trapline.crawler.engine.tally import is_redirect
from trapline.crawler.files.checkpoint import newest
from trapline.crawler.files.lock import holder
from trapline.crawler.files.reading import Reading
from trapline.crawler.files.resume import once_more, rebuilt
from trapline.crawler.inspect.database_reader import open_database, options
from trapline.crawler.inspect.page_history import (
    PageHistory,
    SiteHistory,
    Target,
    Try,
    found,
    page_account,
    site_account,
)
from trapline.errors import ConfigError
from trapline.fetch import failure
from trapline.frontier import FETCHED, REFUSED
from trapline.frontier.explain import PageExplanation, SiteExplanation
from trapline.parallel.folder.manifest import is_parallel, read
from trapline.parallel.folder.merged import brought_up
from trapline.report.refetch_explanation import refetch_lines, trust_lines
from trapline.units import bytes_shown, counted, duration

_QUALITY = "select quality from page_quality join page on page.id = page_quality.page where url = ?"
_MOST_LATER = 2  # number of fetches after the first successful one that are shown one by one


class ExplainProgress(Protocol):
    """Shows the long parts of an explanation."""

    def compile_kernels(self) -> None:
        """Compile the kernels of refetching."""

    def compile_replay(self) -> None:
        """Compile the kernels that rebuild a frontier from its log."""

    def replaying(self) -> AbstractContextManager[None]:
        """Show that a frontier is being rebuilt."""


class SilentProgress:
    """Shows nothing. Kernels are compiled when they are first called."""

    def compile_kernels(self) -> None:
        pass

    def compile_replay(self) -> None:
        pass

    def replaying(self) -> AbstractContextManager[None]:
        return nullcontext()


def explanation(folder: Path, what: str, progress: ExplainProgress) -> list[str]:
    """Explain a page or a site of the crawl in a folder, one line for each fact. `what`: a URL, or a site without a path.

    Raise `ConfigError` if the crawl does not know it.
    """
    with closing(open_database(brought_up(folder))) as database:
        target = found(database, what)
    return once_more(lambda: _explained(folder, target, progress))


def _explained(folder: Path, target: Target, progress: ExplainProgress) -> list[str]:
    own_folder, own = _part(folder, target)
    with ExitStack() as stack:
        database = stack.enter_context(closing(open_database(folder)))
        own_database = database if own_folder == folder else stack.enter_context(closing(open_database(own_folder)))
        settings, reading = options(database), Reading(own_folder, own_database)
        if target.page is None:
            site = site_account(database, target)
            lines, is_over = list(_site_past(site)), site.abandoned_sites is not None
            lines += trust_lines(reading, own.site, settings.refresh, progress.compile_kernels)
        else:
            page = page_account(database, target)
            lines = [*_page_past(page, settings.rules.delay_s), *_quality_lines(database, page, settings.quality)]
            is_over = page.fetched or page.abandoned_sites is not None or _is_extra_only(page)
            if page.fetched and own.page is not None:
                history = Reading(folder, database).history(target.page)
                lines += refetch_lines(reading, own.page, history, settings.refresh, progress.compile_kernels)
        return lines if is_over else [*lines, *_present(reading, own, progress)]


# ---- The past.


def _is_extra_only(account: PageHistory) -> bool:
    """Return whether the URL is a sitemap, feed or requisite that is no page: the frontier does not know it."""
    return account.extra_role is not None and not account.is_seed and account.discovery is None


def _page_past(account: PageHistory, delay_s: float) -> Iterator[str]:
    yield account.url
    yield f"  discovered: {_discovered(account)}"
    if account.extra_role is not None and not _is_extra_only(account):
        yield f"  other role: {account.extra_role}"
    if account.tries and account.site_before is not None:
        first, ready_at = account.tries[0], account.site_before + delay_s
        late_s = max(first.started - ready_at, 0.0)
        stopped_s = sum(max(min(end, first.started) - max(at, ready_at), 0.0) for at, end in account.stops)
        stopped = f"; the crawl was stopped for {duration(stopped_s)} of this time" if stopped_s else ""
        yield f"  previous visit to its site: ended {_since(account.site_before, account.began)}"
        yield f"  visit to this page: began {duration(late_s)} after the delay of {delay_s:g} s had passed{stopped}"
    yield from (f"  {line}" for line in _tries(account))
    if account.fetched_before is not None:
        yield f"  pages fetched earlier from this site: {account.fetched_before:,}"
    if account.abandoned_sites is not None and not account.fetched:
        yield f"  its site was abandoned {_abandoned(account.abandoned_sites, account.began)}"


def _quality_lines(database: sqlite3.Connection, account: PageHistory, source: str) -> Iterator[str]:
    """Yield the score of the page, and that of the page on which it was found."""
    found = account.discovery
    for label, url in (("quality", account.url), ("quality of the page that links to it", found.url if found else "")):
        row = database.execute(_QUALITY, (url,)).fetchone()
        if row is not None:
            yield f"  {label}: {row[0]:.3g}, by {source}"


def _tries(account: PageHistory) -> Iterator[str]:
    """Yield one line per fetch up to the first successful one; of many later fetches only the number and the last failure."""
    tries, began = account.tries, account.began
    first = next((at for at, fetch in enumerate(tries) if fetch.result == FETCHED), len(tries))
    shown, later = (tries, []) if len(tries) <= first + 1 + _MOST_LATER else (tries[: first + 1], tries[first + 1 :])
    yield from (_tried(fetch, account) for fetch in shown)
    failed = [fetch for fetch in later if fetch.result != FETCHED]
    if later:
        yield f"requested {len(later):,} more times, the last time {_since(later[-1].started, began)}; {len(failed):,} of these failed"
    yield from (f"last failure: {_tried(fetch, account)}" for fetch in failed[-1:])


def _discovered(account: PageHistory) -> str:
    found, requested = account.discovery, account.tries[0].started if account.tries else math.inf
    listed = f"in the sitemap or feed {account.listed_by}" if account.listed_by else "by a redirect or a signal"
    extra = f"as a {account.extra_role}" if account.extra_role else f"{listed}, not by a link of a fetched page"
    origin = "as a seed" if account.is_seed else extra
    if found is None:
        return origin
    link = "links" if found.others == 1 else "link"
    others = f"; {counted(found.others, 'other fetched page')} {link} to it too" if found.others else ""
    linked = f"by a link on {found.url}, which was fetched {_since(found.at, account.began)}{others}"
    return linked if found.at <= requested and not account.is_seed else f"{origin}; later also {linked}"


_NOT_AS_A_PAGE = "requested as a sitemap, feed, requisite or another site's robots.txt, and not as a page,"


def _tried(fetch: Try, account: PageHistory) -> str:
    words = {
        FETCHED: "fetched",
        RETURNED: "requested, not answered and returned to the queue",
        OUT_OF_BAND: "requested" if _is_extra_only(account) else _NOT_AS_A_PAGE,
    }
    outcome = "redirected" if is_redirect(fetch.result, fetch.status) else words.get(fetch.result, "failed")
    if fetch.result == SITE_FAILED:
        why = f"its site gave no connection or no robots.txt ({fetch.error} error after {duration(fetch.total_s)})"
        return f"not requested {_since(fetch.started, account.began)}, because {why}; {_place(fetch)}"
    if fetch.result == REFUSED and fetch.error == failure.ROBOTS:
        return f"not requested {_since(fetch.started, account.began)}, because robots.txt forbids it; {_place(fetch)}"
    return f"{outcome} {_since(fetch.started, account.began)}: {_answer(fetch)}; {_place(fetch)}"


def _answer(fetch: Try) -> str:
    if not fetch.status:
        server = f"server {fetch.address}" if fetch.address else "no server was contacted"
        return f"{fetch.error} error after {duration(fetch.total_s)}; {server}"
    error = f" ({fetch.error} error)" if fetch.error not in ("", failure.HTTP) else ""
    server = f" from {fetch.address}" if fetch.address else ""
    return f"status {fetch.status}{error}, {bytes_shown(fetch.bytes)}{server} in {duration(fetch.total_s)}"


def _place(fetch: Try) -> str:
    return f"fetch {fetch.number:,} of the crawl, {fetch.place} of {fetch.of} in its visit"


def _site_past(account: SiteHistory) -> Iterator[str]:
    yield account.origin
    yield f"  pages: {account.known:,} known, {account.fetched:,} fetched"
    if account.first is None or account.last is None:
        all_failed = account.abandoned_sites is not None and account.abandoned_sites.kind == VISITS
        yield "  all visits failed before a request was sent" if all_failed else "  never visited"
    else:
        first, last = _since(account.first, account.began), _since(account.last, account.began)
        yield f"  visits: {account.visits:,}{_for_robots(account)}; the first began {first}; the last ended {last}"
    if account.abandoned_sites is not None:
        yield f"  abandoned {_abandoned(account.abandoned_sites, account.began)}"


def _for_robots(account: SiteHistory) -> str:
    if not account.robots_visits:
        return ""
    of_all = "" if account.robots_visits == account.visits else f"{account.robots_visits:,} of them "
    return f", {of_all}for robots.txt alone"


def _abandoned(site: AbandonedSite, began: float) -> str:
    return f"{_since(site.at, began or site.at)}: {site.why}"


def _since(moment: float, began: float) -> str:
    return f"{moment - began:,.1f} s after the crawl began" if moment > began else "when the crawl began"


# ---- The future.


def _part(folder: Path, target: Target) -> tuple[Path, Target]:
    """Return the folder of the frontier that holds the target: the crawl itself, or the partition that owned the target last."""
    for part in reversed(read(folder).parts) if is_parallel(folder) else ():
        # A partition that does not know the target raises ConfigError.
        with suppress(ConfigError), closing(open_database(part)) as database:
            return part, found(database, target.name)
    return folder, target


def _present(reading: Reading, target: Target, progress: ExplainProgress) -> Iterator[str]:
    if reading.last_batch() != newest(reading.folder):
        progress.compile_replay()
    with progress.replaying():
        frontier, now = rebuilt(reading)
    if target.page is not None:
        page = frontier.explain_page(target.page, now)
        yield from _page_present(page)
        yield from _site_present(page.site, reading, now, "its site")
    else:
        yield from _site_present(frontier.explain_site(target.site, now), reading, now, "at the last commit")


def _page_present(page: PageExplanation) -> Iterator[str]:
    tries = f", {counted(page.tries, 'failed try').replace('trys', 'tries')}" if page.tries else ""
    yield f"  at the last commit: {page.life} (depth {page.depth}{tries}); {page.rule}"
    if page.key is not None:
        before = counted(page.pages_before or 0, "page")
        yield f"  queue of its site: {before} before this page, whose rank is {page.key:g}"


_SITE = re.compile(r"\bsite ([0-9]+)\b")  # as rules name another site


def _site_present(site: SiteExplanation, reading: Reading, now: float, begin: str) -> Iterator[str]:
    rank = "" if site.rank is None else f", site rank {site.rank:g}"
    until = f" (for another {duration(max(site.wait_until - now, 0.0))})" if math.isfinite(site.wait_until) else ""
    until = until if holder(reading.folder) is not None else "; the crawl is not running"
    waiting = f"{counted(site.waiting, 'page')} waiting{rank}; " if site.waiting else ""
    rule = _SITE.sub(lambda number: _origins(reading, (int(number[1]),))[0], site.rule)
    yield f"  {begin}: {waiting}{rule}{until}"
    if site.sites_before:
        names = ", ".join(_origins(reading, site.first_before))
        more = ", ..." if site.sites_before > len(site.first_before) else ""
        yield f"  sites before it: {site.sites_before:,} ({names}{more})"
    elif site.sites_before == 0:
        yield "  sites before it: none, so it is visited next"


def _origins(reading: Reading, sites: tuple[int, ...]) -> list[str]:
    marks = ", ".join("?" * len(sites))
    named = dict(reading.connection.execute(f"select id, origin from site where id in ({marks})", sites))
    return [named.get(site, f"site {site}") for site in sites]
