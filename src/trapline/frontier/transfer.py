"""Transfer of a site from one frontier to another: export, import, and the pages that were fetched before the move.

Page ids are local to a frontier, so the caller maps the pages by their URLs. A site with very many pages may be transferred
in parts.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from trapline.errors import InvariantError
from trapline.frontier.core import kernels
from trapline.frontier.core.core import Core
from trapline.frontier.journal import Call
from trapline.frontier.layout import DEEPEST, FETCHED, GONE, UNKNOWN, Array

# Fields of the site's record that are copied unchanged.
_RECORD = (
    "connection_s",
    "response_s",
    "delay_s",
    "taken",
    "known",
    "budget",
    "per_connection",
    "requests",
    "failures",
    "connections",
    "responses",
)


@dataclass(frozen=True, eq=False, slots=True)
class SiteExport:
    """One exported site: its record, its remaining delay, and its waiting pages in the order in which they joined the queue."""

    record: dict[str, float]
    remaining_delay_s: float
    pages: Array  # ids in the frontier that exported the site
    keys: Array
    depths: Array
    tries: Array
    columns: Array  # [pages, c]

    def numbers(self) -> Array:
        """Return everything except the page ids as one row, for the log of calls."""
        scalars = [self.record[name] for name in _RECORD] + [self.remaining_delay_s]
        return np.concatenate([scalars, self.keys, self.depths, self.tries, self.columns.ravel()])

    @classmethod
    def from_numbers(cls, row: Array, n: int, columns: int) -> "SiteExport":
        """Return the export of n pages that `numbers` made the row from; its page ids are 0."""
        scalars, rest = row[: len(_RECORD) + 1], row[len(_RECORD) + 1 :]
        keys, depths, tries, values = np.split(rest, [n, 2 * n, 3 * n])
        record = dict(zip(_RECORD, scalars.tolist(), strict=False))
        return cls(record, float(scalars[-1]), np.zeros(n, np.int32), keys, depths, tries, values.reshape(n, columns))

    def parts(self, most: int) -> Iterator["SiteExport"]:
        """Split the export into parts of at most `most` pages each, to be imported in this order. There is at least one part."""
        pages = len(self.pages)
        for first in range(0, max(pages, 1), most):
            last = min(first + most, pages)
            columns = (self.pages, self.keys, self.depths, self.tries, self.columns)
            # Without the pages of later parts
            record = {**self.record, "known": self.record["known"] - (pages - last)}
            yield SiteExport(record, self.remaining_delay_s, *(column[first:last] for column in columns))


def export_site(frontier: Core, site: int, now: float) -> SiteExport:
    """Remove the site and return it. Its waiting pages become GONE here, and its budget becomes 0."""
    frontier.check_site(site, not_visited=True)
    export = _describe(frontier, site, now)
    frontier.note(Call.EXPORT_SITE, None, 0, site, now)
    frontier.run_kernel(kernels.empty_site, site, export.pages, len(export.pages), now)
    return export


def _describe(frontier: Core, site: int, now: float) -> SiteExport:
    """Return the export of a site without changing the frontier."""
    s = frontier.state
    record = s.site[site]
    levels = [frontier.waiting_pages(site, level) for level in range(s.queue.shape[1])]
    pages = np.concatenate([pages for pages, _ in levels])
    keys = np.concatenate([keys for _, keys in levels])
    order = np.argsort(s.page["serial"][pages])
    pages = pages[order]
    ready_at = max(float(record.ready_at), float(s.group[record.group].ready_at) if record.group >= 0 else -math.inf)
    return SiteExport(
        record={name: float(record[name]) for name in _RECORD},
        remaining_delay_s=max(0.0, ready_at - max(now, float(s.run[0].now))),
        pages=pages,
        keys=keys[order],
        depths=s.page["depth"][pages],
        tries=s.page["tries"][pages],
        columns=s.columns[pages][:, : len(frontier.strategy.page.columns)],
    )


def import_site(frontier: Core, export: SiteExport, site: int, pages: Sequence[int] | Array, now: float) -> None:
    """Import an export, or the next part of one, as `site` with `pages`, which are registered here and not discovered yet."""
    given = np.ascontiguousarray(pages, np.int32)
    _check_import(frontier, export, site, given)
    row = np.concatenate([given, export.numbers()])
    frontier.note(Call.IMPORT_SITE, row, len(row), site, len(given), now)
    s = frontier.state
    record, run = s.site[site], s.run[0]
    group, is_new = int(record.group), record.known == 0
    for name in _RECORD:
        setattr(record, name, export.record[name])
    record.known = int(export.record["known"]) - len(given)  # `admit_pages` counts the given pages
    record.ready_at = max(now, float(run.now)) + export.remaining_delay_s
    if is_new:
        _count_estimates(frontier, site)
    s.page["depth"][given], s.page["tries"][given] = export.depths, export.tries
    own = frontier.strategy.page.page_columns  # the page numbers of the other frontier mean nothing here
    columns = np.array([column for column in range(export.columns.shape[1]) if column not in own], np.int64)
    s.columns[np.ix_(given, columns)] = export.columns[:, columns]
    frontier.run_kernel(kernels.change_site, site, group, now)
    frontier.run_kernel(kernels.admit_pages, given, np.ascontiguousarray(export.keys), len(given), now)


def _check_import(frontier: Core, export: SiteExport, site: int, pages: Array) -> None:
    frontier.check_site(site, not_visited=True)
    s = frontier.state
    if len(pages) != len(export.keys):
        raise InvariantError(
            f"import_site: {len(pages)} pages for {len(export.keys)} exported pages; give one id for each"
        )
    if s.site[site].known > export.record["known"] - len(pages):
        raise InvariantError(f"site {site} has pages already; import into a new site, and parts in their order")
    _check_new(frontier, pages)
    if np.any(s.page["site"][pages] != site):
        raise InvariantError(f"import_site: a page does not belong to site {site}; register the pages at that site")


def gone_elsewhere(frontier: Core, pages: Sequence[int] | Array, now: float) -> None:
    """Mark pages as GONE that another partition fetched or that were refused there."""
    given = np.ascontiguousarray(pages, np.int32)
    _check_new(frontier, given)
    run = frontier.state.run[0]
    run.now = max(float(run.now), now)
    frontier.note(Call.GONE_ELSEWHERE, given, len(given), now)
    frontier.state.state[given] = GONE
    run.gone += len(given)


def fetched_elsewhere(frontier: Core, pages: Sequence[int] | Array, depths: Sequence[int] | Array, now: float) -> None:
    """Mark pages as FETCHED that another partition fetched, each with its depth."""
    given, deep = np.ascontiguousarray(pages, np.int32), np.ascontiguousarray(depths, np.int32)
    _check_new(frontier, given)
    if len(deep) != len(given) or np.any((deep < 0) | (deep > DEEPEST)):
        raise InvariantError(
            f"fetched_elsewhere: {len(deep)} depths for {len(given)} pages; give one per page, in 0..{DEEPEST}"
        )
    run = frontier.state.run[0]
    run.now = max(float(run.now), now)
    frontier.note(Call.FETCHED_ELSEWHERE, np.concatenate([given, deep]), 2 * len(given), now)
    frontier.state.state[given] = FETCHED
    frontier.state.page["depth"][given] = deep
    run.fetched += len(given)


def _check_new(frontier: Core, pages: Array) -> None:
    """Raise InvariantError unless the pages are registered, UNKNOWN and different."""
    if len(pages) and not (pages.min() >= 0 and pages.max() < frontier.pages):
        raise InvariantError("a page from another partition is not registered; register it with add_pages first")
    if np.any(frontier.state.state[pages] != UNKNOWN) or len(np.unique(pages)) < len(pages):
        raise InvariantError(
            "a page from another partition is known already, or was given twice; give every new page once"
        )


def _count_estimates(frontier: Core, site: int) -> None:
    """Add the site's estimates to the totals over the measured sites."""
    run, record = frontier.state.run[0], frontier.state.site[site]
    if record.connections > 0:
        run.connection_total += record.connection_s
        run.connection_sites += 1
    if record.responses > 0:
        run.response_total += record.response_s
        run.response_sites += 1
