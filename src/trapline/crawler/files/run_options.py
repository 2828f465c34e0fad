"""The options of the runs of a crawl. A resume may change them, so the folder keeps those of earlier runs too.

In the table `meta`, `options` has the present options. If a resume has changed any, `options N` has those that hold from run N on,
with the time and the digests of the user's strategy files. Three readers need them: the replay of a log that was written under
other options, the audit of politeness, and the next resume, which compares. If an action of the user has changed delays of
sites, `sites N` has the settings of single sites before it and after it, with the time, for the audit.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from trapline.crawler.discovery.site_settings import SiteSettings, SiteTables, settings_of
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.files.layout import STRATEGY_FILES
from trapline.output import write_bytes
from trapline.strategies.base.choice import split

RUN = "options "
SITES = "sites "
FILES = "strategy_files"
_GOALS = ("max_pages", "max_seconds", "max_bytes", "snapshot_pages")
_LARGE = ("seeds", "hosts")  # taken from the present options, because there may be very many
STRATEGY = ("strategy", "page_rank", "site_rank", "quality", "history", "modules", "seed")
"""The options that decide how pages and sites are ranked."""
_WORDS = ("strategy", "page_rank", "site_rank")  # may name files


class RunOptions(NamedTuple):
    run: int  # the first run with these options
    since: float  # wall clock
    options: CrawlOptions
    files: Mapping[str, str]  # digests of the user's strategy files

    def has_ranks_of(self, options: CrawlOptions) -> bool:
        """Return whether these options rank pages and sites in the same way."""
        return all(getattr(self.options, name) == getattr(options, name) for name in STRATEGY)


def strategy_files(options: CrawlOptions) -> dict[str, str]:
    """Return the digests of the user's files that the strategy consists of. A file that is missing is left out."""
    words = [getattr(options, name) for name in _WORDS]
    names = {half for word in words if word for half in split(word) or (word,)}
    paths = [Path(name) for name in sorted(names) if name.endswith(".py")]
    return {str(path): sha256(path.read_bytes()).hexdigest() for path in paths if path.is_file()}


def keep_files(folder: Path, files: Mapping[str, str]) -> None:
    """Copy the strategy files into the folder of the crawl, so that its log can be replayed after they have changed. `files`:
    their digests."""
    for path, digest in files.items():
        copy, text = kept_file(folder, digest), Path(path).read_bytes()
        if not copy.exists() and sha256(text).hexdigest() == digest:
            copy.parent.mkdir(exist_ok=True)
            write_bytes(copy, text)


def kept_file(folder: Path, digest: str) -> Path:
    return folder / STRATEGY_FILES / f"{digest}.py"


def with_kept_files(folder: Path, run: RunOptions) -> CrawlOptions:
    """Return the options of a run, with the folder's copies in place of strategy files that have changed since or are gone."""
    present = strategy_files(run.options)
    copies = {
        path: str(kept_file(folder, digest))
        for path, digest in run.files.items()
        if present.get(path) != digest and kept_file(folder, digest).exists()
    }
    if not copies:
        return run.options
    words: dict[str, Any] = {name: _replaced(getattr(run.options, name), copies) for name in _WORDS}
    return replace(run.options, **words)


def _replaced(word: str | None, copies: Mapping[str, str]) -> str | None:
    """Return a word that names the copies. A pair is written with " x ", because the path of a copy may contain "+"."""
    return word and " x ".join(copies.get(half, half) for half in split(word) or (word,))


def changed_files(meta: Mapping[str, str], options: CrawlOptions) -> list[str]:
    """Return the strategy files that have changed since the last run of a crawl that had the same strategy."""
    before: dict[str, str] = json.loads(meta.get(FILES, "{}"))
    now = strategy_files(options)
    return [path for path, digest in now.items() if before.get(path, digest) != digest]


def options_of_runs(meta: Mapping[str, str]) -> list[RunOptions]:
    """Return the options of all runs that began with others than the run before, in order. There is at least one entry."""
    present = CrawlOptions.from_json(meta.get("options", ""))
    kept = sorted((int(key.removeprefix(RUN)), value) for key, value in meta.items() if key.startswith(RUN))
    if not kept:
        return [RunOptions(1, float(meta.get("created", 0.0)), present, json.loads(meta.get(FILES, "{}")))]
    return [_read(run, json.loads(value), present) for run, value in kept]


