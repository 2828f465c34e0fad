"""`trapline crawl --dashboard` and `--metrics`: starts the dashboard of a crawl as a process beside it, and ends it with the crawl.

The process starts before anything else is loaded or compiled, so that it is ready when the crawl sends its first request.
"""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from trapline.cli.crawl.options import DASHBOARD as LISTEN
from trapline.cli.options.values import listen_address
from trapline.dashboard.settings import DashboardSettings, read_token, start
from trapline.errors import ConfigError
from trapline.terminal import say

_ENDS_WITHIN_S = 5.0


class Dashboard:
    """The process, if one was asked for."""

    def __init__(self, process: "subprocess.Popen[bytes] | None", quiet: bool) -> None:
        self._process, self._quiet = process, quiet

    def announce(self) -> None:
        """Wait until the process serves, and print where. Raise `ConfigError` if it cannot."""
        if self._process is None or self._process.stdout is None:
            return
        try:
            found = json.loads(self._process.stdout.readline())
        except ValueError:
            raise ConfigError("the dashboard did not start; start it by itself with: trapline dashboard DIR") from None
        if "error" in found:
            raise ConfigError(found["error"])
        for line in _lines(found) if not self._quiet else ():
            say(line, err=True)


def _lines(found: dict[str, Any]) -> Iterator[str]:
    if found["pages"]:
        yield f"dashboard: {found['pages']}"
    if found["metrics"]:
        token = f" (Authorization: Bearer {found['metrics_token']})" if found["metrics_token"] else ""
        yield f"metrics: {found['metrics']}{token}"


@contextmanager
def watched(given: dict[str, Any]) -> Iterator[Dashboard]:
    """Run the dashboard of a crawl with these options during the `with` block."""
    if given["dashboard"] is None and given["metrics"] is None:
        yield Dashboard(None, True)
        return
    settings = _settings(given)
    process = start(settings)
    try:
        yield Dashboard(process, given["quiet"])
    finally:
        _end(process)


def _settings(given: dict[str, Any]) -> DashboardSettings:
    folder: Path = given["resume"] or given["output"]
    return DashboardSettings(
        (str(folder.absolute()),),
        _address("--dashboard", given["dashboard"]),
        _address("--metrics", given["metrics"]),
        token=read_token(None),
        option="--dashboard",
    )


def _address(option: str, text: str | None) -> tuple[str, int] | None:
    if text is not None and "://" in text:
        raise ConfigError(f"{option} takes HOST:PORT, but is followed by {text}; write {option} after the URLs")
    return None if text is None else listen_address(text, option, LISTEN)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the process: its standard input ends."""
    assert process.stdin is not None and process.stdout is not None
    with suppress(BrokenPipeError):
        process.stdin.close()
    try:
        process.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
