"""How a crawl in parts stands, from its folder alone: what `trapline status` shows of one, of all partitions together."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from trapline.crawl.glance import BROKEN_OFF, ENDED, RUNNING, Glance, glance, how_again
from trapline.crawl.standing import MOST_ROWS
from trapline.crawl.store.lock import holder
from trapline.errors import ConfigError
from trapline.parallel.manifest import Manifest, is_parallel, read
from trapline.parallel.merged import begun

_SUMS = (
    "connections",
    "pages",
    "pages_per_second_now",
    "bytes",
    "bytes_per_second_now",
    "errors",
    "known",
    "waiting",
    "sites",
    "active",
    "quality",
    "again_per_second_now",
    "signals",
    "access_counts",
)


def glance_of(folder: Path) -> Glance:
    """Of a crawl of any kind."""
    if not is_parallel(folder):
        return glance(folder)
    manifest = read(folder)
    parts = [glance(part) for part in begun(manifest)]
    if not parts:
        raise ConfigError(f"{folder}: the crawl has not begun")
    return _together(manifest, parts)


def _together(manifest: Manifest, parts: list[Glance]) -> Glance:
    process, stopped_by = holder(manifest.folder), manifest.stopped_by or None
    sums = {name: sum(getattr(one, name) for one in parts) for name in _SUMS}
    seconds = max(one.seconds for one in parts)
    errors = sorted((error for one in parts for error in one.last_errors), key=lambda error: -error.at)
    return replace(
        parts[0],
        state=RUNNING if process is not None else ENDED if stopped_by else BROKEN_OFF,
        process=process,
        stopped_by=stopped_by,
        at=max(one.at for one in parts),
        age_s=min(one.age_s for one in parts),
        seconds=seconds,
        pages_per_second=sums["pages"] / seconds if seconds else 0.0,
        busiest=list(_added(dict(one.busiest) for one in parts).items())[:MOST_ROWS],
        last_errors=errors[:MOST_ROWS],
        given_up=_added(one.given_up for one in parts),
        left_out=_added(one.left_out for one in parts),
        refresh=how_again(manifest.options.refresh) if manifest.options.refresh else None,
        **sums,
    )


def _added(tables: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for table in tables:
        total.update(table)
    return dict(total.most_common())
