"""Replay: make the logged calls again. Durability is this: a snapshot, and the log of calls since."""

from collections.abc import Callable, Iterable

import numpy as np

from trapline.errors import InvariantError
from trapline.frontier.answers import Drained, Outcome, Visit, WaitUntil
from trapline.frontier.frontier import Frontier
from trapline.frontier.journal import Call, Frame
from trapline.frontier.layout import DRAINED, RESCORE, WAIT
from trapline.frontier.transfer import SiteExport


def replay(frontier: Frontier, frames: Iterable[Frame]) -> int:
    """Make the calls again, comparing every answer of `next`; how many calls there were."""
    count = 0
    for frame in frames:
        _CALLS[frame.call](frontier, frame)
        count += 1
    return count


def _visit(visit_id: int) -> Visit:
    return Visit(visit_id, -1, [], 0.0)


def _next(frontier: Frontier, frame: Frame) -> None:
    now, moment = frame.floats
    answer = frontier.next(now)
    if isinstance(answer, Visit):
        ours = (len(answer.pages), answer.id, answer.site, *answer.pages, answer.expires_at)
    elif isinstance(answer, WaitUntil):
        ours = (WAIT, answer.time)
    else:
        ours = (DRAINED, moment) if isinstance(answer, Drained) else (RESCORE, answer.fetched, moment)
    logged = (*frame.integers, *frame.payload.tolist(), moment)
    if ours != logged:
        raise InvariantError(f"replay: next({now}) gave {ours}, the log has {logged}")


def _add_pages(frontier: Frontier, frame: Frame) -> None:
    count = frame.integers[0]
    frontier.add_pages(frame.payload[:count], frame.payload[count:])


def _set_column(frontier: Frontier, frame: Frame) -> None:
    column, first = frame.integers
    frontier.set_column(frontier.strategy.page.columns[column], frame.payload, first)


def _report(frontier: Frontier, frame: Frame) -> None:
    visit_id, page, result = frame.integers
    frontier.report(_visit(visit_id), page, result, frame.floats[0], frame.payload, frame.floats[1])


def _finish(frontier: Frontier, frame: Frame) -> None:
    (visit_id, allowed), (now, connection_s, not_before) = frame.integers, frame.floats
    frontier.finish(_visit(visit_id), Outcome((), connection_s, allowed=allowed, not_before=not_before), now)


def _set_site(frontier: Frontier, frame: Frame) -> None:
    site, per_connection, pages = frame.integers
    now, delay_s, not_before = frame.floats
    frontier.set_site(
        site,
        now,
        delay_s=None if delay_s != delay_s else delay_s,
        per_connection=None if per_connection < 0 else per_connection,
        pages=None if pages < 0 else pages,
        not_before=None if not_before != not_before else not_before,
    )


def _import_site(frontier: Frontier, frame: Frame) -> None:
    site, n = frame.integers
    export = SiteExport.from_numbers(frame.payload[n:], n, len(frontier.strategy.page.columns))
    frontier.import_site(export, site, frame.payload[:n].astype(np.int32), frame.floats[0])


_CALLS: dict[Call, Callable[[Frontier, Frame], object]] = {
    Call.ADD_SITES: lambda f, frame: f.add_sites(frame.integers[0], frame.floats[0], frame.payload),
    Call.ADD_PAGES: _add_pages,
    Call.SET_COLUMN: _set_column,
    Call.DISCOVER: lambda f, frame: f.discover(frame.payload, frame.floats[0]),
    Call.NEXT: _next,
    Call.REPORT: _report,
    Call.FINISH: _finish,
    Call.RESOLVE: lambda f, frame: f.resolve(frame.integers[0], frame.integers[1], frame.floats[0]),
    Call.SET_SITE: _set_site,
    Call.EXPORT_SITE: lambda f, frame: f.export_site(frame.integers[0], frame.floats[0]),
    Call.IMPORT_SITE: _import_site,
    Call.RESCORE: lambda f, frame: f.rescore(frame.payload, frame.floats[0]),
}
