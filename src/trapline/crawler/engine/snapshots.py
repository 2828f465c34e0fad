"""The snapshots of a running crawl: takes them when they are due, and lets the store delete the log that they replace.

run.py calls this module at every tick and at every commit. What a snapshot contains, and which ones are kept, is in
crawler/files/checkpoint.py.
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
        """`pages`: fetches between two snapshots, until many pages are known; a refetched page counts each time."""
        self._folder, self._state, self._outbox, self._pages = folder, state, outbox, pages
        self._last_fetches, self._last_log_bytes = self._fetches(), outbox.log_bytes  # at the last snapshot
        self._newest = state.last_batch  # batch of the last snapshot; before the first one, last batch of earlier runs
        outbox.forget = checkpoint.tidy(folder, state.last_batch)

    @property
    def is_due(self) -> bool:
        fetches, log_bytes = self._fetches() - self._last_fetches, self._outbox.log_bytes - self._last_log_bytes
        return checkpoint.is_due(fetches, log_bytes, self._state.frontier.pages, self._pages, _MOST_LOG_BYTES)

    def take(self) -> None:
        state = self._state
        self._outbox.flush()
        self._newest = self._outbox.number
        checkpoint.save(self._folder, self._newest, state.frontier, state.seen, state.refresher)
        self._last_fetches, self._last_log_bytes = self._fetches(), self._outbox.log_bytes

    def committed(self, batch: int) -> None:
        """Note that the database has reached this batch, and remove what is no longer needed."""
        if batch == self._newest:
            self._outbox.forget = checkpoint.tidy(self._folder, batch)

    def _fetches(self) -> int:
        tally = self._state.tally
        return tally.fetched + tally.refetched + tally.redirects
