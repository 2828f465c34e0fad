"""Live crawls that take no time, for tests of what is made from them. test_live.py and test_live_servers.py have real ones."""

import numpy as np
import pytest

from trapline.lab import live_servers
from trapline.lab.cao import throughput
from trapline.lab.castillo import real_crawls
from trapline.lab.live import LiveConditions, LiveLog
from trapline.processor import ProcessorTime
from trapline.testweb import ServedWeb


def no_live_crawls(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (throughput, real_crawls):
        monkeypatch.setattr(module, "crawl_live", made_up_crawl)
    monkeypatch.setattr(live_servers, "live", live_servers.simulated)


def made_up_crawl(web: ServedWeb, crawl: LiveConditions) -> LiveLog:
    """Fetch pages in the order of their numbers, ten a second on each connection, each connection 100 pages long."""
    pages = np.arange(min(web.pages, crawl.max_pages), dtype=np.int32)
    site = np.array(web.site, np.int32)[pages]
    end_s = (pages + 1) / (10.0 * crawl.connections)
    used = ProcessorTime(0.3 * end_s[-1], 0.1 * end_s[-1], 0.6 * end_s[-1])
    sizes = np.array(web.sizes, np.int64)[pages]
    return LiveLog(
        pages, site, (pages // 100 + 1).astype(np.int32), end_s, sizes, len(pages), np.full(web.sites, 100), used
    )
