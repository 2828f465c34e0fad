"""A crawl that is stopped ends, also where servers do not."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from trapline.crawl import run
from trapline.crawl.options import CrawlOptions, live_rules
from trapline.graph import generate
from trapline.testweb import Behaviour, build_web, serve


@contextmanager
def nobody() -> Iterator[Any]:
    yield lambda standing: None


def test_what_servers_hold_back_is_given_up_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_GRACE_S", 0.5)
    never = Behaviour(latency_s=3_600.0)
    web = build_web(generate(20, 4, seed=1), [Behaviour(), never, Behaviour(), never])
    with serve(web) as server:
        hosts = {name: (address,) for name, address in server.hosts.items()}
        options = CrawlOptions(
            tuple(server.seed_urls),
            rules=live_rules(delay_s=0.0),
            pause_s=0.0,
            max_seconds=0.5,
            allow_private=True,
            hosts=hosts,
        )
        summary = run.open_crawl(options, tmp_path / "crawl", nobody())
    assert summary["stopped_by"] == "max-seconds"
    assert summary["pages_fetched"] > 0 and summary["errors"] == 0
