"""The table of sites asks a running crawl for new numbers, and a view with old ones waits for them."""

import asyncio
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.dashboard.dashboard_world import made_folder
from trapline.crawler.files.site_table import LIVE_SITES, ROW
from trapline.dashboard import watched_crawl
from trapline.dashboard.watched_crawl import WatchedSites


def write_sites(folder: Path, waiting: int, at: float) -> None:
    rows = np.zeros(2, ROW)
    rows["waiting"] = waiting
    (folder / LIVE_SITES).parent.mkdir(exist_ok=True)
    with (folder / LIVE_SITES).open("wb") as file:
        np.save(file, np.array([at, 0.0]))
        np.save(file, rows)


def test_a_view_waits_for_new_numbers_only_if_its_own_are_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_folder(tmp_path)
    answers = [(1, time.time() - 3600.0), (2, time.time()), (3, time.time())]

    def send(*_: Any) -> None:
        time.sleep(0.1)
        write_sites(tmp_path, *answers.pop(0))

    async def waiting() -> list[int]:
        tables, found = WatchedSites(tmp_path), list[int]()
        for _ in range(3):
            tables._asked_at = tables._read_at = -1000.0  # long ago
            index = await tables.index(running=True)
            found.append(index.page("", "waiting", True, 0, 1)["rows"][0]["waiting"])
        return found

    monkeypatch.setattr(watched_crawl, "send", send)
    assert asyncio.run(waiting()) == [1, 2, 2]
