"""Links to pages of other partitions that wait in this partition: for the next exchange, or, in mode cross-over, until
the partition has no own pages left.

The links to one URL are one row, and rows are in the order in which their URLs were found. The exchange adds and takes
rows (exchange.py). A row that is still here when a batch goes to the store is written to disk with this batch, the one
that also has the page with the link; so a row that is taken at once never goes to disk.
"""

from collections.abc import Iterable
from itertools import islice

from trapline.crawl.engine.records import PendingLink


class PendingLinks:
    def __init__(self, on_disk: Iterable[PendingLink] = ()) -> None:
        """`on_disk`: the rows that earlier runs left."""
        self._rows = {row.url: row for row in on_disk}
        self._on_disk = set(self._rows)
        self._changed: dict[str, None] = {}  # rows that are not on disk as they are here
        self._taken: list[str] = []  # URLs whose rows are on disk, and no longer here

    def __bool__(self) -> bool:
        return bool(self._rows)

    @property
    def has_changes(self) -> bool:
        """Whether the rows on disk differ from those here."""
        return bool(self._changed or self._taken)

    def add(self, row: PendingLink) -> None:
        before = self._rows.get(row.url)
        if before is not None:
            depth = min(row.depth, before.depth)
            row = PendingLink(row.url, before.links + row.links, depth, before.share + row.share)
        self._rows[row.url] = row
        self._changed[row.url] = None

    def take(self, most: int | None = None) -> list[PendingLink]:
        """Remove and return the first `most` rows, or all."""
        taken = list(islice(self._rows.values(), most))
        for row in taken:
            del self._rows[row.url]
            self._changed.pop(row.url, None)
            if row.url in self._on_disk:
                self._on_disk.remove(row.url)
                self._taken.append(row.url)
        return taken

    def take_changes(self) -> tuple[list[PendingLink], list[str]]:
        """Return what to write to disk with the next batch: new or changed rows, and the URLs of rows to delete first."""
        changed, taken = [self._rows[url] for url in self._changed], self._taken
        self._on_disk.update(self._changed)
        self._changed, self._taken = {}, []
        return changed, taken
