"""Makes the pictures in docs/images: make screenshots

Runs the commands of README and tutorial on loopback addresses, in a temporary folder. `compare.png` is the plot that `trapline compare`
writes. `terminal.svg` is the screen of a running crawl, read from a pseudo-terminal. `report.png` and `comparison.png` are HTML pages in
headless Chromium, which must be installed; `dashboard.png` and `why-not-faster.png` are views of the dashboard of a running crawl.
"""

import fcntl
import os
import pty
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

import pyte
from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parent / "images"
TRAPLINE = Path(sys.executable).with_name("trapline")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
COLUMNS, ROWS = 128, 22
DASHBOARD = "127.0.0.1:8649"
WATCHED_S = 40.0  # of a crawl, before its dashboard is shown: by then its curves have a shape
SHOWN_AFTER_S = 3.0  # after the first view: by then the crawl has rates and busy sites
NO_BREAK = "\u00a0"  # ordinary spaces would be drawn as one
LEFT, TOP, CHARACTER, LINE = 16, 44, 8.43, 19  # pixels, for a font of 14 pixels
CRAWL = "--seeds seeds --hosts hosts --allow-private --scope any --delay 1s --pause 0 --max-pages 500 -o first"
WATCHED = (
    "--seeds seeds --hosts hosts --allow-private --scope any --delay 4s --pause 100ms --max-pages 20000 --connections 40"
    " -o museums --quiet"
)


def main() -> None:
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        sys.exit(f"none of {', '.join(BROWSERS)} is installed; install one, such as Debian's package chromium")
    IMAGES.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        trapline("warmup")
        trapline("graph generate --pages 100000 --sites 2000 --seed 1 -o large")
        trapline(
            "compare large breadth-first opic larger-sites-first crawl-ability --connections 10 --max-time 1h -o readme"
        )
        shutil.copy("readme/quality-time.png", IMAGES / "compare.png")
        trapline("graph generate --pages 2000 --sites 40 --seed 1 -o web")
        with served_web():
            (IMAGES / "terminal.svg").write_text(drawn(screen_of(f"crawl {CRAWL}"), f"trapline crawl {CRAWL}"))
            trapline("report first")
        trapline("graph generate --pages 20000 --sites 120 --seed 2 -o wide")
        with served_web("wide --faults not-found=.03"):
            photograph_dashboard(browser)
        trapline(
            "compare web backlink-count opic larger-sites-first crawl-ability --connections 16 --max-pages 1000 -o compared"
        )
        photograph(browser, Path("first/report.html"), IMAGES / "report.png", 1500, 1300)
        photograph(browser, Path("compared/compare.html"), IMAGES / "comparison.png", 1500, 1200)


def trapline(arguments: str) -> None:
    subprocess.run([TRAPLINE, *arguments.split()], check=True, stdout=subprocess.DEVNULL)


@contextmanager
def served_web(web: str = "web") -> Iterator[None]:
    arguments = f"testweb {web} --port 8080 --latency 20ms --hosts-file hosts --urls-file seeds"
    server = subprocess.Popen([TRAPLINE, *arguments.split()], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        server.stdout.readline()  # it serves now
        yield
    finally:
        server.terminate()
        server.wait()


def screen_of(arguments: str) -> list[str]:
    """Run a crawl on a pseudo-terminal and return the lines of its screen some seconds after the first view."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    process, terminal = pty.fork()
    if process == 0:
        os.execv(TRAPLINE, ["trapline", *arguments.split()])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    while not any(line.startswith("pages ") for line in screen.display):
        stream.feed(os.read(terminal, 65_536))
    read_until(terminal, stream, time.monotonic() + SHOWN_AFTER_S)
    lines = [line.rstrip() for line in screen.display]
    read_until(terminal, stream, time.monotonic() + 120)
    os.waitpid(process, 0)
    return lines


def read_until(terminal: int, stream: pyte.ByteStream, end: float) -> None:
    while (left_s := end - time.monotonic()) > 0:
        if select.select([terminal], [], [], left_s)[0]:
            try:
                stream.feed(os.read(terminal, 65_536))
            except OSError:  # the command has ended
                return


def drawn(lines: list[str], command: str) -> str:
    """Return an SVG picture of a terminal that shows these lines below the command."""
    while lines and not lines[-1]:
        lines.pop()
    shown = [f"$ {command}", *lines]
    width, height = round(2 * LEFT + COLUMNS * CHARACTER), TOP + LINE * len(shown)
    rows = "\n".join(
        f'<text x="{LEFT}" y="{TOP + LINE * number}" textLength="{len(line) * CHARACTER:.0f}"'
        f' fill="{"#7FD1C7" if number == 0 else "#E6E6E6"}">{escape(line).replace(" ", NO_BREAK)}</text>'
        for number, line in enumerate(shown)
        if line
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="A running crawl">
<rect width="{width}" height="{height}" rx="8" fill="#1E2429"/>
<g fill="#5C666F"><circle cx="20" cy="16" r="5"/><circle cx="38" cy="16" r="5"/><circle cx="56" cy="16" r="5"/></g>
<g font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14">
{rows}
</g>
</svg>
"""


def photograph(browser: str, page: Path, file: Path, width: int, height: int) -> None:
    command = [browser, "--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={width},{height}"]
    subprocess.run(
        [*command, f"--screenshot={file}", page.resolve().as_uri()],
        check=True,
        stderr=subprocess.DEVNULL,
        timeout=60,
    )


def photograph_dashboard(browser: str) -> None:
    """Crawl, and take pictures of two views of the dashboard while the crawl runs."""
    crawl = subprocess.Popen([TRAPLINE, "crawl", *WATCHED.split(), "--dashboard", DASHBOARD], stderr=subprocess.DEVNULL)
    try:
        time.sleep(WATCHED_S)
        with (
            sync_playwright() as driver,
            driver.chromium.launch(executable_path=browser, args=["--no-sandbox"]) as found,
        ):
            page = found.new_page(viewport={"width": 1400, "height": 1000})
            for view, file in (("overview", "dashboard.png"), ("speed", "why-not-faster.png")):
                page.goto(f"http://{DASHBOARD}/#/{view}")
                time.sleep(SHOWN_AFTER_S)
                page.screenshot(path=IMAGES / file)
    finally:
        crawl.terminate()
        crawl.wait()


if __name__ == "__main__":
    main()
