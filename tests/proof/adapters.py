"""The scheduler for Scrapy loses nothing when its process is killed."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.proof.section import Finding, Section, say
from tests.scrapy.kills import CONCURRENT, KilledCrawl, killed_crawl

_METHOD = f"""
A Scrapy spider with `trapline.scrapy.Scheduler` follows all links of a generated web, which testweb serves on loopback, with up to
{CONCURRENT} requests at a time. SIGKILL ends the process at random moments while it starts, resumes or crawls, and the same command
starts it again. The log of testweb says which pages were requested in which run. The spider writes a line when a callback has ended.
"""
_PATIENCE_S = 1.0  # from the end of a callback until the page is on disk, on a busy machine


def run(full: bool) -> Iterator[Finding]:
    pages, sites, kills = (3_000, 200, 25) if full else (300, 30, 2)
    crawls = [_crawl(pages, sites, kills, seed) for seed in ((1, 2) if full else (1,))]
    lost, known = sum(len(one.lost) for one in crawls), sum(one.pages for one in crawls)
    times = f"{sum(one.kills for one in crawls)} kills in {len(crawls)} crawls of {known:,} pages in all"
    yield Finding(
        "A Scrapy crawl that is killed at random moments loses no page: each is requested, and its callback ends.",
        f"{times}: {lost} lost",
        lost == 0,
    )
    repeated = [count for one in crawls for count in one.repeated]
    done_s = [seconds for one in crawls for seconds in one.done_s]
    latest = (
        f"; of these, {len(done_s)} had ended their callback, at most {max(done_s, default=0.0):.2f} s before the kill"
    )
    yield Finding(
        "Only pages in flight, or whose callback had ended a moment before the kill, are requested twice.",
        f"{sum(repeated)} requests repeated, at most {max(repeated)} after a kill{latest}",
        max(repeated) <= 3 * CONCURRENT
        and max(done_s, default=0.0) < _PATIENCE_S
        and not any(one.twice_in_a_run for one in crawls),
    )


def _crawl(pages: int, sites: int, kills: int, seed: int) -> KilledCrawl:
    with tempfile.TemporaryDirectory(prefix="trapline-scrapy-") as place:
        crawl = killed_crawl(Path(place), pages, sites, kills, seed)
    say(
        f"web {seed}: {crawl.kills} kills, {len(crawl.lost)} of {crawl.pages:,} pages lost, {sum(crawl.repeated)} repeated"
    )
    return crawl


SECTION = Section("Scrapy", _METHOD, run)
