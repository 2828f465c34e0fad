"""One partition as a process: `python -m trapline.parallel.live.worker`. It reads its task as one line of JSON from
standard input.

A worker is an ordinary crawl with its own folder, and a member of a parallel crawl (member.py). If the folder exists,
the worker resumes it. Exit codes are those of the command line: 0 done, 2 the user must act (one line on stderr), 1 a
defect. In addition, 75 means that the worker can be started again: its store has died, its coordinator was out of reach
for too long, or another machine holds its folder. When standard input ends, the process that started the worker is
gone, and the partition may be started elsewhere: the worker dies at once, so that no site is ever visited by two
processes.
"""

import gc
import json
import os
import signal
import sys
import threading
import time
from dataclasses import asdict, dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.run import run_crawl
from trapline.crawler.files.layout import DATABASE, note_partition
from trapline.crawler.files.lock import holding
from trapline.crawler.files.opening import Opened, Prepared, opened, prepare_old
from trapline.crawler.files.reading import Reading
from trapline.crawler.files.resume import strategy_of
from trapline.crawler.store.client import StoreDiedError
from trapline.errors import ConfigError
from trapline.fetch.dns import Resolver
from trapline.parallel.folder.link_policy import LinkPolicy
from trapline.parallel.folder.manifest import check_mark
from trapline.parallel.live.member import Lead, LiveMember
from trapline.parallel.live.site_owner import SiteOwners
from trapline.parallel.partition import Partitioning
from trapline.parallel.transport.wire import Pass
from trapline.terminal import say

# Arguments of Python; -P: import nothing from the user's working directory
COMMAND = ("-P", "-m", "trapline.parallel.live.worker")
_ENDS_WITHIN_S = 15.0
_LEASE_ENDS_WITHIN_S = 120.0  # a machine that is gone keeps its locks for a lease: in NFSv4 90 s by default


@dataclass(frozen=True, slots=True)
class WorkerTask:
    """What a worker has to do, as it is written to its standard input."""

    folder: str
    mark: str  # the mark that the folder's database must have
    crawl: str
    token: str
    partition: int
    partitioning: dict[str, Any]
    sizes: list[int]  # the numbers of partitions that the crawl has had so far; the last one is the present number
    options: str
    coordinator: tuple[str, int]
    limited: bool  # the coordinator sets how many pages the worker may fetch
    listen: str = "127.0.0.1"  # where the worker accepts connections of other partitions
    host: str = ""  # where they reach it; "": the address from which it reaches the coordinator
    patience_s: float = inf  # how long the worker continues without its coordinator
    began: float | None = None  # when the crawl began; None: not recorded
    policy: dict[str, Any] = field(default_factory=lambda: asdict(LinkPolicy()))
    paused: bool = False  # the crawl is paused
    seen_key: str = ""  # of the fingerprints of URLs, in hexadecimal digits; "": this partition has its own key

    def to_line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> "WorkerTask":
        return cls(**json.loads(line))


class OutOfReachError(ConfigError):
    """The coordinator was out of reach for too long. The folder is intact."""


class HeldElsewhereError(ConfigError):
    """Another machine holds the folder, or held it and is gone: from here the two cannot be told apart."""


def work(task: WorkerTask) -> None:
    options, folder = CrawlOptions.from_json(task.options), Path(task.folder)
    own = Pass(task.crawl, task.token.encode(), task.partition)
    _wait_for_the_last(folder)
    crawl = _opened(folder, options, task)
    site_owners = _site_owners(folder, task, options)
    coordinator = task.coordinator[0], task.coordinator[1]
    lead = Lead(coordinator, task.listen, task.host, task.patience_s, task.limited, task.paused)
    resolver = Resolver(options.hosts, options.nameservers)
    policy = LinkPolicy.from_json(task.policy)
    shares_key = bool(task.seen_key)
    member = LiveMember(
        own, site_owners, resolver, folder, lead, crawl.state.notes, policy, options.connections, shares_key
    )
    run_crawl(crawl, member.view(), member)
    if member.is_lost:
        host, port = task.coordinator
        raise OutOfReachError(f"partition {task.partition} cannot reach its coordinator at {host}, port {port}")


def _wait_for_the_last(folder: Path) -> None:
    """Wait for the last process that crawled into the folder. If it lost its coordinator or supervisor, it is about to
    end; or its machine may be gone."""
    began = time.monotonic()
    while (found := holding(folder)) is not None:
        if time.monotonic() - began >= (_LEASE_ENDS_WITHIN_S if found.is_elsewhere else _ENDS_WITHIN_S):
            break
        time.sleep(0.1)
    if found is not None and found.is_elsewhere:
        raise HeldElsewhereError(f"{folder}: is being {found.doing} by {found}")


def _opened(folder: Path, options: CrawlOptions, task: WorkerTask) -> Opened:
    """Open the partition's folder, new or old."""
    seen_key = bytes.fromhex(task.seen_key)
    if (folder / DATABASE).exists():
        check_mark(folder, task.mark, task.sizes[-1], task.began)
        # The options may have changed. What `prepare_old` looks for is that of the new ones.
        outside = {name: getattr(options, name) for name in ("credentials", "cookies", "proxy", "proxy_names")}
        prepared = prepare_old(folder, None, **outside)
        crawl = opened(replace(prepared, options=options, strategy=strategy_of(options), seen_key=seen_key))
    else:
        crawl = opened(Prepared(folder, options, strategy_of(options), new=True, began=task.began, seen_key=seen_key))
    assert crawl.claim is not None
    try:  # mark an old folder too: its worker may have been killed before it wrote the mark
        note_partition(crawl.claim, task.mark)
    except BaseException:
        crawl.release()
        raise
    return crawl


def _site_owners(folder: Path, task: WorkerTask, options: CrawlOptions) -> SiteOwners:
    reading = Reading(folder)
    found, size = reading.assigned(), reading.size()
    reading.close()
    return SiteOwners(Partitioning(**task.partitioning), options.hosts, task.partition, found, task.sizes, size)


def _die_with_the_other_end(descriptor: int) -> None:
    while os.read(descriptor, 1):  # not `sys.stdin`: this thread would hold its lock when the interpreter ends
        pass
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> int:
    task = WorkerTask.from_line(sys.stdin.buffer.readline())
    threading.Thread(target=_die_with_the_other_end, args=(sys.stdin.fileno(),), daemon=True).start()
    try:
        work(task)
    except (StoreDiedError, OutOfReachError, HeldElsewhereError) as error:
        say(str(error), err=True)
        return os.EX_TEMPFAIL  # the worker can be started again, as after a crash
    except ConfigError as error:
        say(str(error), err=True)
        return 2
    return 0


if __name__ == "__main__":
    code = main()
    gc.freeze()  # as in cli/__init__.py
    sys.exit(code)
