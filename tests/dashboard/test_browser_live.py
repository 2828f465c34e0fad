"""The pages in a real browser, against the real server, after a real crawl of a site that sends hostile text wherever it can."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.dashboard.browser import OVERFLOW, browsing, chromium
from tests.effort import slow
from tests.hostile_text import ADDRESS, hostile_site

__all__ = ["chromium"]

TRAPLINE = str(Path(sys.executable).parent / "trapline")


@contextmanager
def dashboard(*folders: Path) -> Iterator[str]:
    """Run the command and yield the address that it prints."""
    command = [TRAPLINE, "dashboard", *map(str, folders), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None
        yield found.group()
    finally:
        process.terminate()
        process.wait()


@slow
def test_every_view_of_a_crawl_of_a_hostile_site(tmp_path: Path, chromium: Any) -> None:
    with hostile_site() as server:
        options = ("--allow-private", "--delay", "0", "--backoff", "0", "--retries", "0", "-o", str(tmp_path / "crawl"))
        home = f"http://{ADDRESS}:{server.port}/"
        subprocess.run([TRAPLINE, "crawl", home, *options], check=True, capture_output=True)
    views = {
        "overview": ".steady",
        "speed": ".sentence:not(:empty)",
        "sites": ".sites tbody tr",
        "sites/0": ".rows tbody tr",
        f"explain?url={quote(home, safe='')}": ".explanation dd",
        "quality": ".live-chart, .nothing",
        "events": ".events li",
        "actions": ".nothing:has-text('not running')",
    }
    with dashboard(tmp_path / "crawl") as url, browsing(chromium, may_fail=True) as page:
        page.set_default_timeout(60_000)
        for address, shown in views.items():
            page.goto("about:blank")
            page.goto(f"{url}#/{address}")
            page.wait_for_selector(f"main :is({shown})", state="attached")
            assert page.evaluate("document.querySelectorAll('main script, main img').length") == 0
            assert page.evaluate(OVERFLOW) == 0
        page.goto(f"{url}#/sites/0")
        assert "<script>" in page.inner_text(".file") and "\\u202e" in page.inner_text(".file")
