"""The schedule of snapshots in a running crawl: when one is due, and which logs can be deleted when the database has reached it.

crawler/engine/run.py calls `Snapshots` at every tick and at every commit; checkpoint.py writes and removes snapshots.
"""

from pathlib import Path

from trapline.crawler.files import checkpoint
from trapline.crawler.files.resume import CrawlState
from trapline.crawler.store.outbox import Outbox

# An idle crawl writes some 300 bytes of log per second, a busy one some 300 per page. A snapshot is due after this many
# bytes or after enough pages, whichever comes first.
_MOST_LOG_BYTES = 256 << 20


class Snapshots:
    def __init__(self, folder: Path, state: CrawlState, outbox: Outbox, pages: int) -> None:
        """`pages`: fetches between two snapshots; a refetched page counts each time."""
        self._folder, self._state, self._outbox, self._pages = folder, state, outbox, pages
        self._log_bytes = outbox.log_bytes
        self._due_at = self._fetches() + pages
        self._newest = state.last_batch  # batch of the last snapshot; before the first one, last batch of earlier runs
        outbox.forget = checkpoint.tidy(folder, state.last_batch)

    @property
    def is_due(self) -> bool:
        return self._fetches() >= self._due_at or self._outbox.log_bytes - self._log_bytes >= _MOST_LOG_BYTES

    def take(self) -> None:
        state = self._state
        self._outbox.flush()
        self._newest = self._outbox.number
        checkpoint.save(self._folder, self._newest, state.frontier, state.seen, state.refresher)
        self._due_at, self._log_bytes = self._fetches() + self._pages, self._outbox.log_bytes

    def committed(self, batch: int) -> None:
        """Note that the database has reached this batch, and remove what is no longer needed."""
        if batch == self._newest:
            self._outbox.forget = checkpoint.tidy(self._folder, batch)

    def _fetches(self) -> int:
        tally = self._state.tally
        return tally.fetched + tally.refetched + tally.redirects
