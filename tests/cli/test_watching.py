"""`crawl --dashboard` starts a process beside the crawl, prints where it is, and ends it with the crawl."""

import http.client
import json
from pathlib import Path
from typing import Any

import pytest

from trapline.cli import run
from trapline.cli.crawl.watching import watched
from trapline.errors import ConfigError

Captured = pytest.CaptureFixture[str]


def given(folder: Path, **changes: Any) -> dict[str, Any]:
    return {"dashboard": None, "metrics": None, "resume": None, "output": folder, "quiet": False, **changes}


def test_the_dashboard_serves_before_the_crawl_begins_and_ends_with_it(tmp_path: Path, capsys: Captured) -> None:
    with watched(given(tmp_path / "crawl", dashboard="127.0.0.1:0")) as dashboard:
        dashboard.announce()
        line = capsys.readouterr().err
        assert line.startswith("dashboard: http://127.0.0.1:") and line.count("\n") == 1
        host = line.partition("http://")[2].strip().rstrip("/")
        connection = http.client.HTTPConnection(host, timeout=20)
        connection.request("GET", "/api/crawls")
        assert json.loads(connection.getresponse().read())[0]["folder"] == str(tmp_path / "crawl")
        connection.close()
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection(host, timeout=20).request("GET", "/")
    assert not (tmp_path / "crawl").exists()


def test_an_address_that_is_taken_is_an_error_before_the_crawl_begins(tmp_path: Path) -> None:
    with (
        watched(given(tmp_path / "crawl", metrics="203.0.113.9:1")) as dashboard,
        pytest.raises(ConfigError, match="not an address of this machine"),
    ):
        dashboard.announce()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--dashboard", "http://a.example/"), "write --dashboard after the URLs"),
        (("http://a.example/", "--dashboard", "8000"), "--dashboard 8000: not HOST:PORT"),
        (("http://a.example/", "--metrics", "a"), "--metrics a: not HOST:PORT"),
    ],
)
def test_wrong_addresses_are_one_line(tmp_path: Path, words: tuple[str, ...], message: str, capsys: Captured) -> None:
    assert run(["crawl", *words, "-o", str(tmp_path / "crawl")]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and not (tmp_path / "crawl").exists()
