"""One partition as a process of its own: `python -m trapline.parallel.worker`, told what it is by one line of JSON on its standard input.

It is an ordinary crawl into a folder of its own that is a member of a larger one. If the folder is there, it goes on. Exit codes are
those of the command line: 0 done, 2 the user must act (one line on stderr), 1 a defect; and 75 if it can be started again: its store has
died, its coordinator was out of reach for too long, or another machine holds its folder. When its standard input ends, whoever started
it is gone, and may be started anew elsewhere: it dies at once, so that no site ever has two visitors.
"""

import json
import os
import signal
import sys
import threading
import time
from dataclasses import asdict, dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

from trapline.crawl.opening import Opened, Prepared, opened, prepare_old
from trapline.crawl.options import CrawlOptions
from trapline.crawl.resume import strategy_of
from trapline.crawl.run import run_crawl
from trapline.crawl.store.client import StoreDiedError
from trapline.crawl.store.folder import DATABASE, note_partition
from trapline.crawl.store.lock import holding
from trapline.crawl.store.reading import Reading
from trapline.errors import ConfigError
from trapline.fetch.dns import Resolver
from trapline.parallel.manifest import MANIFEST
from trapline.parallel.member import Lead, LiveMember
from trapline.parallel.partition import Partitioning
from trapline.parallel.places import Places
from trapline.parallel.wire import Pass
from trapline.terminal import say

COMMAND = ("-P", "-m", "trapline.parallel.worker")  # for Python; -P: not what lies in the user's folder
_ENDS_WITHIN_S = 15.0
_LEASE_ENDS_WITHIN_S = 120.0  # for which a machine that is gone still has its locks: NFSv4's is 90 s by default


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker is told."""

    folder: str
    mark: str  # of its folder
    crawl: str
    token: str
    partition: int
    partitioning: dict[str, Any]
    sizes: list[int]  # how many partitions the crawl has had, one number after the other; the last: has
    options: str
    coordinator: tuple[str, int]
    limited: bool  # its coordinator says how many pages it may have
    listen: str = "127.0.0.1"  # where it waits for the others to call
    host: str = ""  # where they reach it; "": the address from which it reaches the coordinator
    patience_s: float = inf  # for how long it goes on without its coordinator
    began: float | None = None  # the crawl; None: nobody has noted it

    def to_line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> "Task":
        return cls(**json.loads(line))


class OutOfReachError(ConfigError):
    """The coordinator was, for too long. The folder is whole."""


class HeldElsewhereError(ConfigError):
    """Another machine has the folder, or had it and is gone: nobody here can say which."""


def work(task: Task) -> None:
    options, folder = CrawlOptions.from_json(task.options), Path(task.folder)
    own = Pass(task.crawl, task.token.encode(), task.partition)
    _wait_for_the_last(folder)
    crawl = _opened(folder, options, task)
    places = _places(folder, task, options)
    lead = Lead((task.coordinator[0], task.coordinator[1]), task.listen, task.host, task.patience_s, task.limited)
    resolver = Resolver(options.hosts, options.nameservers)
    member = LiveMember(own, places, resolver, folder, lead, crawl.state.notes)
    run_crawl(crawl, member.view(), member)
    if member.is_lost:
        host, port = task.coordinator
        raise OutOfReachError(f"partition {task.partition} cannot reach its coordinator at {host}, port {port}")


def _wait_for_the_last(folder: Path) -> None:
    """Whoever crawled into the folder before us and lost its coordinator or its supervisor is about to end; its machine may be gone."""
    began = time.monotonic()
    while (found := holding(folder)) is not None:
        if time.monotonic() - began >= (_LEASE_ENDS_WITHIN_S if found.is_elsewhere else _ENDS_WITHIN_S):
            break
        time.sleep(0.1)
    if found is not None and found.is_elsewhere:
        raise HeldElsewhereError(f"{folder}: is being {found.doing} by {found}")


def _opened(folder: Path, options: CrawlOptions, task: Task) -> Opened:
    """A folder of ours, new or old."""
    if (folder / DATABASE).exists():
        check_mark(folder, task.mark, task.sizes[-1], task.began)
        crawl = opened(replace(prepare_old(folder), options=options))  # goals of refresh may have changed
    else:
        crawl = opened(Prepared(folder, options, strategy_of(options), new=True, began=task.began))
    try:  # of an old one too: it may have been killed before it had its mark
        note_partition(crawl.claim, task.mark)
    except BaseException:
        crawl.claim.release()
        raise
    return crawl


def _places(folder: Path, task: Task, options: CrawlOptions) -> Places:
    reading = Reading(folder)
    found, size = reading.assigned(), reading.size()
    reading.close()
    return Places(Partitioning(**task.partitioning), options.hosts, task.partition, found, task.sizes, size)


def check_mark(folder: Path, mark: str, partitions: int, began: float | None) -> None:
    """`ConfigError` if the folder is of another crawl, or another part of this one, or knows of more partitions than it is said to have, or
    counts time from another moment."""
    reading = Reading(folder)
    meta, begun, most = reading.meta(), reading.last_batch() > 0, reading.most_partitions()
    reading.close()
    found = meta.get("partition")
    if most > partitions:
        raise ConfigError(
            f"{folder}: is of a crawl of {most} processes or more, not of {partitions}; restore {MANIFEST} beside it"
        )
    if found != mark and (begun or found is not None):  # one that was killed at its first moment may have none
        raise ConfigError(f"{folder}: belongs to another crawl; restore the folder from a copy, or crawl anew")
    if began is not None and float(meta["created"]) != began:
        raise ConfigError(f"{folder}: began at another moment than {MANIFEST} beside it says; restore that from a copy")


def _die_with_the_other_end(descriptor: int) -> None:
    while os.read(descriptor, 1):  # not `sys.stdin`: its lock would be held when the interpreter ends
        pass
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> int:
    task = Task.from_line(sys.stdin.buffer.readline())
    threading.Thread(target=_die_with_the_other_end, args=(sys.stdin.fileno(),), daemon=True).start()
    try:
        work(task)
    except (StoreDiedError, OutOfReachError, HeldElsewhereError) as error:
        say(str(error), err=True)
        return os.EX_TEMPFAIL  # it can be started again, as if it had died itself
    except ConfigError as error:
        say(str(error), err=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
