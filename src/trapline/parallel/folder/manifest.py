"""The folder of a parallel crawl: its options, and where its partitions are. This module reads and writes the manifest,
and starts nothing.

DIR/parallel.json              the manifest: options, partition function, mode, id of the crawl, numbers of partitions so far (`sizes`);
                               at the end, what stopped the crawl
DIR/coordinator.json           while the crawl runs: how to reach the coordinator (parallel/live/control.py)
DIR/hosts.json                 on Ray: which machine has which partition (parallel/ray/machines.py)
DIR/partition-0, 1, ...        an ordinary crawl each: crawl.db, warc/, index.cdxj, snapshot/
DIR/crawl.db, summary.json     of all partitions together (merged.py)
"""

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.files.layout import DATABASE, check_free
from trapline.crawler.files.reading import Reading
from trapline.errors import ConfigError
from trapline.frontier import Rules
from trapline.output import write_text
from trapline.parallel.folder.link_policy import LinkPolicy, check, why_fixed, why_impolite
from trapline.parallel.partition import Partitioning

MANIFEST = "parallel.json"
FORMAT = 3
_FIELDS = ("crawl", "kind", "suffixes", "sizes", "runs", "stopped_by", "began", "seen_key")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A parallel crawl, as its folder records it."""

    folder: Path
    crawl: str  # id of the crawl; no two crawls have the same
    kind: str  # of the partition function
    # The numbers of partitions that the crawl has had so far; the last one is the present number
    sizes: tuple[int, ...]
    options: CrawlOptions
    runs: int = 0
    stopped_by: str = ""  # what stopped the last run; "": it did not end in order
    began: float | None = None  # time 0 of every partition's refresher; None: each partition has its own
    suffixes: Mapping[str, int] = field(default_factory=dict)  # host name suffix -> partition, if `kind` is suffix
    policy: LinkPolicy = LinkPolicy()  # noqa: RUF009  frozen
    # Secret key of the fingerprints of URLs, in hexadecimal digits; "": an earlier version began the crawl, and every partition has its
    # own key
    seen_key: str = ""

    @property
    def partitioning(self) -> Partitioning:
        return Partitioning(self.kind, self.sizes[-1], self.suffixes)

    @property
    def parts(self) -> list[Path]:
        return [self.folder / f"partition-{number}" for number in range(self.sizes[-1])]

    def mark(self, number: int) -> str:
        """Return the mark of a partition. Its database contains the mark, so that no other folder is mistaken for it."""
        return f"{self.crawl} {number}"

    def write(self) -> None:
        value = {name: getattr(self, name) for name in _FIELDS}
        value |= {"format": FORMAT, "options": asdict(self.options), "policy": asdict(self.policy)}
        # Options may be infinite: not strict JSON
        write_text(self.folder / MANIFEST, json.dumps(value, indent=1) + "\n")

    def begun(self, options: CrawlOptions) -> "Manifest":
        """Return the manifest of a new run with these options; its limits may differ."""
        return replace(self, options=options, runs=self.runs + 1, stopped_by="")

    def grown(self, partitions: int) -> "Manifest":
        """Return the manifest with this number of partitions from the next run on. Raises `ConfigError` if that is
        impossible."""
        if partitions == self.sizes[-1]:
            return self
        if partitions < self.sizes[-1]:
            raise ConfigError(
                f"{self.folder}: is a crawl of {self.sizes[-1]} processes; it can grow, but not shrink to {partitions}"
            )
        reason = why_fixed(self.policy, self.partitioning)
        if self.options.refresh is not None and self.began is None:
            reason = "an earlier version began it, and its partitions count time from different moments"
        grown = replace(self, sizes=(*self.sizes, partitions))
        # A single partition is polite in every mode, so it may have options with which several are not.
        if not self.options.own_hosts and why_impolite(self.policy, grown.partitioning, self.options):
            reason = "several processes would visit one host or address, but each keeps delays only for its own visits"
        if reason:
            raise ConfigError(f"{self.folder}: cannot grow: {reason}; continue with {self.sizes[-1]} processes")
        return grown


def partitioning_for(rules: Rules, partitions: int) -> Partitioning:
    """Return the partition function of a live crawl: by address if addresses have a delay, else by the name of the site."""
    return Partitioning("address" if rules.address_delay_s > 0.0 else "rendezvous", partitions)


def is_parallel(folder: Path) -> bool:
    return (folder / MANIFEST).is_file()


def refuse_partition(folder: Path) -> None:
    """Refuse to resume one partition alone: it would take the whole web as its own. This also holds for a partition that was moved."""
    if is_parallel(folder):
        return
    reading = Reading(folder)
    is_partition = "partition" in reading.meta()
    reading.close()
    if not is_partition:
        return
    whole = folder.absolute().parent
    if is_parallel(whole):
        raise ConfigError(f"{folder}: is one partition of the crawl in {whole}; resume that crawl: --resume {whole}")
    raise ConfigError(
        f"{folder}: is one partition of a crawl of several processes; move this folder back, and resume the whole crawl"
    )


def create(
    folder: Path,
    options: CrawlOptions,
    partitioning: Partitioning,
    policy: LinkPolicy = LinkPolicy(),  # noqa: B008  frozen
) -> Manifest:
    """Create the folder of a new parallel crawl. Raises `ConfigError` unless the folder is new or empty."""
    check_free(folder)
    if (folder / DATABASE).exists():
        raise ConfigError(f"{folder}: exists and holds a crawl of one process; give another folder")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write {folder}: {error.strerror}") from None
    manifest = Manifest(
        folder, secrets.token_hex(8), partitioning.kind, (partitioning.partitions,), options,
        began=time.time(), suffixes=partitioning.suffixes, policy=policy, seen_key=secrets.token_hex(16),
    )  # fmt: skip
    manifest.write()
    return manifest


def read(folder: Path) -> Manifest:
    try:
        found = json.loads((folder / MANIFEST).read_text())
        if found["format"] != FORMAT:
            formats = f"a parallel crawl of format {found['format']}; this version reads {FORMAT}"
            raise ConfigError(
                f"{folder}: {formats}: use the version that wrote it, or start a new crawl in another folder"
            )
        return _manifest(folder, found)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{folder / MANIFEST}: cannot be read ({error}); restore it from a copy") from None


def _manifest(folder: Path, found: Mapping[str, Any]) -> Manifest:
    options = CrawlOptions.from_json(json.dumps(found["options"]))
    sizes, kind, crawl, runs, stopped_by = (found[name] for name in ("sizes", "kind", "crawl", "runs", "stopped_by"))
    if not (isinstance(sizes, list) and all(type(size) is int for size in sizes) and sizes):
        raise ValueError("sizes must be a list of numbers")
    if sorted(set(sizes)) != sizes or sizes[0] < 1:
        raise ValueError(f"sizes are {sizes}; they must be positive and increase")
    if not (isinstance(crawl, str) and isinstance(stopped_by, str) and type(runs) is int):
        raise ValueError("crawl and stopped_by must be text, runs a number")
    began = found.get("began")
    if not (began is None or (type(began) in (int, float) and 0.0 < began < inf)):
        raise ValueError("began must be a time in seconds")
    seen_key = found.get("seen_key", "")
    if not (isinstance(seen_key, str) and len(bytes.fromhex(seen_key)) in (0, 16)):
        raise ValueError("seen_key must be 16 bytes in hexadecimal digits")
    suffixes = found["suffixes"]
    if not (isinstance(suffixes, dict) and all(type(partition) is int for partition in suffixes.values())):
        raise ValueError("suffixes must be an object with the number of a partition for each suffix")
    try:
        policy = LinkPolicy.from_json(found["policy"])
        manifest = Manifest(
            folder, crawl, kind, tuple(sizes), options, runs, stopped_by, began, suffixes, policy, seen_key
        )
        check(policy, manifest.partitioning, options)
    except ConfigError as error:
        raise ValueError(f"kind or policy is wrong, or does not fit the options: {error}") from None
    return manifest


def check_mark(folder: Path, mark: str, partitions: int, began: float | None) -> None:
    """Raise `ConfigError` if the folder belongs to another crawl, or is another partition of this one, or knows more
    partitions than `partitions`, or counts time from another moment than `began`."""
    reading = Reading(folder)
    meta, begun, most = reading.meta(), reading.last_batch() > 0, reading.most_partitions()
    reading.close()
    found = meta.get("partition")
    if most > partitions:
        raise ConfigError(
            f"{folder}: belongs to a crawl of {most} processes or more, not of {partitions}; restore {MANIFEST} beside it from a copy"
        )
    if found != mark and (begun or found is not None):  # a crawl that was killed right at its start may have no mark
        raise ConfigError(f"{folder}: belongs to another crawl; restore the folder from a copy, or start a new crawl")
    if began is not None and float(meta["created"]) != began:
        raise ConfigError(f"{folder}: its start time differs from that in {MANIFEST}; restore {MANIFEST} from a copy")
