"""A crawl that is stopped ends, even if servers do not answer."""

import errno
import importlib
import json
import signal
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


# ---- signals during the start


def sends(monkeypatch: pytest.MonkeyPatch, number: int, where: str, ahead: bool = False) -> None:
    """Send this process a signal when the function has returned; `ahead`: when it is called."""
    module, name = where.rsplit(".", 1)
    function = getattr(importlib.import_module(module), name)

    def sending(*given: Any, **named: Any) -> Any:
        if ahead:
            signal.raise_signal(number)
        answer = function(*given, **named)
        signal.raise_signal(number)
        return answer

    monkeypatch.setattr(where, sending)


@pytest.mark.parametrize(
    ("where", "number", "why"),
    [
        ("trapline.crawler.files.opening.claim_new", signal.SIGTERM, "terminated"),
        ("trapline.crawler.files.opening.claim_new", signal.SIGINT, "interrupted"),
        ("trapline.crawler.engine.run.note_begin", signal.SIGTERM, "terminated"),
    ],
)
def test_a_signal_after_the_folder_was_made_leaves_a_complete_folder(
    where: str, number: int, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sends(monkeypatch, number, where)
    crawl = ["crawl", "http://127.0.0.1:9/", "--allow-private", "--quiet", "-o", str(tmp_path / "c")]
    assert cli.run(crawl) == 0
    assert json.loads((tmp_path / "c" / "summary.json").read_text())["stopped_by"] == why
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_before_the_folder_was_made_leaves_none_and_one_line(
    number: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sends(monkeypatch, number, "trapline.crawler.files.opening.check_free", ahead=True)
    crawl = ["crawl", "http://127.0.0.1:9/", "--allow-private", "--quiet", "-o", str(tmp_path / "c")]
    assert cli.run(crawl) == code
    assert (
        capsys.readouterr().err
        == "trapline: stopped before the first request; nothing was written; run the command again\n"
    )
    assert not (tmp_path / "c").exists()


def test_sigterm_as_a_resumed_run_begins_leaves_a_complete_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(60, 4) as server:
        folder = prepared(tmp_path / "c", options_of(server))
        assert cli.run(["crawl", "--quiet", "--resume", str(folder), "--max-pages", "10"]) == 0
        sends(monkeypatch, signal.SIGTERM, "trapline.crawler.engine.run.note_begin")
        assert cli.run(["crawl", "--quiet", "--resume", str(folder), "--max-pages", "40"]) == 0
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["stopped_by"], summary["pages_fetched"]) == ("terminated", 10)
