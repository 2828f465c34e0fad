"""Measures what a page costs while a crawl grows to 10,000,000 known URLs: python bench/live/growth.py [--known URLS]

nginx answers every request on 100 sites with the same page. Its 40 links are relative, so each page of a site leads to 40 new URLs,
without end; 20 more links lead to URLs that every page has. So a page is as much work at the end of the crawl as at its beginning, and
what becomes slower is due to the size of the crawl.

A row covers the time since the row before it: pages per second, processor time of the loop and of its store, and the memory at its
end. Below the table are the snapshots of the crawl with the time that each took, in which nothing is fetched, and the bytes on disk.
"""

import argparse
import json
import sqlite3
import tempfile
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import nginx
from contestants import trapline
from ending import end_in_order
from pages import address, origin
from processor import CrawlSample, sampled_crawl

SITES, NEW, KNOWN = 100, 40, 20
_BY_RULE = "location = /robots.txt { try_files /robots.txt =404; } location / { try_files /page.html =404; }"
_STEPS = (1, 2, 5)
_BYTES = 9_000  # of a page, as in `make bench-live`


class Row(NamedTuple):
    """A row of the crawl's progress table."""

    at: float
    pages: int
    known: int


def write(folder: Path) -> None:
    folder.mkdir(parents=True)
    links = [f"quiet-harbour-{number:02}/" for number in range(NEW)] + [f"/letters/{number}" for number in range(KNOWN)]
    items = "\n".join(f'<li><a href="{link}">A link to {link}</a></li>' for link in links)
    text = "It is the same for every page. " * ((_BYTES - len(items)) // 31)
    page = f"<!DOCTYPE html>\n<html><head><title>A page</title></head>\n<body><ul>\n{items}\n</ul><p>{text}</p></body></html>\n"
    (folder / "page.html").write_text(page)
    (folder / "robots.txt").write_text("User-agent: *\nDisallow: /not-for-robots/\n")


def crawl(seeds: Path, folder: Path, pages: int, options: list[str]) -> list[CrawlSample]:
    args = ["--delay", "0", "--connections", str(SITES), "--max-pages", str(pages), "--allow-private", "--quiet"]
    return sampled_crawl(trapline("crawl", "--seeds", str(seeds), "-o", str(folder), *args, *options))


def progress(folder: Path) -> list[Row]:
    with closing(sqlite3.connect(folder / "crawl.db")) as database:
        return [Row(*row) for row in database.execute("select at, pages, known from progress order by at")]


def print_rows(rows: list[Row], samples: list[CrawlSample], most: int) -> None:
    print("| known URLs | pages | pages/s | loop, us a page | store, us a page | loop, MB | store, MB |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    first = next(row for row in rows if row.pages)
    before, used_before = first, _at(samples, first)
    for known in (step * 10**power for power in range(5, 10) for step in _STEPS):
        row = next((row for row in rows if row.known >= known), None)
        if row is None or known > most:
            return
        used, pages = _at(samples, row), row.pages - before.pages
        loop, store = (1e6 * (used[part] - used_before[part]) / pages for part in (1, 2))
        speed = pages / (row.at - before.at)
        memory = f"{used.loop_bytes / 1e6:,.0f} | {used.store_bytes / 1e6:,.0f}"
        print(f"| {row.known:,} | {row.pages:,} | {speed:,.0f} | {loop:.0f} | {store:.0f} | {memory} |", flush=True)
        before, used_before = row, used


def _at(samples: list[CrawlSample], row: Row) -> CrawlSample:
    return min(samples, key=lambda sample: abs(sample.at - row.at))


def print_end(folder: Path, rows: list[Row]) -> None:
    notes = (json.loads(line) for line in (folder / "crawl.log").read_text().splitlines())
    for note in notes:
        if note.get("event") == "snapshot":
            at = datetime.fromisoformat(note["at"]).timestamp()
            row = min(rows, key=lambda row: abs(row.at - at))
            print(f"snapshot after {row.pages:,} pages, {row.known:,} known URLs: {note['seconds']:.2f} s")
    sizes = {file.name: file.stat().st_size for file in folder.rglob("*") if file.is_file()}
    print(f"on disk: {sum(sizes.values()) / 1e6:,.0f} MB, of which the database {sizes['crawl.db'] / 1e6:,.0f} MB")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--known", type=int, default=10_000_000, help="known URLs at the end [10000000]")
    options.add_argument("--folder", type=Path, help="folder of the crawl, which is kept [a temporary one]")
    args, more = options.parse_known_args()
    end_in_order()
    with tempfile.TemporaryDirectory() as scratch:
        root, seeds = Path(scratch) / "web", Path(scratch) / "seeds"
        folder = args.folder or Path(scratch) / "crawl"
        write(root)
        addresses = [address(site) for site in range(SITES)]
        [port] = nginx.free_ports(addresses, 1)
        seeds.write_text("".join(f"{origin(site, port)}/\n" for site in range(SITES)))
        with nginx.serving([nginx.Listener(addresses, port, str(root), extra=_BY_RULE)], Path(scratch) / "nginx"):
            samples = crawl(seeds, folder, args.known // NEW + SITES, more)
        rows = progress(folder)
        print_rows(rows, samples, args.known)
        print_end(folder, rows)


if __name__ == "__main__":
    main()
