"""`trapline crawl --resume`: which options a crawl may go on with, and the crawl made ready by them."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from trapline.cli.crawl_options import GOALS, SHOWN
from trapline.cli.progress import said_if_long
from trapline.errors import ConfigError
from trapline.units import bytes_shown, counted, duration

if TYPE_CHECKING:
    from trapline.crawl.opening import Prepared


class Measured(NamedTuple):
    """What a goal is held against."""

    option: str
    field: str  # of Progress
    shown: Callable[[float], str]


# Of refresh, with the names that they have there.
_REFRESH_GOALS = {
    "continuous": "continuous",
    "refresh_share": "share",
    "refresh_price": "price",
    "refresh_rate": "rate",
}
_MEASURED = {
    "max_pages": Measured("--max-pages", "pages", lambda pages: counted(int(pages), "page")),
    "max_seconds": Measured("--max-time", "seconds", duration),
    "max_bytes": Measured("--max-bytes", "bytes", bytes_shown),
}
# When a crawl goes on.
_MAY_CHANGE = {"resume", "processes", "ray", *GOALS, *_REFRESH_GOALS, *SHOWN.fields} - {"metadata"}


def refuse_others(urls: tuple[str, ...]) -> None:
    """A crawl goes on as it began; what is typed and has no effect would be taken for granted."""
    if urls:
        raise ConfigError("--resume DIR goes on with the URLs of that crawl; give no others")
    context = click.get_current_context()
    for param in context.command.params:
        name = param.name or ""
        if name not in _MAY_CHANGE and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise ConfigError(
                f"--resume DIR goes on under the options that it began with, so not with {param.opts[-1]}"
            )


def raised_goals(given: dict[str, Any]) -> dict[str, float]:
    """Goals that a crawl goes on with, if they are named."""
    return {goal: given[goal] for goal in GOALS if given[goal] is not None}


def refresh_changes(given: dict[str, Any]) -> dict[str, Any]:
    """How pages are fetched again from now on, as far as it was typed."""
    context = click.get_current_context()
    typed = [name for name in _REFRESH_GOALS if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    changes = {_REFRESH_GOALS[name]: given[name] for name in typed}
    if "share" in changes and "price" in changes:
        raise ConfigError("--refresh-share and --refresh-price exclude each other; give one of them")
    if changes.get("rate") == 0.0:
        raise ConfigError("--refresh-rate 0 would fetch nothing again; give a rate above 0")
    return {**changes, "price": None} if "share" in changes and "price" not in changes else changes


def prepared_old(folder: Path, given: dict[str, Any]) -> "Prepared":
    from trapline.crawl.opening import prepare_old

    changes = refresh_changes(given)
    with said_if_long(f"opening {folder}: checking its database", given["quiet"]):
        prepared = prepare_old(folder, changes, **raised_goals(given))
    refuse_reached(folder, raised_goals(given))
    return prepared


def refuse_reached(folder: Path, goals: dict[str, float]) -> None:
    """Goals are of all runs together: one that was reached before would end this run at once."""
    from trapline.crawl.store.reading import Reading

    reading = Reading(folder)
    progress = reading.progress()
    reading.close()
    for name, goal in goals.items():
        had = getattr(progress, _MEASURED[name].field, 0)
        if goal <= had:
            option, shown = _MEASURED[name].option, _MEASURED[name].shown(had)
            raise ConfigError(f"{folder}: the crawl has had {shown} already; give a {option} above that to go on")
