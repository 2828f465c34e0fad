"""The crawls of a service: one folder with a scheduled frontier for each crawl id. Knows no messages.

DIR/crawl-ID has the frontier of a crawl (ID as in a URL), DIR/service.json whether the service is active. All crawls are open from the
start, because a call may ask for the URLs of any of them.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote, unquote

from trapline import output
from trapline.crawler.files import lock
from trapline.durable.scheduled import ScheduledFrontier, SteadyClock
from trapline.errors import ConfigError
from trapline.frontier import Rules
from trapline.strategies import Strategy

DEFAULT = "DEFAULT"
MOST_CRAWLS = 1_000
MOST_ID_BYTES = 80  # a name of a file has up to 255, and a quoted byte takes three
_STATE = "service.json"
_PREFIX, _DELETED = "crawl-", "deleted-"


class Crawls:
    def __init__(
        self, folder: Path, strategy: Strategy, rules: Rules, most_reserved: int, clock: Callable[[], float]
    ) -> None:
        self._most_reserved = most_reserved
        self._folder, self._strategy, self._rules = folder, strategy, rules
        self._clock = SteadyClock(clock)
        self._open: dict[str, ScheduledFrontier] = {}
        check_folder(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = lock.take(folder, "used")
        try:
            self.is_active = self._read_state()
            for entry in sorted(folder.iterdir()):
                if entry.name.startswith(_DELETED):
                    shutil.rmtree(entry)
                elif entry.name.startswith(_PREFIX):
                    self.get_or_make(unquote(entry.name.removeprefix(_PREFIX)))
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[str]:
        """Yield the ids of all crawls."""
        return iter(list(self._open))

    def get(self, crawl: str) -> ScheduledFrontier | None:
        return self._open.get(crawl)

    def get_or_make(self, crawl: str) -> ScheduledFrontier:
        """Return the frontier of a crawl. Raise `ConfigError` if a new crawl cannot be made."""
        frontier = self._open.get(crawl)
        if frontier is None:
            if len(self._open) >= MOST_CRAWLS:
                raise ConfigError(f"crawl id {crawl!r}: there are {MOST_CRAWLS} crawls already; delete one")
            if len(crawl.encode()) > MOST_ID_BYTES:
                raise ConfigError(f"crawl id {crawl[:MOST_ID_BYTES]!r}...: has more than {MOST_ID_BYTES} bytes")
            frontier = ScheduledFrontier(
                self._place(crawl), self._strategy, self._rules, most_reserved=self._most_reserved, clock=self._clock
            )
            output.sync(self._folder)
            self._open[crawl] = frontier
        return frontier

    def delete(self, crawl: str) -> int:
        """Delete a crawl with all its files, and return the number of its URLs."""
        frontier = self._open.pop(crawl, None)
        if frontier is None:
            return 0
        known = frontier.counts().known
        frontier.discard()
        place = self._place(crawl)
        gone = place.with_name(place.name.replace(_PREFIX, _DELETED, 1))
        place.rename(gone)  # at once: what a crash leaves of it is removed at the next start
        output.sync(self._folder)
        shutil.rmtree(gone)
        return known

    def now(self) -> float:
        return self._clock()

    def set_active(self, is_active: bool) -> None:
        with output.atomic(self._folder / _STATE) as file:
            file.write(json.dumps({"active": is_active}).encode())
        self.is_active = is_active

    def close(self) -> None:
        with ExitStack() as stack:  # each of them, whatever an earlier one raises
            stack.callback(self._lock.release)
            for frontier in self._open.values():
                stack.callback(frontier.close)

    def discard(self) -> None:
        """End all crawls without keeping what was not committed."""
        for frontier in self._open.values():
            frontier.discard()

    def _place(self, crawl: str) -> Path:
        return self._folder / f"{_PREFIX}{quote(crawl, safe='')}"

    def _read_state(self) -> bool:
        path = self._folder / _STATE
        try:
            return bool(json.loads(path.read_text())["active"]) if path.exists() else True
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"{path}: cannot be read: {error}; delete this file to make the service active"
            ) from error


def check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder}: exists and is not a folder; name another folder")
    if folder.is_dir():
        ours = (_PREFIX, _DELETED, _STATE, "lock")
        strangers = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith(ours))
        if strangers:
            raise ConfigError(f"{folder}: has other files, such as {strangers[0]}; name a new folder")
