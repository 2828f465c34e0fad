"""One partition as a process of its own: `python -m trapline.parallel.worker`, told what it is by one line of JSON on its standard input.

It is an ordinary crawl into a folder of its own that is a member of a larger one. If the folder is there, it goes on. Exit codes are
those of the command line: 0 done, 2 the user must act (one line on stderr), 1 a defect.
"""

import json
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from trapline.crawl.opening import Opened, Prepared, opened, prepare_old
from trapline.crawl.options import CrawlOptions
from trapline.crawl.resume import strategy_of
from trapline.crawl.run import run_crawl
from trapline.crawl.store.folder import DATABASE, note_partition
from trapline.crawl.store.reading import Reading
from trapline.errors import ConfigError
from trapline.fetch.dns import Resolver
from trapline.parallel.member import LiveMember
from trapline.parallel.partition import Partitioning
from trapline.parallel.places import Places
from trapline.parallel.wire import Pass


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker is told."""

    folder: str
    mark: str  # of its folder
    crawl: str
    token: str
    partition: int
    partitioning: dict[str, Any]
    options: str
    coordinator: tuple[str, int]
    limited: bool  # its coordinator says how many pages it may have
    host: str = "127.0.0.1"  # where the others reach it
    patience_s: float = 0.0  # for how long it goes on without its coordinator

    def to_line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> "Task":
        return cls(**json.loads(line))


def work(task: Task) -> None:
    options, folder = CrawlOptions.from_json(task.options), Path(task.folder)
    own = Pass(task.crawl, task.token.encode(), task.partition)
    crawl = _opened(folder, options, task.mark)
    places = Places(Partitioning(**task.partitioning), options.hosts, task.partition, _assigned(folder))
    resolver, coordinator = Resolver(options.hosts, options.nameservers), (task.coordinator[0], task.coordinator[1])
    member = LiveMember(own, places, resolver, folder, coordinator, task.host, task.patience_s, task.limited)
    run_crawl(crawl, member.view(), member)


def _opened(folder: Path, options: CrawlOptions, mark: str) -> Opened:
    """A folder of ours, new or old."""
    if (folder / DATABASE).exists():
        check_mark(folder, mark)
        crawl = opened(replace(prepare_old(folder), options=options))  # goals of refresh may have changed
    else:
        crawl = opened(Prepared(folder, options, strategy_of(options), new=True))
    try:  # of an old one too: it may have been killed before it had its mark
        note_partition(crawl.claim, mark)
    except BaseException:
        crawl.claim.release()
        raise
    return crawl


def _assigned(folder: Path) -> dict[str, int]:
    reading = Reading(folder)
    found = reading.assigned()
    reading.close()
    return found


def check_mark(folder: Path, mark: str) -> None:
    """`ConfigError` if the folder is of another crawl, or another part of this one."""
    reading = Reading(folder)
    found, begun = reading.meta().get("partition"), reading.last_batch() > 0
    reading.close()
    if found != mark and (begun or found is not None):  # one that was killed at its first moment may have none
        raise ConfigError(f"{folder}: belongs to another crawl; restore the folder from a copy, or crawl anew")


def main() -> int:
    try:
        work(Task.from_line(sys.stdin.buffer.readline()))
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
