"""The folder of a crawl in parts: what was asked for, and where its parts are. It starts nothing.

DIR/parallel.json              options, partition function, which crawl it is, its numbers of partitions so far (`sizes`); at the end, what
                               stopped it
DIR/coordinator.json           while it runs: where to ask how it stands, or for more partitions (watching.py)
DIR/hosts.json                 on Ray: which machine has which partition (placement.py)
DIR/partition-0, 1, ...        an ordinary crawl each: crawl.db, warc/, index.cdxj, snapshot/
DIR/crawl.db, summary.json     of all of them (merged.py)
"""

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

from trapline.crawl.options import CrawlOptions
from trapline.crawl.store.folder import DATABASE, check_free
from trapline.errors import ConfigError
from trapline.output import write_text
from trapline.parallel.partition import Partitioning
from trapline.parallel.places import partitioning_for

MANIFEST = "parallel.json"
FORMAT = 2


@dataclass(frozen=True, slots=True)
class Manifest:
    """A crawl in parts, as its folder keeps it."""

    folder: Path
    crawl: str  # no two have the same
    kind: str  # of its partition function
    sizes: tuple[int, ...]  # the numbers of partitions that it has had; the last is the present
    options: CrawlOptions
    runs: int = 0
    stopped_by: str = ""  # the last run; "": it did not come to its end
    began: float | None = None  # the moment 0 of every partition's refresher; None: each has its own

    @property
    def partitioning(self) -> Partitioning:
        return Partitioning(self.kind, self.sizes[-1])

    @property
    def parts(self) -> list[Path]:
        return [self.folder / f"partition-{number}" for number in range(self.sizes[-1])]

    def mark(self, number: int) -> str:
        """What is written in the database of a part, so that no other is taken for it."""
        return f"{self.crawl} {number}"

    def write(self) -> None:
        value = {name: getattr(self, name) for name in ("crawl", "kind", "sizes", "runs", "stopped_by", "began")}
        value |= {"format": FORMAT, "options": asdict(self.options)}
        write_text(self.folder / MANIFEST, json.dumps(value, indent=1) + "\n")  # infinity is among the options

    def begun(self, options: CrawlOptions) -> "Manifest":
        """Another run begins, by these options: its goals may be others."""
        return replace(self, options=options, runs=self.runs + 1, stopped_by="")

    def grown(self, partitions: int) -> "Manifest":
        """With so many from the next run on. `ConfigError` if that cannot be."""
        if partitions == self.sizes[-1]:
            return self
        if partitions < self.sizes[-1]:
            raise ConfigError(f"{self.folder}: is a crawl of {self.sizes[-1]} processes; it can grow, and not shrink")
        if self.options.refresh is not None and self.began is None:
            was = "an earlier version began it, and its partitions count time from different moments"
            raise ConfigError(f"{self.folder}: cannot grow: {was}; go on with {self.sizes[-1]} processes")
        return replace(self, sizes=(*self.sizes, partitions))


def is_parallel(folder: Path) -> bool:
    return (folder / MANIFEST).is_file()


def create(folder: Path, options: CrawlOptions, partitioning: Partitioning) -> Manifest:
    """`ConfigError` unless the folder is new or empty."""
    check_free(folder)
    if (folder / DATABASE).exists():
        raise ConfigError(f"{folder}: exists and holds a crawl of one process; name another folder")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write {folder}: {error.strerror}") from None
    manifest = Manifest(
        folder, secrets.token_hex(8), partitioning.kind, (partitioning.partitions,), options, began=time.time()
    )
    manifest.write()
    return manifest


def read(folder: Path) -> Manifest:
    try:
        found = json.loads((folder / MANIFEST).read_text())
        if found["format"] != FORMAT:
            was = f"a parallel crawl of format {found['format']}; this version reads {FORMAT}"
            raise ConfigError(f"{folder}: {was}: use the version that wrote it, or crawl anew into another folder")
        return _manifest(folder, found)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{folder / MANIFEST}: cannot be read ({error}); restore it from a copy") from None


def _manifest(folder: Path, found: Mapping[str, Any]) -> Manifest:
    options = CrawlOptions.from_json(json.dumps(found["options"]))
    sizes, kind, crawl, runs, stopped_by = (found[name] for name in ("sizes", "kind", "crawl", "runs", "stopped_by"))
    if not (isinstance(sizes, list) and all(type(size) is int for size in sizes) and sizes):
        raise ValueError("sizes must be numbers of partitions")
    if sorted(set(sizes)) != sizes or sizes[0] < 1:
        raise ValueError(f"numbers of partitions {sizes}")
    if not (isinstance(crawl, str) and isinstance(stopped_by, str) and type(runs) is int):
        raise ValueError("crawl and stopped_by must be text, runs a number")
    if kind != partitioning_for(options.rules, sizes[-1]).kind:
        raise ValueError(f"sites of this crawl do not go by {kind!r}")
    began = found.get("began")
    if not (began is None or (type(began) in (int, float) and 0.0 < began < inf)):
        raise ValueError("began must be a moment")
    return Manifest(folder, crawl, kind, tuple(sizes), options, runs, stopped_by, began)
