"""The dashboard in a real browser during a real crawl: every view, and actions that the servers' own log shows to be obeyed."""

import json
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from tests.dashboard.browser import CHROMIUM, OVERFLOW, browsing, launched
from tests.dashboard.dashboard_world import made_folder
from tests.dashboard.test_browser_live import dashboard
from tests.proof.goals import COMMAND
from tests.proof.politeness import links_of
from tests.proof.section import Finding, Section, by_pytest
from tests.testweb.webs import numbered
from trapline.crawler.files.event_log import LOG
from trapline.crawler.files.site_table import LIVE_SITES, ROW
from trapline.fetch.dns import hosts_text
from trapline.testweb import Behaviour, Served, ServedWeb, build_web, serve

_METHOD = """
`testweb` serves 2,000 sites with 50 pages each. Some pages fail: 404, 429, 503, broken gzip, closed connections, no answer.
`trapline crawl --dashboard` crawls them with a delay of 0.2 s. Meanwhile Debian's Chromium, driven by playwright, opens every view,
sorts and searches the sites, explains a URL, blocks the largest of the sites
that are being visited, pauses, continues and stops the crawl. What
the crawl did is read from the log of the servers, which shares no code with the crawler; a request that was sent before an action was
answered may arrive up to one second later. The same is done with a crawl by two processes. Debian's Prometheus scrapes the crawl every
second for a minute.

The times with 10^5 sites are those of a crawl folder that a script makes. They are taken in the browser, from the input until the rows
are in the page, and contain the 50 ms for which the page waits for further typing.
"""
FAULTS = (
    *(("gzip", 0.1), ("not-found", 0.02), ("too-many", 0.002), ("unavailable", 0.002)),
    *(("reset", 0.001), ("silent", 0.0005), ("broken-gzip", 0.001)),
)
ARRIVES_WITHIN_S = 1.0  # after it was sent, on a busy machine
PAUSE_S = 3.0
_LONG_S = 60.0
_SCRAPES = 60
# Each view, with an element that it has only when its data are shown.
_VIEWS = {
    "overview": ".live-chart .line",
    "speed": ".stack rect:not(.track)",
    "sites": ".sites tbody tr",
    "sites/0": ".rows tbody tr",
    "explain": "[name=url]",
    "quality": ".live-chart .line",
    "refresh": ".live-chart .line",
    "events": ".events li",
    "actions": ".cards button:enabled",
}
_SEARCH = """(word) => new Promise((done) => {
  const input = document.querySelector("[type=search]"), began = performance.now();
  const drawn = new MutationObserver(() => { drawn.disconnect(); done(performance.now() - began); });
  drawn.observe(document.querySelector(".sites tbody"), { childList: true });
  input.value = word;
  input.dispatchEvent(new Event("input", { bubbles: true }));
})"""


class Size(NamedTuple):
    sites: int
    pages: int  # of each site
    connections: int
    listed_sites: int  # of the made folder


_FULL, _SHORT = Size(2_000, 50, 100, 100_000), Size(60, 80, 20, 2_000)


def run(full: bool) -> Iterator[Finding]:
    size = _FULL if full else _SHORT
    why_not = _missing_browser()
    if why_not:
        yield Finding("The dashboard shows and controls a crawl in a browser.", why_not, None)
        return
    with tempfile.TemporaryDirectory() as scratch, serve(web_of(size)) as server, launched() as browser:
        yield from _watched(Path(scratch), server, browser, size, full)
        if full:
            yield from _two_processes(Path(scratch), server, browser, size)
        yield from _many_sites(Path(scratch) / "many", browser, size.listed_sites, full)
    if full:
        yield from _by_tests()


def _missing_browser() -> str:
    if not CHROMIUM.exists():
        return f"Chromium is not installed ({CHROMIUM})"
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "the Python package playwright is not installed"
    return ""


def web_of(size: Size) -> ServedWeb:
    behaviour = Behaviour(latency_s=0.02, faults=FAULTS, retry_after_s=1)
    return build_web(numbered(size.sites, size.pages, links_of(size.sites, size.pages)), behaviour, seed=1)


# ---- a crawl in the browser


class Crawl(NamedTuple):
    folder: Path
    process: "subprocess.Popen[bytes]"
    url: str

    def action_at(self, action: str) -> float:
        """Return when the crawl answered the last action of this kind, in seconds since 1970."""
        lines = map(json.loads, (self.folder / LOG).read_text().splitlines())
        times = [line["at"] for line in lines if line["event"] == f"action_{action}"]
        return datetime.fromisoformat(times[-1]).timestamp()


