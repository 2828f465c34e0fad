"""Measures the memory of a crawl whose handler is slow: python bench/live/slow_handler.py

A crawl of a generated web on loopback hands each page to a handler that sleeps. The crawl could fetch several times as many
pages; it must wait for the handler, and its memory must not grow with the pages that it has fetched. Resident memory of the
crawl's process comes from /proc, by the number of pages handled, which comes from the folder's handled.json. "waiting" is the
number of pages on disk that are not handled.
"""

import argparse
import json
import subprocess
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from contestants import trapline
from processor import resident_bytes

from trapline.crawler.files.handled import handled_in
from trapline.crawler.files.reading import Reading
from trapline.errors import ConfigError
from trapline.graph.generate import generate
from trapline.testweb import build_web, serve

_HANDLER = "import time\ndef slow(page):\n    time.sleep({})\n    len(page.body)\n"
_EVERY_S = 0.25
_STEP = 2_000  # pages between two rows of the table


class Sample(NamedTuple):
    handled: int
    waiting: int
    resident: int


def measured(command: list[str], folder: Path) -> list[Sample]:
    """Run the crawl. Return samples, several times a second."""
    samples = []
    with subprocess.Popen(command) as crawler:
        while crawler.poll() is None:
            with suppress(ConfigError, AttributeError):  # the folder is not complete yet, or nothing is committed
                handled = handled_in(folder).pages  # type: ignore[union-attr]
                with closing(Reading(folder)) as reading:
                    fetched = reading.progress().pages  # type: ignore[union-attr]
                samples.append(Sample(handled, max(fetched - handled, 0), resident_bytes(crawler.pid)))
            time.sleep(_EVERY_S)
    assert crawler.returncode == 0
    return samples


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pages", type=int, default=20_000)
    options.add_argument("--sleep", type=float, default=0.01, help="seconds that the handler takes for a page")
    options.add_argument("--json", type=Path, help="write the samples to this file")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as name, serve(build_web(generate(chosen.pages, 100, seed=1))) as server:
        folder, handler, hosts = Path(name) / "crawl", Path(name) / "slow.py", Path(name) / "hosts"
        handler.write_text(_HANDLER.format(chosen.sleep))
        hosts.write_text("".join(f"{address} {host}\n" for host, address in server.hosts.items()))
        seeds = Path(name) / "seeds"
        seeds.write_text("\n".join(server.seed_urls))
        args = ["--seeds", str(seeds), "--hosts", str(hosts), "--scope", "any", "--delay", "0", "--allow-private"]
        command = trapline("crawl", *args, "--quiet", "-o", str(folder), "--handler", f"{handler}:slow")
        samples = measured(command, folder)
        summary = json.loads((folder / "summary.json").read_text())
    print(f"{summary['pages_fetched']:,} pages, {summary['pages_per_second']:.0f} per second")
    print("pages handled  waiting   MB")
    for pages in range(0, samples[-1].handled, _STEP):
        near = [sample for sample in samples if pages <= sample.handled < pages + _STEP]
        if near:
            waiting, resident = max(one.waiting for one in near), max(one.resident for one in near)
            print(f"{pages + _STEP:13,}  {waiting:7,}  {resident / 1e6:3.0f}")
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(samples))


if __name__ == "__main__":
    main()
