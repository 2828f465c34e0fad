"""When a snapshot of a running crawl is due, and what is superfluous once the database has reached it.

What a snapshot is, and which are kept, checkpoint.py knows. Who calls: run.py, at every tick and at every commit.
"""

from pathlib import Path

from trapline.crawl import checkpoint
from trapline.crawl.outbox import Outbox
from trapline.crawl.resume import State

# An idle crawl writes some 300 bytes of log a second, a busy one some 300 a page: whichever comes first, this or enough pages.
_MOST_LOG_BYTES = 256 << 20


class Snapshots:
    def __init__(self, folder: Path, state: State, outbox: Outbox, pages: int) -> None:
        """`pages`: between two snapshots, each counted as often as it is fetched."""
        self._folder, self._state, self._outbox, self._pages = folder, state, outbox, pages
        self._log_bytes = outbox.log_bytes
        self._due_at = self._had() + pages
        self._newest = state.last_batch  # of the last snapshot, or a batch before it
        outbox.forget = checkpoint.tidy(folder, state.last_batch)

    @property
    def is_due(self) -> bool:
        return self._had() >= self._due_at or self._outbox.log_bytes - self._log_bytes >= _MOST_LOG_BYTES

    def take(self) -> None:
        state = self._state
        self._outbox.flush()
        self._newest = self._outbox.number
        checkpoint.save(self._folder, self._newest, state.frontier, state.seen, state.refresher)
        self._due_at, self._log_bytes = self._had() + self._pages, self._outbox.log_bytes

    def committed(self, batch: int) -> None:
        """The database has reached this batch."""
        if batch == self._newest:
            self._outbox.forget = checkpoint.tidy(self._folder, batch)

    def _had(self) -> int:
        return self._state.tally.fetched + self._state.tally.refetched