@contextmanager
def crawling(folder: Path, server: Served, size: Size, *options: str) -> Iterator[Crawl]:
    """Run a crawl with its dashboard. It is killed if it still runs at the end."""
    folder.mkdir()
    hosts, seeds, output = folder / "hosts", folder / "seeds", folder / "output"
    hosts.write_text(hosts_text({name: [address] for name, address in server.hosts.items()}))
    seeds.write_text("\n".join(server.seed_urls))
    command = [*COMMAND, "crawl", "--seeds", str(seeds), "--hosts", str(hosts), "--allow-private", "--scope", "any"]
    command += ["--connections", str(size.connections), "--delay", "0.2", "--timeout", "5"]
    command += ["-o", str(folder / "crawl"), "--dashboard", "127.0.0.1:0", *options]
    with output.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
    try:
        yield Crawl(folder / "crawl", process, _once(lambda: _printed_url(output)))
    finally:
        process.kill()
        process.wait()


def _printed_url(output: Path) -> str:
    lines = [line for line in output.read_text().splitlines() if line.startswith("dashboard: ")]
    return lines[0].removeprefix("dashboard: ").strip() if lines else ""


def _once(found: Callable[[], Any]) -> Any:
    """Return the value as soon as it is true."""
    give_up_at = time.monotonic() + _LONG_S
    while not (value := found()):
        if time.monotonic() > give_up_at:
            raise TimeoutError("it did not happen within a minute")
        time.sleep(0.1)
    return value


def _watched(scratch: Path, server: Served, browser: Any, size: Size, full: bool) -> Iterator[Finding]:
    with (
        crawling(scratch / "one", server, size, "--refresh") as crawl,
        browsing(browser) as page,
        _prometheus(scratch, crawl.url) as scraping,
    ):
        page.set_default_timeout(_LONG_S * 1000)
        yield from _views(page, crawl.url)
        yield from _table(page, crawl.url, size)
        yield _explained(page, crawl.url, server.seed_urls[0])
        blocked = _blocked(page, crawl)
        yield from _paused(page, crawl, server)
        if full:
            yield from _scraped(scratch, scraping, crawl)
        page.close()
        yield _stopped(browser, crawl)
        yield _obeyed(server, blocked, "the crawl")


def _opened(page: Any, url: str, address: str, shown: str) -> None:
    page.goto("about:blank")
    page.goto(f"{url}#/{address}")
    page.wait_for_selector(f"main :is({shown})", state="attached")


def _views(page: Any, url: str) -> Iterator[Finding]:
    wide = [address for address, shown in _VIEWS.items() if _fits(page, url, address, shown)]
    claim = "Every view shows its data while the crawl runs, without an error in the browser."
    yield Finding(claim, f"{len(wide)} of {len(_VIEWS)} views: {', '.join(wide)}", len(wide) == len(_VIEWS))
    page.set_viewport_size({"width": 390, "height": 900})
    narrow = [address for address, shown in _VIEWS.items() if _fits(page, url, address, shown)]
    page.set_viewport_size({"width": 1400, "height": 900})
    claim = "At 390 pixels no view is wider than the window."
    yield Finding(claim, f"{len(narrow)} of {len(_VIEWS)} views", len(narrow) == len(_VIEWS))


def _fits(page: Any, url: str, address: str, shown: str) -> bool:
    _opened(page, url, address, shown)
    return bool(page.evaluate(OVERFLOW) == 0)


