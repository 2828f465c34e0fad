"""Measures the memory that a crawl takes for each known URL: python bench/live/memory.py

The result is (memory at 1,000,000 known URLs - memory at 100,000) / 900,000, of the crawl's process; the aim is at most 120
bytes with the page rank opic. The default, opic-by-directory, keeps nine more numbers of 8 bytes for each of them: --quality
opic-by-directory. The store is another process, whose memory should not grow; it is shown separately.

The pages have 400 links each, so that few fetches discover many URLs. Every URL can be fetched: its path names the file that
nginx answers with. The number of known URLs over time comes from the crawl's own progress table, resident memory comes from
/proc, ten times a second.
"""

import argparse
import sqlite3
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import NamedTuple

import nginx
from contestants import trapline
from ending import end_in_order
from pages import address, origin
from processor import CrawlSample, sampled_crawl

SITES, FILES, LINKS = 100, 30, 400  # a site's files hold 12,000 links to as many URLs
FIRST, LAST, STEP = 100_000, 1_000_000, 100_000
BYTES_AT_MOST = 120
_PAGES = 8_000  # a site's 80 fetches hit 28 of its 30 files: 1.1 million URLs
_BY_NAME = "location ~ ^/articles/([0-9]+)/ { try_files /$1.html =404; }"  # a directive of nginx
_WORDS = ["quiet", "harbour", "letters", "winter", "bridge", "copper", "garden", "village", "distant", "morning"]


class Row(NamedTuple):
    """A row of the crawl's progress table."""

    at: float
    known: int


def write(folder: Path) -> float:
    """Write the files, which all sites share, with links relative to the host; return the mean length of a URL."""
    rng, length = Random(3), 0
    folder.mkdir(parents=True)
    for file in range(FILES):
        paths = [_path(rng, file * LINKS + link) for link in range(LINKS)]
        length += sum(map(len, paths))
        items = "\n".join(f'<li><a href="{path}">{path[12:-5]}</a></li>' for path in paths)
        page = f"<!DOCTYPE html>\n<html><head><title>{file}</title></head>\n<body><ul>\n{items}\n</ul></body></html>\n"
        (folder / f"{file:02}.html").write_text(page)
    (folder / "index.html").write_bytes((folder / "00.html").read_bytes())
    (folder / "robots.txt").write_text("User-agent: *\nDisallow: /not-for-robots/\n")
    return length / (FILES * LINKS) + len(origin(SITES // 2, 10_000))


def _path(rng: Random, number: int) -> str:
    return f"/articles/{rng.randrange(FILES):02}/{'-'.join(rng.sample(_WORDS, 2))}-{number:05}.html"


def crawl(seeds: Path, folder: Path, options: list[str]) -> list[CrawlSample]:
    fixed = f"--delay 0 --connections {SITES} --max-pages {_PAGES} --allow-private --quiet"
    return sampled_crawl(trapline("crawl", "--seeds", str(seeds), "-o", str(folder), *fixed.split(), *options))


def progress(folder: Path) -> list[Row]:
    with sqlite3.connect(folder / "crawl.db") as database:
        return [Row(*row) for row in database.execute("select at, known from progress order by at")]


def reached(rows: list[Row], samples: list[CrawlSample], known: int) -> tuple[Row, CrawlSample]:
    """Return the first row with at least `known` URLs, and the memory at that time."""
    row = next((row for row in rows if row.known >= known), None)
    if row is None:
        sys.exit(f"the crawl knew only {rows[-1].known if rows else 0:,} URLs at its end, {known:,} are needed")
    return row, min(samples, key=lambda sample: abs(sample.at - row.at))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    # Slow enough that the progress table, with a row per second, has several rows between the two points.
    options.add_argument("--bandwidth", default="10MB", help="bandwidth of the crawl; - for no limit [10MB]")
    options.add_argument("--quality", default="opic", help="source of quality: opic, opic-by-directory ... [opic]")
    args = options.parse_args()
    end_in_order()
    with tempfile.TemporaryDirectory() as scratch:
        root, seeds, folder = Path(scratch) / "web", Path(scratch) / "seeds", Path(scratch) / "crawl"
        length = write(root)
        addresses = [address(site) for site in range(SITES)]
        [port] = nginx.free_ports(addresses, 1)
        seeds.write_text("".join(f"{origin(site, port)}/\n" for site in range(SITES)))
        with nginx.serving([nginx.Listener(addresses, port, str(root), extra=_BY_NAME)], Path(scratch) / "nginx"):
            bandwidth = [] if args.bandwidth == "-" else ["--bandwidth", args.bandwidth]
            samples = crawl(seeds, folder, ["--quality", args.quality, *bandwidth])
        rows = progress(folder)
    (first, before), (last, after) = reached(rows, samples, FIRST), reached(rows, samples, LAST)
    grown = (after.loop_bytes - before.loop_bytes) / (last.known - first.known)
    for known in range(FIRST, LAST + 1, STEP):
        row, sample = reached(rows, samples, known)
        print(f"{row.known:9,} known: {sample.loop_bytes / 1e6:7.1f} MB, its store {sample.store_bytes / 1e6:7.1f} MB")
    print(f"{grown:.0f} bytes a URL (at most {BYTES_AT_MOST}); URLs of {length:.0f} characters")


if __name__ == "__main__":
    main()
