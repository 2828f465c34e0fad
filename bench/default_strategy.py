"""Compares the default strategy with alternatives, in simulated time: python bench/default_strategy.py [--why] [WEB ...] > tables.md

The crawls have the defaults of `trapline crawl` but r and w: 10 or 200 connections, 15 s or 1 s of delay. Each strategy crawls the
same draws of servers and chance (--draws, by default 8). Two measures, both relative to breadth-first with the same draw: the time
until half of the PageRank is fetched, as a ratio (geometric mean over webs of the mean over draws; less is better), and the mean share
of the PageRank over the time of the breadth-first crawl (mean over webs; more is better). Further tables have, for each web, by how much
the mean share of the default exceeds that of the default before, with its interval of 95 % over draws, and the mean shares early.

WEB is any graph that `trapline graph info` reads, a sample, or generated:PAGES:SITES:SEED; without one, the recorded graphs in
TRAPLINE_DATA, the sample python-docs, and generated webs of 100,000 and 300,000 pages are used. --settings N uses the first N of the
four. --why adds the old default without OPIC's constant, the 1 with which every page begins, and crawl-ability with the true PageRank of
every page, which no crawl has.
"""

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from strategies import Floats, Ground, grounds, half_s, shares_at, shares_over_time

from trapline.confidence import estimate
from trapline.strategies import opic

Setting = tuple[int, float]  # connections; delay in seconds
_SETTINGS: tuple[Setting, ...] = ((10, 15.0), (10, 1.0), (200, 15.0), (200, 1.0))
_WEBS = (
    "uci-ics-crawl", "ku-crawl-2016", "ku-crawl-2021b", "cs-stanford", "hollins", "gr0.California", "cnr-2000",
    "python-docs", "generated:100000:2000:1", "generated:300000:6000:1",
)  # fmt: skip
_DRAWS = 8
_EARLY = (0.01, 0.02, 0.05, 0.1, 0.25)  # of the time of the breadth-first crawl
_FIRST, _BEFORE, _NOW = "breadth-first", "crawl-ability, opic", "crawl-ability, opic-by-directory"


class Alternative(NamedTuple):
    name: str
    strategy: str
    quality: str = "opic"


class Found(NamedTuple):
    """Measures of one strategy on one web in one setting, by draw."""

    half: Floats  # ratio of times
    share: Floats
    early: Floats  # shares of the PageRank, one row for each of _EARLY


_DEFAULTS = (
    Alternative(_FIRST, "breadth-first"),
    Alternative("larger-sites-first", "larger-sites-first"),
    Alternative(_BEFORE, "crawl-ability"),
    Alternative(_NOW, "crawl-ability", "opic-by-directory"),
)


def reasons(folder: Path) -> tuple[Alternative, ...]:
    return (
        Alternative("crawl-ability, opic less 1", less_one(folder)),
        Alternative("crawl-ability, PageRank", "crawl-ability", "pagerank"),
    )


def less_one(folder: Path) -> str:
    """Return the name of OPIC, whose rank leaves the 1 of every page out, with crawl-ability."""
    text = Path(opic.__file__).read_text()
    changed = text.replace("return s.columns[page, 0]\n", "return s.columns[page, 0] - 1.0\n")
    assert changed != text
    file = folder / "opic_less_one.py"
    file.write_text(changed)
    return f"{file}+crawl-ability"


def mean_share(end_s: Floats, share: Floats, until_s: float) -> float:
    """Return the mean over time, from 0 to `until_s`, of the share that is fetched.

    >>> mean_share(np.array([1.0, 3.0]), np.array([0.4, 1.0]), 4.0)
    0.45
    """
    within = end_s < until_s
    times = np.concatenate([end_s[within], [until_s]])
    return float(np.sum(np.diff(times) * share[within]) / until_s)


