"""Snapshots: save the whole state of a frontier as a folder of arrays, and load it again.

The frontier does not import this module. array_folder.py writes and reads the folder, completely or not at all. A snapshot
keeps times as they are, so a process that loads it must continue with the same clock.
"""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from trapline.array_folder import ArrayFolder, Saved
from trapline.errors import ConfigError, OtherVersionError
from trapline.frontier.frontier import Frontier
from trapline.frontier.layout import DTYPES, Array, FrontierState
from trapline.frontier.rules import Rules

if TYPE_CHECKING:
    from trapline.strategies import Strategy

FORMAT = 4
_FOLDER = ArrayFolder("frontier.json", "snapshot")


def save(frontier: Frontier, folder: Path | str) -> None:
    """Write the frontier's state to `folder`, replacing the snapshot there."""
    _FOLDER.save(Path(folder), _description(frontier), _used(frontier.state))


def load(folder: Path | str, strategy: "Strategy | Callable[[int], Strategy]") -> Frontier:
    """Load the frontier that was saved. `strategy` must be the strategy that it was saved with, or return it for its number
    (`Frontier.change_strategy`); its functions are bound again."""
    with _FOLDER.opened(Path(folder)) as saved:
        number = int(saved.about.get("strategy_number", 1))
        strategy = strategy(number) if callable(strategy) else strategy
        _check(saved, strategy)
        arrays = saved.arrays(DTYPES)
        _check_lengths(saved.place, arrays)
        rules = Rules(**saved.about["rules"])
    frontier = Frontier.from_state(FrontierState(**arrays), strategy, rules)
    frontier.strategy_number = number
    return frontier


def _used(s: FrontierState) -> dict[str, Array]:
    """Return the used part of each array. The rest is empty and need not be saved."""
    run = s.run[0]
    ends = {"state": run.pages, "page": run.pages, "columns": run.pages, "site": run.sites, "queue": run.sites}
    ends |= {"group": run.groups, "pool": run.pool, "age": run.pages if run.ages else 1}
    return {name: array[: ends[name]] if name in ends else array for name, array in s._asdict().items()}


def _description(frontier: Frontier) -> dict[str, object]:
    strategy = frontier.strategy
    return {
        "format": FORMAT,
        "strategy": strategy.name,
        "strategy_number": frontier.strategy_number,
        "page_rank": strategy.page.name,
        "site_rank": strategy.site.name,
        "columns": list(strategy.page.columns),
        "rules": asdict(frontier.rules),
    }


def _check(saved: Saved, strategy: "Strategy") -> None:
    if saved.about.get("format") != FORMAT:
        raise OtherVersionError(
            f"{saved.place}: snapshot format {saved.about.get('format')}; this version reads {FORMAT}: use the version that wrote it"
        )
    page, site = strategy.page, strategy.site
    saved.check_made_with(page_rank=page.name, site_rank=site.name, columns=list(page.columns))


def _check_lengths(source: Path, arrays: dict[str, Array]) -> None:
    run = arrays["run"][0]
    pages, sites = ("page", "state", "columns"), ("site", "queue")
    counts = dict.fromkeys(pages, run.pages) | dict.fromkeys(sites, run.sites) | {"group": run.groups, "pool": run.pool}
    counts |= {"age": run.pages if run.ages else 1}
    for name, count in counts.items():
        if len(arrays[name]) != count:
            raise ConfigError(
                f"{source}: {name}.npy has {len(arrays[name])} rows, not {count}; restore the folder from a backup"
            )
