"""Measures the first start after an installation: python bench/start.py [--wheels FOLDER] [--commands crawl,simulate,demo]

Builds two wheels, one with compiled kernels (packaging/wheel.py) and one without (uv build), unless FOLDER has them. Installs each into a
new environment and measures, from an empty cache, the seconds until the first page is requested, until the result of a simulation is
printed, and until the page of the demo is written; then the same for the wheel without kernels in a second environment with
the cache of the first. Seconds are those of the clock and, in brackets, of the processor, with all processes that a command starts.

Then it simulates crawls with the kernels of the wheel, which are compiled for a baseline processor, and with kernels compiled for
this processor, in turn, and prints the ratio of their speeds. Takes ten minutes on an idle machine.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).parent.parent
UV = Path(sys.executable).with_name("uv")
ROUNDS = 3
Seconds = tuple[float, float]  # of the clock, of the processor


# ---- Wheels and environments.


def wheels(folder: Path) -> tuple[Path, Path]:
    """Return the wheel with and the wheel without compiled kernels. Build those that are missing."""
    if not list(folder.glob("*-none-any.whl")):
        subprocess.run([UV, "build", "--quiet", "--wheel", "--out-dir", folder, ROOT], check=True)
    if len(list(folder.glob("*.whl"))) < 2:
        subprocess.run([sys.executable, ROOT / "packaging" / "wheel.py", "-o", folder], check=True)
    (plain,) = folder.glob("*-none-any.whl")
    (prebuilt,) = set(folder.glob("*.whl")) - {plain}
    return prebuilt, plain


def environment(folder: Path, wheel: Path) -> Path:
    """Install a wheel into a new environment and return the environment's folder of programs."""
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, folder], check=True)
    install = [UV, "pip", "install", "--quiet", "--compile-bytecode", "--python", folder / "bin" / "python", wheel]
    subprocess.run(install, check=True)
    return folder / "bin"


def variables(home: Path, **more: str) -> dict[str, str]:
    """Return the variables of a user whose home is this folder."""
    home.mkdir(exist_ok=True)
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("TRAPLINE", "NUMBA", "XDG", "PYTHON"))
    }
    return {**kept, "HOME": str(home), **more}


# ---- The commands. Each returns the seconds until a user sees a result.


class Site(BaseHTTPRequestHandler):
    """A site of one page. Notes when the page is first requested."""

    protocol_version = "HTTP/1.1"  # with HTTP/1.0, robots.txt, sitemap and page are three visits, 15 s apart
    requested_at: float | None = None

    def do_GET(self) -> None:
        body = b"<title>A page</title>" if self.path == "/" else b""
        if body and Site.requested_at is None:
            Site.requested_at = time.perf_counter()
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def run(command: list[str | Path], home: Path) -> Seconds:
    """Run a command in its user's home."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, env=variables(home), cwd=home, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command}: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return time.perf_counter() - started, processor_s


def crawl(programs: Path, home: Path) -> Seconds:
    Site.requested_at = None
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        seed = f"http://127.0.0.1:{server.server_port}/"
        started = time.perf_counter()
        _, processor_s = run(
            [
                programs / "trapline",
                "crawl",
                seed,
                "--allow-private",
                "--max-pages",
                "1",
                "-o",
                home / f"crawl{started}",
            ],
            home,
        )
        server.shutdown()
    assert Site.requested_at is not None
    return Site.requested_at - started, processor_s


def simulate(programs: Path, home: Path) -> Seconds:
    return run([programs / "trapline", "simulate", "python-docs", "--strategy", "opic"], home)


def demo(programs: Path, home: Path) -> Seconds:
    return run([programs / "trapline", "demo", "-o", home / "demo"], home)


COMMANDS: dict[str, Callable[[Path, Path], Seconds]] = {"crawl": crawl, "simulate": simulate, "demo": demo}
UNTIL = {"crawl": "first page requested", "simulate": "result printed", "demo": "page written"}


def measure(what: str, programs: Path, homes: Path, commands: list[str]) -> None:
    homes.mkdir(exist_ok=True)
    for name in commands:
        clock_s, processor_s = COMMANDS[name](programs, homes / name)
        print(f"{what:44} {name + ': ' + UNTIL[name]:32} {clock_s:7.1f} s ({processor_s:.1f} s)", flush=True)


# ---- The speed of kernels for a baseline processor.

SPEED = """
import sys, time
from trapline.frontier import Rules
from trapline.graph import generate
from trapline.simulator import simulate
from trapline.strategies import pair

web, rules = generate({pages}, {pages} // 70, seed=1), Rules(delay_s=0.0, lease_s=float("inf"))
for page, site in (("fifo", "larger-sites-first"), ("opic", "top-page")):
    simulate(generate(2000, 50, seed=1), pair(page, site), rules)
    started = time.process_time()
    simulate(web, pair(page, site), rules)
    print(time.process_time() - started)
"""


def compare_speed(programs: Path, home: Path, pages: int) -> None:
    """Print how fast kernels of the wheel are, compared with kernels for this processor."""
    best: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for prebuilt in ("1", "0"):
            said = subprocess.run(
                [programs / "python", "-c", SPEED.format(pages=pages)],
                env=variables(home / prebuilt, TRAPLINE_PREBUILT=prebuilt),
                check=True,
                capture_output=True,
                text=True,
            )
            taken = [float(line) for line in said.stdout.split()]
            best[prebuilt] = [min(pair) for pair in zip(taken, best.get(prebuilt, taken), strict=True)]
    for name, baseline_s, native_s in zip(("larger-sites-first", "opic"), best["1"], best["0"], strict=True):
        print(
            f"{name:20} {pages:,} pages: baseline {baseline_s:.2f} s, this processor {native_s:.2f} s, "
            f"ratio of speeds {native_s / baseline_s:.2f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--wheels", type=Path, metavar="FOLDER", help="folder of the two wheels; built there if missing"
    )
    parser.add_argument("--commands", default=",".join(COMMANDS), metavar="NAMES", help="default: %(default)s")
    parser.add_argument("--parts", default="prebuilt,plain,second,speed", metavar="NAMES", help="default: %(default)s")
    parser.add_argument("--pages", type=int, default=1_000_000, metavar="N", help="web of the simulated crawls")
    given = parser.parse_args()
    commands, parts = given.commands.split(","), given.parts.split(",")
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        prebuilt, plain = wheels((given.wheels or work / "wheels").absolute())
        for wheel in (prebuilt, plain):
            print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")
        with_kernels = environment(work / "with", prebuilt) if {"prebuilt", "speed"} & {*parts} else None
        if with_kernels and "prebuilt" in parts:
            measure("with compiled kernels, empty cache", with_kernels, work / "homes1", commands)
            left = list((work / "homes1").rglob("*.kernel"))
            print(f"kernels compiled by these commands: {len(left)}")
        if "plain" in parts:
            measure("without, empty cache", environment(work / "first", plain), work / "homes2", commands)
        if "second" in parts:
            second = environment(work / "second", plain)
            measure("without, second environment, same cache", second, work / "homes2", commands)
        if with_kernels and "speed" in parts:
            (work / "speed").mkdir()
            compare_speed(with_kernels, work / "speed", given.pages)


if __name__ == "__main__":
    main()
