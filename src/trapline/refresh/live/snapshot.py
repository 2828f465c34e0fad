"""Snapshots of a refresher: save its evidence as a folder of arrays, and load it again.

A snapshot has no queues and timers: they follow from the evidence and are built again. array_folder.py writes and reads the
folder, completely or not at all, as for the frontier.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from trapline.array_folder import ArrayFolder, Saved
from trapline.errors import OtherVersionError
from trapline.refresh.core import kernels
from trapline.refresh.core.layout import DTYPES, Array
from trapline.refresh.live.memory import Memory, RefreshRules
from trapline.refresh.policy import Policy

# Format 3 had other names for three fields of `run` and `trust`. Format 2 kept gaps by classes of pages too; in format 1 pages
# also had the time between their first and their last crawl.
FORMAT = 4
_FOLDER = ArrayFolder("refresh.json", "snapshot of refresh")
_SAVED = ("run", "page", "columns", "trust", "point", "popular", "gaps", "totals", "guess", "site")


class RefreshSnapshot(NamedTuple):
    """What a refresher needs besides its policy."""

    memory: Memory
    rules: RefreshRules
    started: float


def save(snapshot: RefreshSnapshot, policy: Policy, target: Path) -> None:
    """Write the evidence to `target`, replacing the snapshot there."""
    _FOLDER.save(target, _description(snapshot, policy), _used(snapshot.memory))


def load(source: Path, policy: Policy) -> RefreshSnapshot:
    """Load the evidence that was saved with this policy."""
    with _FOLDER.opened(source) as saved:
        _check(saved, policy)
        arrays = saved.arrays({name: DTYPES[name] for name in _SAVED})
        rules, started = RefreshRules(**saved.about["rules"]), float(saved.about["started"])
    return RefreshSnapshot(_restored(arrays, policy, rules), rules, started)


def _restored(arrays: dict[str, Array], policy: Policy, rules: RefreshRules) -> Memory:
    """Return the memory with these arrays, and with its queues and timers."""
    memory = Memory(policy, rules)
    memory.adopt(arrays, policy)
    page = 0
    while (page := int(kernels.queue_again(memory.handle, page))) >= 0:
        memory.grow_blocks()
    kernels.settle_all(memory.handle)
    return memory


def _used(memory: Memory) -> dict[str, Array]:
    """Return the used part of each array. The rest is empty and need not be saved."""
    run = memory.whole.run[0]
    ends = {"page": memory.pages, "columns": memory.pages, "trust": run.rows, "point": run.point_pool}
    return {name: getattr(memory.whole, name)[: ends.get(name)] for name in _SAVED}


def _description(snapshot: RefreshSnapshot, policy: Policy) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "policy": policy.name,
        "columns": list(policy.kept),
        "options": dict(policy.options),
        "rules": asdict(snapshot.rules),
        "started": snapshot.started,
    }


def _check(saved: Saved, policy: Policy) -> None:
    found = saved.about.get("format")
    if found != FORMAT:
        raise OtherVersionError(
            f"{saved.place}: refresh snapshot format {found}; this version reads {FORMAT}: use the version that wrote it"
        )
    saved.check_made_with(policy=policy.name)
    if saved.about.get("options") == dict(policy.options) and saved.about.get("columns") != list(policy.kept):
        raise OtherVersionError(
            f"{saved.place}: another version's numbers for policy {policy.name!r}; use the version that wrote it"
        )
    saved.check_made_with(columns=list(policy.kept))
