"""`trapline explain`: why a page was fetched when it was, or why it has not been fetched yet; the same for a site.

What happened is read from the crawl's database. What is still to come is asked of the frontier, made again from the last snapshot and
the log since. All of it is of one moment: that of the last commit when it was asked.
"""

import math
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trapline.errors import ConfigError
from trapline.terminal import say
from trapline.units import bytes_shown, counted, duration

if TYPE_CHECKING:
    from trapline.crawl.account import PageAccount, SiteAccount, Target, Try
    from trapline.crawl.records import GivenUp
    from trapline.crawl.store.reading import Reading
    from trapline.frontier.explain import PageExplanation, SiteExplanation

_MOST_LATER = 2  # fetches after the first that brought the page, told one by one


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("what", metavar="URL|SITE")
def explain(folder: Path, what: str) -> None:
    """Say why the crawl in DIR fetched a page when it did, or why it has not fetched it yet; or how a site stands.

    A SITE is written without a path: example.org, or https://example.org.
    """
    from trapline.crawl.account import found
    from trapline.crawl.folder import opened
    from trapline.crawl.resume import once_more
    from trapline.parallel.merged import brought_up

    with closing(opened(brought_up(folder))) as database:
        target = found(database, what)
    say(*once_more(lambda: _explained(folder, target)))


def _explained(folder: Path, target: "Target") -> list[str]:
    from trapline.cli.explain_again import again_lines, trust_lines
    from trapline.crawl.account import page_account, site_account
    from trapline.crawl.folder import opened, options
    from trapline.crawl.store.reading import Reading

    own_folder, own = _part(folder, target)
    with ExitStack() as stack:
        database = stack.enter_context(closing(opened(folder)))
        of_part = database if own_folder == folder else stack.enter_context(closing(opened(own_folder)))
        told, reading = options(database), Reading(own_folder, of_part)
        if target.page is None:
            site = site_account(database, target)
            lines, is_over = list(_site_past(site)), site.given_up is not None
            lines += trust_lines(reading, own.site, told.refresh)
        else:
            page = page_account(database, target)
            lines, is_over = list(_page_past(page, told.rules.delay_s)), page.fetched or page.given_up is not None
            if page.fetched and own.page is not None:
                history = Reading(folder, database).history(target.page)
                lines += again_lines(reading, own.page, history, told.refresh)
        return lines if is_over else [*lines, *_present(reading, own)]


# ---- what happened


def _page_past(account: "PageAccount", delay_s: float) -> Iterator[str]:
    yield account.url
    yield f"  discovered: {_discovered(account)}"
    if account.tries and account.site_before is not None:
        first, rested_at = account.tries[0], account.site_before + delay_s
        late = f"the visit came {duration(max(first.started - rested_at, 0.0))} after it could (w = {delay_s:g} s)"
        stopped_s = sum(max(min(end, first.started) - max(at, rested_at), 0.0) for at, end in account.stops)
        of_it = f", {duration(stopped_s)} of it while the crawl was stopped" if stopped_s else ""
        yield f"  its site: last visited until {_since(account.site_before, account.began)}; {late}{of_it}"
    yield from (f"  {line}" for line in _tries(account))
    if account.fetched_before is not None:
        yield f"  before it: {counted(account.fetched_before, 'page')} of its site"
    if account.given_up is not None and not account.fetched:
        yield f"  its site was given up {_given_up(account.given_up, account.began)}"


def _tries(account: "PageAccount") -> Iterator[str]:
    """One by one up to the first that brought the page; of many later ones the number, and the last that went wrong."""
    from trapline.frontier import FETCHED

    tries, began = account.tries, account.began
    first = next((at for at, one in enumerate(tries) if one.result == FETCHED), len(tries))
    shown, later = (tries, []) if len(tries) <= first + 1 + _MOST_LATER else (tries[: first + 1], tries[first + 1 :])
    yield from (_tried(one, began) for one in shown)
    failed = [one for one in later if one.result != FETCHED]
    if later:
        yield f"asked for {len(later):,} more times, the last {_since(later[-1].started, began)}; {len(failed):,} in vain"
    yield from (f"the last of these: {_tried(one, began)}" for one in failed[-1:])


def _discovered(account: "PageAccount") -> str:
    found, asked = account.discovery, account.tries[0].started if account.tries else math.inf
    origin = "a seed" if account.is_seed else "by no link of a fetched page, but by a redirect or a list of URLs"
    if found is None:
        return origin
    others = f", and by {counted(found.others, 'other page')}" if found.others else ""
    linked = f"linked by {found.url} ({_since(found.at, account.began)}){others}"
    return linked if found.at <= asked and not account.is_seed else f"{origin}; later {linked}"