def options_over_time(meta: Mapping[str, str]) -> list[RunOptions]:
    """Return what `options_of_runs` returns, with a further entry for each action that has changed delays of single sites."""
    runs, actions = options_of_runs(meta), [action for _, action in _actions(meta)]
    found = []
    for run, until in zip(runs, [*(run.since for run in runs[1:]), math.inf], strict=True):
        during = [
            action for action in actions if action["since"] < until and (action["since"] >= run.since or run is runs[0])
        ]
        first = run._replace(options=_with_sites(run.options, during[0]["before"])) if during else run
        found.append(first)
        for action in during:
            found.append(run._replace(since=action["since"], options=_with_sites(run.options, action["sites"])))
    return found


def _actions(meta: Mapping[str, str]) -> list[tuple[int, dict[str, Any]]]:
    """Return the actions that have changed delays, each with its number, in their order."""
    found = ((int(key.removeprefix(SITES)), value) for key, value in meta.items() if key.startswith(SITES))
    return [(number, json.loads(value)) for number, value in sorted(found)]


def _with_sites(options: CrawlOptions, sites: Mapping[str, Mapping[str, Any]]) -> CrawlOptions:
    return replace(options, sites=_tables(sites))


def _tables(sites: Mapping[str, Mapping[str, Any]]) -> SiteTables:
    return {name: SiteSettings.from_values(values) for name, values in sites.items()}


def changed_sites(number: int, before: SiteTables, after: SiteTables, now: float) -> dict[str, str]:
    """Return the key of `meta` for an action that changes delays of single sites now. `number`: later actions have larger ones."""
    values = {"since": now, "before": _as_values(before), "sites": _as_values(after)}
    return {f"{SITES}{number}": json.dumps(values)}


def merged_actions(metas: Sequence[Mapping[str, str]], options: CrawlOptions) -> dict[str, str]:
    """Return the keys of `meta` for actions that several partitions have executed, each a moment apart from the others. Between the first
    and the last of these moments, the shorter of the delays before and after the action counts."""
    by_number: dict[int, list[dict[str, Any]]] = {}
    for meta in metas:
        for number, action in _actions(meta):
            by_number.setdefault(number, []).append(action)
    found: dict[str, str] = {}
    for number, actions in by_number.items():
        before, after = (_tables(actions[0][name]) for name in ("before", "sites"))
        moments = [action["since"] for action in actions]
        between = _shorter(before, after, options)
        found |= changed_sites(2 * number, before, between, min(moments))
        found |= changed_sites(2 * number + 1, between, after, max(moments))
    return found


def _shorter(before: SiteTables, after: SiteTables, options: CrawlOptions) -> SiteTables:
    """Return the settings with the shorter delay and pause of both for each site."""
    rules, found = options.rules, {}
    usual_s = min(rules.delay_s, rules.small_site_delay_s) if rules.small_site_pages else rules.delay_s
    for name in before.keys() | after.keys():
        both = [settings_of(tables, name) or SiteSettings() for tables in (before, after)]
        delay_s = min(usual_s if own.delay_s is None else own.delay_s for own in both)
        pause_s = min(options.pause_s if own.pause_s is None else own.pause_s for own in both)
        found[name] = replace(both[1], delay_s=delay_s, pause_s=pause_s)
    return found


def _as_values(tables: SiteTables) -> dict[str, dict[str, Any]]:
    return {name: asdict(own) for name, own in tables.items()}


def _read(run: int, found: Mapping[str, Any], present: CrawlOptions) -> RunOptions:
    given = {**found["options"], **{name: getattr(present, name) for name in _LARGE}}
    return RunOptions(run, found["since"], CrawlOptions.from_json(json.dumps(given)), found["files"])


def noted_options(
    meta: Mapping[str, str], options: Mapping[str, Any], files: Mapping[str, str], now: float
) -> dict[str, str]:
    """Return the keys of `meta` to set when a run begins with these options."""
    set_now = {"options": json.dumps(options), FILES: json.dumps(files)}
    before, run = json.loads(meta["options"]), int(meta.get("runs", 0)) + 1
    old_files = json.loads(meta.get(FILES, "{}"))
    if run == 1 or (_compared(before) == _compared(options) and old_files in (files, {})):
        return set_now
    if not any(key.startswith(RUN) for key in meta):
        set_now[f"{RUN}1"] = _written(before, old_files, float(meta["created"]))
    return {**set_now, f"{RUN}{run}": _written(options, files, now)}


def _compared(options: Mapping[str, Any]) -> str:
    """Return the options that matter to earlier and later runs, as one text."""
    names = {field.name for field in fields(CrawlOptions)} - {*_GOALS, *_LARGE}
    return json.dumps({name: options.get(name) for name in sorted(names)}, sort_keys=True)


def _written(options: Mapping[str, Any], files: Mapping[str, str], since: float) -> str:
    kept = {name: value for name, value in options.items() if name not in _LARGE}
    return json.dumps({"since": since, "files": files, "options": kept})
