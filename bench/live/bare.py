"""Bare loop that only fetches pages and finds links: the upper limit of speed for a live crawl.

It has no politeness, no robots.txt, no store and no frontier. It uses nothing of Trapline, so that both can be compared in one
run. It uses uvloop, Node's HTTP parser (httptools) and the lexbor HTML parser (selectolax), with one persistent connection to
each site and the next request as soon as an answer is complete. It has two ways to recognise known links:

hrefs   each site has a set of links as they are written; only a link not seen in that form is resolved
urls    every link is resolved by WHATWG rules (ada) and looked up by its hash (xxh3)
"""

import argparse
import asyncio
import json
import posixpath
import time
from collections.abc import Callable
from pathlib import Path

import httptools
import uvloop
from ada_url import join_url
from selectolax.lexbor import LexborHTMLParser
from xxhash import xxh3_64_intdigest


class Site:
    """A site: its waiting paths, newest last, and its known paths and links."""

    def __init__(self, origin: str) -> None:
        self.origin, self.host = origin, origin.removeprefix("http://")
        self.waiting: list[str] = []
        self.paths: set[str] = set()
        self.hrefs: set[str] = set()
        self.connection: Connection | None = None

    def discover(self, path: str) -> None:
        if path not in self.paths:
            self.paths.add(path)
            self.push(path)

    def push(self, path: str) -> None:
        self.waiting.append(path)
        if self.connection is not None and self.connection.idle:
            self.connection.ask()


class Crawl:
    """All sites, and the progress of the crawl. `take` is called for every page with its links."""

    def __init__(self, seeds: list[str], take: "Callable[[Crawl, Site, str, list[str]], None]") -> None:
        self.sites = {seed.rstrip("/"): Site(seed.rstrip("/")) for seed in seeds}
        self.take = take
        self.fingerprints: set[int] = set()
        self.pages = self.bytes = self.busy = 0
        self.done = asyncio.get_running_loop().create_future()


def by_href(crawl: Crawl, site: Site, path: str, links: list[str]) -> None:
    """Discover new links by the form in which they are written. A relative link is known by the page's folder and itself."""
    folder = path[: path.rindex("/") + 1]
    for href in links:
        key = href if href[0] == "/" or href[:7] == "http://" else folder + href
        if key not in site.hrefs:
            site.hrefs.add(key)
            if key[0] == "/":
                site.discover(posixpath.normpath(key))
            else:
                cut = key.index("/", 7)
                crawl.sites[key[:cut]].discover(key[cut:])


def by_url(crawl: Crawl, site: Site, path: str, links: list[str]) -> None:
    base = site.origin + path
    for href in links:
        url = join_url(base, href)
        fingerprint = xxh3_64_intdigest(url.encode())
        if fingerprint not in crawl.fingerprints:
            crawl.fingerprints.add(fingerprint)
            cut = url.index("/", 7)
            crawl.sites[url[:cut]].push(url[cut:])


class Connection(asyncio.Protocol):
    """The connection of one site: sends a request, collects the body, sends the next request."""

    def __init__(self, crawl: Crawl, site: Site) -> None:
        self._crawl, self._site = crawl, site
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []
        self._path = ""
        self.idle = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._site.connection = self

    def ask(self) -> None:
        if not self._site.waiting:
            return
        self._path = self._site.waiting.pop()
        self._crawl.busy += self.idle
        self.idle = False
        self._transport.write(f"GET {self._path} HTTP/1.1\r\nHost: {self._site.host}\r\n\r\n".encode())

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, part: bytes) -> None:
        self._body.append(part)

    def on_message_complete(self) -> None:
        crawl, body = self._crawl, b"".join(self._body)
        self._body.clear()
        links = [link for node in LexborHTMLParser(body).tags("a") if (link := node.attributes.get("href"))]
        crawl.take(crawl, self._site, self._path, links)
        crawl.pages += 1
        crawl.bytes += len(body)
        self.idle = True
        crawl.busy -= 1
        self.ask()
        if crawl.busy == 0:
            crawl.done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._crawl.done.done():
            self._crawl.done.set_exception(exc or ConnectionError(f"{self._site.host} closed"))


async def crawl(seeds: list[str], known_by: str) -> dict[str, float]:
    state = Crawl(seeds, {"hrefs": by_href, "urls": by_url}[known_by])
    for seed in seeds:
        state.take(state, state.sites[seed.rstrip("/")], "/", [seed])
    loop, started, clock = asyncio.get_running_loop(), time.time(), time.perf_counter()
    for site in state.sites.values():
        name, port = site.host.split(":")
        await loop.create_connection(lambda site=site: Connection(state, site), name, int(port))  # type: ignore[misc]
    for site in state.sites.values():
        site.connection.ask()  # type: ignore[union-attr]
    await state.done
    seconds = time.perf_counter() - clock
    return {"pages": state.pages, "bytes": state.bytes, "started": started, "seconds": seconds}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=Path, required=True, help="file of home pages, one per line")
    options.add_argument("--known-by", choices=["hrefs", "urls"], default="hrefs")
    chosen = options.parse_args()
    print(json.dumps(uvloop.run(crawl(chosen.seeds.read_text().split(), chosen.known_by))))


if __name__ == "__main__":
    main()
