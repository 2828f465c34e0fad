"""Snapshots: the whole state of a frontier as a folder of arrays, and back.

The only file of the core that touches the disk; the frontier itself does not import it. A snapshot appears whole or
not at all: it is written beside its place, flushed, and renamed. It carries times as they are: whoever restores in
another process must go on with the same clock.
"""

import json
import os
import shutil
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from trapline.errors import ConfigError
from trapline.frontier.frontier import Frontier
from trapline.frontier.layout import DTYPES, Array, State
from trapline.frontier.rules import Rules

if TYPE_CHECKING:
    from trapline.strategies.strategy import Strategy

FORMAT = 3


def save(frontier: Frontier, folder: Path | str) -> None:
    """Write the frontier's state as `folder`, in place of what was there."""
    target = Path(folder)
    fresh, old = target.with_name(target.name + ".new"), target.with_name(target.name + ".old")
    if target.exists() and not (target / "frontier.json").exists():
        raise ConfigError(f"{target}: it is there and is no snapshot; name another folder")
    if old.exists() and not target.exists():
        old.rename(target)  # a crash came between the two renames below; this one is the last whole snapshot
    for leftover in (fresh, old):
        shutil.rmtree(leftover, ignore_errors=True)
    fresh.mkdir(parents=True)
    used = _used(frontier.state)
    for name, array in used.items():
        _write(fresh / f"{name}.npy", array)
    sums = {name: zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data) for name, array in used.items()}
    (fresh / "frontier.json").write_text(json.dumps({**_description(frontier), "checksums": sums}, indent=1))
    _flush(fresh / "frontier.json")
    _flush(fresh)
    if target.exists():
        target.rename(old)
    fresh.rename(target)
    _flush(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def load(folder: Path | str, strategy: "Strategy") -> Frontier:
    """The frontier that was saved. The strategy's functions are bound anew: it must be the one that was used."""
    source = Path(folder)
    if not source.exists() and source.with_name(source.name + ".old").exists():
        source = source.with_name(source.name + ".old")  # the crash came between the two renames
    try:
        described = json.loads((source / "frontier.json").read_text())
        # numpy's format drops the record type, which gives fields their attribute form
        arrays = {
            name: _read(source / f"{name}.npy", described["checksums"][name]).view(kind)
            for name, kind in DTYPES.items()
        }
        _check(source, described, strategy)
        _check_lengths(source, arrays)
        rules = Rules(**described["rules"])
    except ConfigError:
        raise
    except Exception as error:  # a damaged header leads numpy's parser anywhere
        raise ConfigError(f"{source}: not a whole snapshot: {error}") from error
    return Frontier.from_state(State(**arrays), strategy, rules)


def _used(s: State) -> dict[str, Array]:
    """The filled part of each array; the rest is empty and can be made again."""
    run = s.run[0]
    ends = {"state": run.pages, "page": run.pages, "columns": run.pages, "site": run.sites, "queue": run.sites}
    ends |= {"group": run.groups, "pool": run.pool, "age": run.pages if run.ages else 1}
    return {name: array[: ends[name]] if name in ends else array for name, array in s._asdict().items()}


def _description(frontier: Frontier) -> dict[str, object]:
    strategy = frontier.strategy
    return {
        "format": FORMAT,
        "strategy": strategy.name,
        "page_rank": strategy.page.name,
        "site_rank": strategy.site.name,
        "columns": list(strategy.page.columns),
        "rules": asdict(frontier.rules),
    }


def _check(source: Path, described: dict[str, object], strategy: "Strategy") -> None:
    if described.get("format") != FORMAT:
        raise ConfigError(f"{source}: snapshot format {described.get('format')}; this version reads {FORMAT}")
    columns = list(strategy.page.columns)
    for what, ours in (("page_rank", strategy.page.name), ("site_rank", strategy.site.name), ("columns", columns)):
        if described.get(what) != ours:
            raise ConfigError(f"{source}: made with {what} {described.get(what)!r}, not {ours!r}")


def _check_lengths(source: Path, arrays: dict[str, Array]) -> None:
    run = arrays["run"][0]
    pages, sites = ("page", "state", "columns"), ("site", "queue")
    counts = dict.fromkeys(pages, run.pages) | dict.fromkeys(sites, run.sites) | {"group": run.groups, "pool": run.pool}
    counts |= {"age": run.pages if run.ages else 1}
    for name, count in counts.items():
        if len(arrays[name]) != count:
            raise ConfigError(f"{source}: {name}.npy has {len(arrays[name])} rows, not {count}")


def _read(path: Path, checksum: int) -> Array:
    array: Array = np.load(path)
    if zlib.crc32(array.view(np.uint8).data) != checksum:
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
