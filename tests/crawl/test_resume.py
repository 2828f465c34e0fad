"""A crawl goes on from its folder: whatever ended it, whatever it went by, whatever happened to the folder."""

import signal
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.crawl.kill_world import Run, options_of, prepared, rows, served
from trapline.crawl import scores
from trapline.crawl.options import live_rules
from trapline.crawl.run import open_crawl, resume_crawl
from trapline.frontier import FETCHED
from trapline.testweb import Served


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(300, 12) as server:
        yield server


def begin(server: Served, folder: Path, **changes: Any) -> dict[str, Any]:
    given = {"rules": live_rules(delay_s=0.01, rescore=40), "pause_s": 0.001, "max_pages": 90, **changes}
    return open_crawl(options_of(server, **given), folder, nullcontext(lambda standing: None))


def go_on(folder: Path, **changes: Any) -> dict[str, Any]:
    return resume_crawl(folder, nullcontext(lambda standing: None), **{"max_pages": 1e9, **changes})


@pytest.mark.parametrize("strategy", ["batch-pagerank", "partial-pagerank"])
def test_scores_are_made_of_the_links_of_earlier_runs_too(
    server: Served, tmp_path: Path, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(server, tmp_path / "c", strategy=strategy)
    runs: list[tuple[int, int]] = []
    own = scores.Scores.scores

    def noted(self: scores.Scores, life: Any) -> Any:
        runs.append((len(self._sources), np.count_nonzero(life == FETCHED)))
        return own(self, life)

    monkeypatch.setattr(scores.Scores, "scores", noted)
    go_on(tmp_path / "c")
    assert runs and all(kept == fetched > 90 for kept, fetched in runs)


def test_names_that_nobody_had_looked_up_yet_are_looked_up(server: Served, tmp_path: Path) -> None:
    """Killed while the name server was silent: the sites are known, their addresses are not."""
    folder = prepared(tmp_path / "c", options_of(server, hosts={}, nameservers=("127.0.0.1:9",)))
    with Run("--resume", folder) as run:
        assert run.wait_for(lambda: rows(folder, "select 1 from site limit 1") != [])
        run.send(signal.SIGKILL, run.loop)
        run.ended()
    assert rows(folder, "select count(*) from address") == [(0,)]
    hosts = {name: (address,) for name, address in server.hosts.items()}
    assert go_on(folder, hosts=hosts, nameservers=(), max_pages=50)["pages_fetched"] == 50


def test_a_clock_that_was_set_back_holds_nothing_up(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(server, tmp_path / "c")
    monkeypatch.setattr("trapline.crawl.live.time.time", lambda now=time.time: now() - 3600.0)
    assert go_on(tmp_path / "c", max_seconds=30.0)["stopped_by"] == "drained"