def _tried(one: "Try", began: float) -> str:
    from trapline.crawl.records import ERRAND, RETURNED, SITE_FAILED
    from trapline.frontier import FETCHED

    words = {
        FETCHED: "fetched",
        RETURNED: "not answered, and put back",
        ERRAND: "asked for once more, as another site's robots.txt,",
        SITE_FAILED: "not asked for, because its site failed,",
    }
    what = words.get(one.result, "not had")
    came = f"status {one.status}, {bytes_shown(one.bytes)}" if one.status else one.error
    place = f"fetch {one.number:,} of the crawl, {one.place} of {one.of} in its visit"
    where = f" from {one.address}" if one.address else ", nobody was asked"
    return f"{what} {_since(one.started, began)}: {came}{where} in {duration(one.total_s)}; {place}"


def _site_past(account: "SiteAccount") -> Iterator[str]:
    from trapline.crawl.records import VISITS

    yield account.origin
    yield f"  pages: {account.known:,} known, {account.fetched:,} fetched"
    if account.first is None or account.last is None:
        in_vain = account.given_up is not None and account.given_up.kind == VISITS
        yield "  visited in vain: nothing was ever sent there" if in_vain else "  never visited"
    else:
        span = f"the first {_since(account.first, account.began)}, the last until {_since(account.last, account.began)}"
        yield f"  visits: {account.visits:,}, {span}"
    if account.given_up is not None:
        yield f"  given up {_given_up(account.given_up, account.began)}"


def _given_up(one: "GivenUp", began: float) -> str:
    return f"{_since(one.at, began or one.at)}: {one.why}"


def _since(moment: float, began: float) -> str:
    return f"{moment - began:,.1f} s after the crawl began" if moment > began else "when the crawl began"


# ---- what is to come


def _part(folder: Path, target: "Target") -> tuple[Path, "Target"]:
    """The crawl whose frontier has it: that of the folder, or of one of its parts, where it last moved to."""
    from trapline.crawl.account import found
    from trapline.crawl.folder import opened
    from trapline.parallel.manifest import is_parallel, read

    for part in reversed(read(folder).parts) if is_parallel(folder) else ():
        with suppress(ConfigError), closing(opened(part)) as database:  # it does not know it
            return part, found(database, target.name)
    return folder, target


def _present(reading: "Reading", target: "Target") -> Iterator[str]:
    from trapline.cli.compiling import step
    from trapline.crawl.checkpoint import newest
    from trapline.crawl.resume import rebuilt

    if reading.last_batch() != newest(reading.folder):
        _compile_replay()
    with step("replaying", 1, "crawl"):
        frontier, now = rebuilt(reading)
    if target.page is not None:
        page = frontier.explain_page(target.page, now)
        yield from _page_present(page)
        yield from _site_present(page.site, reading, now)
    else:
        yield from _site_present(frontier.explain_site(target.site, now), reading, now)


def _compile_replay() -> None:
    """What a crawl that began anew never needed: after a first crawl it is the first to be waited for here."""
    import trapline.frontier.replay  # noqa: F401  its kernels, imported before they are counted
    from trapline.cli.compiling import waiting_by
    from trapline.cli.progress import Progress
    from trapline.jit import ready

    with Progress("compiling, this once, what makes a crawl again from its log", plain_every_s=2.0) as progress:
        ready(progress.update, waiting_by(progress))


def _page_present(page: "PageExplanation") -> Iterator[str]:
    tries = f", {counted(page.tries, 'failed try').replace('trys', 'tries')}" if page.tries else ""
    yield f"  at the last commit: {page.life} (depth {page.depth}{tries}); {page.rule}"
    if page.key is not None:
        yield f"  in its site: rank {page.key:g}, {counted(page.pages_before or 0, 'page')} before it"


def _site_present(site: "SiteExplanation", reading: "Reading", now: float) -> Iterator[str]:
    rank = "" if site.rank is None else f", rank {site.rank:g}"
    until = f" for another {duration(max(site.wait_until - now, 0.0))}" if math.isfinite(site.wait_until) else ""
    yield f"  its site at the last commit: {counted(site.waiting, 'page')} waiting{rank}; {site.rule}{until}"
    if site.sites_before:
        names = ", ".join(_origins(reading, site.first_before))
        more = ", ..." if site.sites_before > len(site.first_before) else ""
        yield f"  before it: {counted(site.sites_before, 'site')} ({names}{more})"
    elif site.sites_before == 0:
        yield "  before it: no site; it is the next to be visited"


def _origins(reading: "Reading", sites: tuple[int, ...]) -> list[str]:
    marks = ", ".join("?" * len(sites))
    named = dict(reading.connection.execute(f"select id, origin from site where id in ({marks})", sites))
    return [named.get(site, f"site {site}") for site in sites]
