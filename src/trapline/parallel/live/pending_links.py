"""Links to pages of other partitions that wait in this partition: for the next exchange, or, in mode cross-over, until
the partition has no own pages left.

The links to one URL are one row, and rows are in the order in which their URLs were found. The exchange adds and takes
rows (exchange.py). A row that is still here when a batch goes to the store is written to disk with this batch, the one
that also has the page with the link; so a row that is taken at once never goes to disk.

In mode cross-over the number of rows has no limit. Like the URL store (crawler/discovery/url_store.py), the partition then
keeps only some of them in memory, those that it takes next, and reads the others from disk when these are taken.
"""

from collections.abc import Callable
from itertools import islice

from trapline.crawler.engine.records import PendingLink

ReadPendingLinks = Callable[[int | None], list[PendingLink]]


class PendingLinks:
    def __init__(self, read: ReadPendingLinks = lambda _: [], most: int | None = None) -> None:
        """`read`: returns the first rows on disk, up to a number. `most`: rows to keep in memory when a batch goes to the
        store; None: all."""
        self._read, self._most = read, most
        # Links that are not on disk, which the store adds to the row of the URL; and URLs whose rows are on disk and no longer here.
        self._changed: dict[str, PendingLink] = {}
        self._taken: list[str] = []
        self.load()

    def load(self) -> None:
        """Read the first rows from disk. All changes must be on disk, and no row in memory."""
        self._rows = {row.url: row for row in self._read(self._most)}
        self._on_disk = set(self._rows)  # of the URLs in memory
        self._has_more = len(self._rows) == self._most  # there may be rows that are on disk only, or become so

    def __bool__(self) -> bool:
        return bool(self._rows) or self._has_more

    @property
    def must_load(self) -> bool:
        """Whether the rows in memory are used up, and there may be others on disk."""
        return self._has_more and not self._rows

    @property
    def has_changes(self) -> bool:
        """Whether the rows on disk differ from those here."""
        return bool(self._changed or self._taken)

    def add(self, row: PendingLink) -> None:
        if row.url in self._rows or not self._has_more:
            self._rows[row.url] = _sum(self._rows.get(row.url), row)
        self._changed[row.url] = _sum(self._changed.get(row.url), row)

    def take(self, most: int | None = None) -> list[PendingLink]:
        """Remove and return the first `most` rows in memory, or all."""
        taken = list(islice(self._rows.values(), most))
        for row in taken:
            del self._rows[row.url]
            self._changed.pop(row.url, None)
            if row.url in self._on_disk:
                self._on_disk.remove(row.url)
                self._taken.append(row.url)
        return taken

    def take_changes(self) -> tuple[list[PendingLink], list[str]]:
        """Return what to write to disk with the next batch: links to add, and the URLs of rows to delete first."""
        changed, taken = list(self._changed.values()), self._taken
        self._on_disk.update(url for url in self._changed if url in self._rows)
        self._changed, self._taken = {}, []
        if self._most is not None and len(self._rows) > self._most:
            for url in list(islice(self._rows, self._most, None)):
                del self._rows[url]
                self._on_disk.remove(url)
            self._has_more = True
        return changed, taken


def _sum(before: PendingLink | None, row: PendingLink) -> PendingLink:
    if before is None:
        return row
    depth = min(row.depth, before.depth)
    return PendingLink(row.url, before.links + row.links, depth, before.share + row.share)