def _table(page: Any, url: str, size: Size) -> Iterator[Finding]:
    _opened(page, url, "sites?sort=origin&dir=asc", ".sites tbody tr")
    names = page.locator(".sites tbody a").all_inner_texts()
    page.click("thead button:text-is('Site')")
    page.wait_for_selector("th[aria-sort=descending]")
    backwards = page.locator(".sites tbody a").all_inner_texts()
    in_order = names == sorted(names) and backwards == sorted(backwards, reverse=True) and names[0] < backwards[0]
    yield Finding(
        "A click on a column sorts all sites.", f"{len(names)} rows a page, of {size.sites:,} sites", in_order
    )
    wanted = names[len(names) // 2].partition("//")[2].partition(":")[0]
    page.fill("[type=search]", wanted)
    page.wait_for_function("() => document.querySelectorAll('.sites tbody tr').length < 50")
    found = page.locator(".sites tbody a").all_inner_texts()
    yield Finding(
        "The search finds a site by part of its name.",
        f"search for {wanted}: {len(found)} found",
        all(wanted in one for one in found),
    )


def _explained(page: Any, url: str, wanted: str) -> Finding:
    _opened(page, url, f"explain?url={quote(wanted, safe='')}", ".explanation dd")
    said = page.locator(".explanation dd").all_inner_texts()
    return Finding("A URL is explained.", f"{len(said)} lines, the first: {said[0]}", "seed" in said[0])


def _confirmed(page: Any, button: str) -> None:
    page.click(button)
    page.click("#dialog-confirm")
    page.wait_for_selector("#answer:not([hidden])")


class Blocked(NamedTuple):
    host: str
    at: float
    waiting: str  # pages, as the table says


def _blocked(page: Any, crawl: Crawl) -> Blocked:
    """Block the site with the most waiting pages, of those that are being visited."""
    _opened(page, crawl.url, "sites?filter=visiting", ".sites tbody tr")
    row = page.locator(".sites tbody tr").first
    name, waiting = row.locator("a").inner_text(), row.locator("td").first.inner_text()
    row.locator("a").click()
    _confirmed(page, "main button:text-is('Block')")
    page.wait_for_selector("main .state[data-state=blocked]")
    return Blocked(name.partition("//")[2].partition(":")[0], crawl.action_at("block"), waiting)


def _obeyed(server: Served, blocked: Blocked, who: str) -> Finding:
    log = server.log()
    site = list(server.hosts).index(blocked.host)
    times = log.arrival_s[log.site == site] + log.wall
    late = int((times > blocked.at + ARRIVES_WITHIN_S).sum())
    measured = f"{len(times)} requests before, {late} after, with {blocked.waiting} pages waiting"
    claim = f"After a site is blocked in the browser, {who} sends it no request."
    return Finding(claim, measured, late == 0 < len(times) and blocked.waiting != "0")


def _paused(page: Any, crawl: Crawl, server: Served) -> Iterator[Finding]:
    _confirmed(page, "#pause:text-is('Pause')")
    page.wait_for_selector("#state:text-is('paused')")
    time.sleep(ARRIVES_WITHIN_S + PAUSE_S)
    _confirmed(page, "#pause:text-is('Continue')")
    page.wait_for_selector("#state:text-is('running')")
    time.sleep(PAUSE_S)
    began, ended = crawl.action_at("pause"), crawl.action_at("continue")
    log = server.log()
    times = log.arrival_s + log.wall
    before, during, after = (
        int(((times > first) & (times <= last)).sum())
        for first, last in ((began - PAUSE_S, began), (began + ARRIVES_WITHIN_S, ended), (ended, ended + PAUSE_S))
    )
    measured = f"{before} requests in the {PAUSE_S:.0f} s before, {during} in a pause of {ended - began:.1f} s"
    yield Finding("A crawl that is paused in the browser sends no request.", measured, during == 0 < before)
    yield Finding("It goes on when it is continued.", f"{after} requests in the {PAUSE_S:.0f} s after", after > 0)


def _stopped(browser: Any, crawl: Crawl) -> Finding:
    with browsing(browser, may_fail=True) as page:  # its dashboard ends with the crawl
        _opened(page, crawl.url, "overview", ".steady")
        _confirmed(page, "#stop")
        began = time.monotonic()
        code = crawl.process.wait(_LONG_S)
    took = f"exit code {code} after {time.monotonic() - began:.1f} s"
    done = subprocess.run([*COMMAND, "verify", str(crawl.folder)], capture_output=True, text=True)
    whole = f"`trapline verify`: exit code {done.returncode}"
    claim = "A crawl that is stopped in the browser ends cleanly."
    return Finding(claim, f"{took}; {whole}", done.returncode == 0)


def _two_processes(scratch: Path, server: Served, browser: Any, size: Size) -> Iterator[Finding]:
    with crawling(scratch / "two", server, size, "--processes", "2") as crawl, browsing(browser) as page:
        page.set_default_timeout(_LONG_S * 1000)
        _opened(page, crawl.url, "partitions", ".partition-bars rect:not(.track)")
        rows = page.locator("main tbody tr").count()
        yield Finding("The view of partitions has a row for each.", f"{rows} rows for 2 partitions", rows == 2)
        blocked = _blocked(page, crawl)
        time.sleep(PAUSE_S)
        yield _obeyed(server, blocked, "a crawl by two processes")
        page.close()
        yield _stopped(browser, crawl)


# ---- 10^5 sites


def _many_sites(folder: Path, browser: Any, count: int, full: bool) -> Iterator[Finding]:
    """Yield the times with many sites. Only the proof judges them: a test must not depend on the speed of its machine."""
    _made_sites(folder, count)
    with dashboard(folder) as url, browsing(browser) as page:
        overview_s = _timed(lambda: _opened(page, url, "overview", ".steady"))
        table_s = _timed(lambda: _opened(page, url, "sites", ".sites tbody tr"))
        searches = [page.evaluate(_SEARCH, f"site-{number}") / 1000 for number in range(7, 57)]
    first = f"overview {overview_s * 1000:.0f} ms, table of sites {table_s * 1000:.0f} ms"
    claim = f"With {count:,} sites, the first view and the table of sites each take less than a second."
    yield Finding(claim, first, max(overview_s, table_s) < 1.0 if full else None)
    middle, slow = statistics.median(searches), statistics.quantiles(searches, n=20)[-1]
    measured = f"50 searches: median {middle * 1000:.0f} ms, 95th percentile {slow * 1000:.0f} ms"
    yield Finding(f"With {count:,} sites, a search takes less than 200 ms.", measured, slow < 0.2 if full else None)


def _timed(action: Callable[[], None]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def _made_sites(folder: Path, count: int) -> None:
    made_folder(folder, [f"http://site-{number}.example" for number in range(count)])
    chance, rows = np.random.default_rng(1), np.zeros(count, ROW)
    for name in ("waiting", "known", "taken", "failures"):
        rows[name] = chance.integers(0, 1000, count)
    (folder / LIVE_SITES).parent.mkdir()
    with (folder / LIVE_SITES).open("wb") as file:
        np.save(file, np.array([time.time(), 0.0]))
        np.save(file, rows)


# ---- Prometheus


@contextmanager
def _prometheus(scratch: Path, url: str) -> Iterator[str]:
    """Let Prometheus scrape the dashboard every second. Yield its address; "": it is not installed."""
    if shutil.which("prometheus") is None or shutil.which("promtool") is None:
        yield ""
        return
    target = url.partition("//")[2].rstrip("/")
    scrape = {"job_name": "trapline", "scrape_interval": "1s", "static_configs": [{"targets": [target]}]}
    # JSON is YAML.
    (scratch / "prometheus.yml").write_text(json.dumps({"scrape_configs": [scrape]}))
    with socket.create_server(("127.0.0.1", 0)) as free:
        place = f"127.0.0.1:{free.getsockname()[1]}"
    command = ["prometheus", f"--config.file={scratch}/prometheus.yml", f"--storage.tsdb.path={scratch}/tsdb"]
    with (scratch / "prometheus.log").open("wb") as file:
        process = subprocess.Popen([*command, f"--web.listen-address={place}"], stdout=file, stderr=file)
    try:
        yield f"http://{place}"
    finally:
        process.terminate()
        process.wait()


def _scraped(scratch: Path, prometheus: str, crawl: Crawl) -> Iterator[Finding]:
    scraped, lint = "Prometheus reads the metrics every second for a minute.", "promtool finds no fault."
    if not prometheus:
        yield Finding(f"{scraped[:-1]}, and {lint}", "Prometheus or promtool is not installed", None)
        return
    _once(lambda: _asked(prometheus, "count_over_time(up[5m])") >= _SCRAPES)
    scrapes, least = (_asked(prometheus, f"{function}_over_time(up[5m])") for function in ("count", "min"))
    samples = _asked(prometheus, "min_over_time(scrape_samples_scraped[5m])")
    pages = _asked(prometheus, "trapline_pages_total")
    slowest = _asked(prometheus, "max_over_time(scrape_duration_seconds[5m])")
    measured = f"{scrapes:.0f} scrapes, least `up` {least:.0f}, at least {samples:.0f} samples, slowest {slowest * 1000:.0f} ms"
    yield Finding(scraped, f"{measured}; the last one says {pages:,.0f} pages", least == 1 and pages > 0)
    with urllib.request.urlopen(f"{crawl.url}metrics") as answer:
        metrics = answer.read()
    checks = {
        "metrics": subprocess.run(["promtool", "check", "metrics"], input=metrics, capture_output=True),
        "config": subprocess.run(["promtool", "check", "config", f"{scratch}/prometheus.yml"], capture_output=True),
    }
    faults = [
        f"{name}: {(done.stderr or done.stdout).decode().strip()}" for name, done in checks.items() if done.returncode
    ]
    yield Finding(lint, "; ".join(faults) or f"{len(metrics.splitlines())} lines of metrics, no fault", not faults)


def _asked(prometheus: str, query: str) -> float:
    """Return the value of a query that has one result; 0: there is none yet."""
    try:
        with urllib.request.urlopen(f"{prometheus}/api/v1/query?query={quote(query)}") as answer:
            result = json.load(answer)["data"]["result"]
    except OSError:
        return 0.0
    return float(result[0]["value"][1]) if result else 0.0


# ---- tests that exist already


def _by_tests() -> Iterator[Finding]:
    yield by_pytest(
        "Every view works by keyboard and pointer, wide and narrow, light and dark; hostile names, URLs and titles execute nothing.",
        "tests/dashboard/test_browser.py",
        "tests/dashboard/test_browser_live.py",
    )
    yield by_pytest(
        "Forged requests, foreign Host headers and wrong tokens are refused.", "tests/dashboard/test_access.py"
    )
    yield by_pytest(
        "The answer to “why not faster?” is correct in staged situations.", "tests/crawler/test_why_not_faster_live.py"
    )


SECTION = Section("The dashboard", _METHOD, run)
