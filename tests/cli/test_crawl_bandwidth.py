"""The measured rate under --bandwidth and --site-bandwidth. These tests are slow and depend on the machine, so they run
only in `make proof`."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.cli.crawling import crawl
from tests.testweb.webs import numbered
from trapline.testweb import Served, build_web, serve

SECONDS = float(os.environ.get("TRAPLINE_BANDWIDTH_SECONDS", "0"))
SITES, PAGES, SIZE = 8, 400, 20_000
pytestmark = pytest.mark.skipif(not SECONDS, reason="set TRAPLINE_BANDWIDTH_SECONDS to measure for so long")


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    graph = numbered(SITES, PAGES)
    assert graph.sizes is not None
    graph.sizes[:] = SIZE
    with serve(build_web(graph, names="address")) as server:
        yield server


def rates(server: Served, folder: Path, *options: str) -> "np.ndarray":
    """Bytes per second from each site, as the server saw them, without the first second."""
    before = len(server.log())
    crawl(folder, *server.seed_urls, "--max-time", f"{SECONDS + 1}s", *options)
    seen = server.log()._rows[before:]
    seen = seen[seen["end_s"] > seen["arrival_s"].min() + 1.0]
    return np.bincount(seen["site"], seen["size"], SITES) / (seen["end_s"].max() - seen["arrival_s"].min())


@pytest.mark.parametrize("rate", [200_000, 2_000_000])
def test_all_sites_together_stay_within_the_bandwidth(server: Served, tmp_path: Path, rate: int) -> None:
    measured = rates(server, tmp_path / "out", "--bandwidth", f"{rate}").sum()
    print(f"--bandwidth {rate}: {measured:,.0f} bytes/s")
    assert measured == pytest.approx(rate, rel=0.1)


def test_each_site_stays_within_its_bandwidth(server: Served, tmp_path: Path) -> None:
    measured = rates(server, tmp_path / "out", "--site-bandwidth", "100kB")
    print(f"--site-bandwidth 100000: {measured.round()} bytes/s")
    assert measured == pytest.approx(100_000, rel=0.1)
