"""A crawl that is stopped ends, even if servers do not answer."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.crawler.kill_world import options_of, prepared, served
from trapline import cli
from trapline.crawler.engine import run
from trapline.crawler.engine.options import CrawlOptions, live_rules
from trapline.graph import generate
from trapline.testweb import Behaviour, build_web, serve


@contextmanager
def no_display() -> Iterator[Any]:
    yield lambda standing: None


def test_unanswered_requests_are_dropped_after_the_grace_period(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        summary = run.open_crawl(options, tmp_path / "crawl", no_display())
    assert summary["stopped_by"] == "max-time"
    assert summary["pages_fetched"] > 0 and summary["errors"] == 0


def test_a_snapshot_that_cannot_be_written_ends_the_crawl_with_a_hint_how_to_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with served(60, 4) as server:
        folder = prepared(tmp_path / "c", options_of(server, snapshot_pages=20))
        with monkeypatch.context() as patched:
            patched.setattr("trapline.crawler.files.checkpoint.save", full)
            assert cli.run(["crawl", "--quiet", "--resume", str(folder)]) == 2
        said = f"trapline: error: {folder}: the disk is full; make room and continue with --resume {folder}\n"
        assert capsys.readouterr().err == said
        assert cli.run(["crawl", "--quiet", "--resume", str(folder)]) == 0
