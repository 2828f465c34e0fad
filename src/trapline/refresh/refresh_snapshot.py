"""Snapshots of a refresher: its evidence as a folder of arrays, and back.

The only file of refresh that writes to the disk. Queues and timers are not in it: they follow from the evidence, and are made again. A
snapshot appears whole or not at all: it is written beside its place, flushed, and renamed, like those of the frontier.
"""

import json
import os
import shutil
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trapline import jit
from trapline.errors import ConfigError
from trapline.refresh import kernels
from trapline.refresh.layout import DTYPES, Array
from trapline.refresh.memory import Memory
from trapline.refresh.policy import Policy
from trapline.refresh.refresh_rules import RefreshRules

if TYPE_CHECKING:
    from trapline.refresh.refresher import Refresher

FORMAT = (
    3  # 2: gaps were kept by classes of pages too; 1: pages also had the time between their first crawl and their last
)
_ABOUT = "refresh.json"
_SAVED = ("run", "page", "columns", "trust", "point", "popular", "gaps", "totals", "guess", "site")


def save(refresher: "Refresher", target: Path) -> None:
    fresh, old = target.with_name(target.name + ".new"), target.with_name(target.name + ".old")
    if target.exists() and not (target / _ABOUT).exists():
        raise ConfigError(f"{target}: it is there and is no snapshot of refresh; name another folder")
    if old.exists() and not target.exists():
        old.rename(target)  # a crash came between the two renames below; this one is the last whole snapshot
    for leftover in (fresh, old):
        shutil.rmtree(leftover, ignore_errors=True)
    fresh.mkdir(parents=True)
    used = _used(refresher.memory)
    for name, array in used.items():
        _write(fresh / f"{name}.npy", array)
    sums = {name: _sum(array) for name, array in used.items()}
    (fresh / _ABOUT).write_text(json.dumps({**_description(refresher), "checksums": sums}, indent=1))
    _flush(fresh / _ABOUT)
    _flush(fresh)
    if target.exists():
        target.rename(old)
    fresh.rename(target)
    _flush(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def load(source: Path, policy: Policy) -> "Refresher":
    if not source.exists() and source.with_name(source.name + ".old").exists():
        source = source.with_name(source.name + ".old")  # the crash came between the two renames
    try:
        about = json.loads((source / _ABOUT).read_text())
        _check(source, about, policy)
        arrays = {name: _read(source / f"{name}.npy", about["checksums"][name]).view(DTYPES[name]) for name in _SAVED}
        rules, started = RefreshRules(**about["rules"]), float(about["started"])
    except ConfigError:
        raise
    except Exception as error:  # a damaged header leads numpy's parser anywhere
        raise ConfigError(f"{source}: not a whole snapshot of refresh: {error}") from error
    return _restored(arrays, policy, rules, started)


def _restored(arrays: dict[str, Array], policy: Policy, rules: RefreshRules, started: float) -> "Refresher":
    from trapline.refresh.refresher import Refresher

    jit.ready()
    memory = Memory(policy, rules)
    memory.adopt(arrays, policy)
    page = 0
    while (page := int(kernels.queue_again(memory.handle, page))) >= 0:
        memory.grow_blocks()
    kernels.settle_all(memory.handle)
    return Refresher(policy, started, rules, memory)


def _used(memory: Memory) -> dict[str, Array]:
    """The filled part of each array; the rest is empty and can be made again."""
    run = memory.whole.run[0]
    ends = {"page": memory.pages, "columns": memory.pages, "trust": run.rows, "point": run.point_pool}
    return {name: getattr(memory.whole, name)[: ends.get(name)] for name in _SAVED}


def _description(refresher: "Refresher") -> dict[str, Any]:
    policy = refresher.policy
    return {
        "format": FORMAT,
        "policy": policy.name,
        "columns": list(policy.kept),
        "options": dict(policy.options),
        "rules": asdict(refresher.rules),
        "started": refresher.started,
    }


def _check(source: Path, about: dict[str, Any], policy: Policy) -> None:
    if about.get("format") != FORMAT:
        raise ConfigError(
            f"{source}: refresh snapshot format {about.get('format')}; this version reads {FORMAT}: go on with the version that wrote it"
        )
    for what, ours in (("policy", policy.name), ("columns", list(policy.kept))):
        if about.get(what) != ours:
            raise ConfigError(f"{source}: made with {what} {about.get(what)!r}, not {ours!r}")


def _sum(array: Array) -> int:
    return zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data)


def _read(path: Path, checksum: int) -> Array:
    array: Array = np.load(path)
    if _sum(array) != checksum:
        raise ConfigError(f"{path}: its contents are not those that were saved")
    return array


def _write(path: Path, array: Array) -> None:
    with path.open("wb") as file:
        np.save(file, array)
        file.flush()
        os.fsync(file.fileno())


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