def measured(web: Ground, every: tuple[Alternative, ...], setting: Setting, draws: int) -> dict[str, Found]:
    rows: dict[str, list[tuple[float, float, Floats]]] = {one.name: [] for one in every}
    for draw in range(1, draws + 1):
        crawls = {one.name: shares_over_time(web, one.strategy, *setting, draw, quality=one.quality) for one in every}
        reference_s, until_s = half_s(*crawls[_FIRST]), float(crawls[_FIRST][0][-1])
        for name, (end_s, share) in crawls.items():
            early = shares_at(end_s, share, np.array(_EARLY) * until_s)
            rows[name].append((half_s(end_s, share) / reference_s, mean_share(end_s, share, until_s), early))
    return {name: Found(*(np.array(column).T for column in zip(*values, strict=True))) for name, values in rows.items()}


def table(title: str, head: list[str], rows: Iterator[list[str]]) -> None:
    print(f"\n{title}\n\n| | {' | '.join(head)} |\n{'|---' * (len(head) + 1)}|")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


class Study(NamedTuple):
    """All measures: of each web in each setting, by the name of the alternative."""

    every: tuple[Alternative, ...]
    settings: tuple[Setting, ...]
    found: dict[tuple[str, Setting], dict[str, Found]]

    @property
    def webs(self) -> list[str]:
        return list(dict.fromkeys(web for web, _ in self.found))

    def of(self, name: str, setting: Setting) -> list[Found]:
        """Return the measures of an alternative on each web."""
        return [self.found[web, setting][name] for web in self.webs]


def main(names: list[str], draws: int, settings: int, why: bool) -> None:
    with TemporaryDirectory() as folder:
        study = Study((*_DEFAULTS, *(reasons(Path(folder)) if why else ())), _SETTINGS[:settings], {})
        for web in grounds(names or _WEBS):
            for setting in study.settings:
                study.found[web.name, setting] = measured(web, study.every, setting, draws)
                print(f"{web.name}, {_shown(setting)}: measured", file=sys.stderr, flush=True)
    print_means(study)
    print_shares(study)
    print_early(study)
    print_leads(study)


def print_means(study: Study) -> None:
    def cell(name: str, setting: Setting) -> str:
        mine = study.of(name, setting)
        ratio = math.exp(np.mean([math.log(one.half.mean()) for one in mine]))
        return f"{ratio:.3f} / {np.mean([one.share.mean() for one in mine]):.3f}"

    title = "Time until half of the PageRank, as a ratio to breadth-first / mean share of the PageRank over time"
    rows = ([one.name, *(cell(one.name, setting) for setting in study.settings)] for one in study.every)
    table(title, list(map(_shown, study.settings)), rows)


def print_shares(study: Study) -> None:
    for setting in study.settings:
        rows = (
            [one.name, *(f"{found.share.mean():.3f}" for found in study.of(one.name, setting))] for one in study.every
        )
        table(f"Mean share of the PageRank over time: {_shown(setting)}", study.webs, rows)


def print_early(study: Study) -> None:
    def cells(name: str, setting: Setting) -> list[str]:
        return [
            f"{share:.3f}" for share in np.mean([one.early.mean(axis=1) for one in study.of(name, setting)], axis=0)
        ]

    for setting in study.settings:
        title = f"Share of the PageRank early, by part of the time of the breadth-first crawl: {_shown(setting)}"
        rows = ([one.name, *cells(one.name, setting)] for one in study.every)
        table(title, [f"{part:.0%}" for part in _EARLY], rows)


def print_leads(study: Study) -> None:
    def cell(web: str, setting: Setting) -> str:
        mine = study.found[web, setting]
        gain = estimate((mine[_NOW].share - mine[_BEFORE].share).tolist())
        return f"{gain.mean:+.3f} ± {gain.ci:.3f}"

    title = "Mean share over time of the default, less that of the default before (interval of 95 %)"
    rows = ([web, *(cell(web, setting) for setting in study.settings)] for web in study.webs)
    table(title, list(map(_shown, study.settings)), rows)


def _shown(setting: Setting) -> str:
    return f"r = {setting[0]}, w = {setting[1]:g} s"


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("webs", nargs="*", metavar="WEB")
    options.add_argument("--draws", type=int, default=_DRAWS, choices=range(2, 101))
    options.add_argument("--settings", type=int, default=len(_SETTINGS), choices=range(1, len(_SETTINGS) + 1))
    options.add_argument("--why", action="store_true")
    args = options.parse_args()
    main(args.webs, args.draws, args.settings, args.why)
