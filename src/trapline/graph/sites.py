"""Sites from the URLs of a recorded graph: scheme + host + port, the home page of each, and which pages are dynamic.

It takes URLs as recorded. It resolves and canonicalises nothing beyond the case of scheme and host and the default
port; that is the business of `urls`, where a live crawl begins.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.graph.graph import Graph
from trapline.graph.strings import StoredStrings
from trapline.graph.textfile import at_row

# Recorded URLs can be odd: one real graph has a blank and mail addresses where the host belongs. Whatever stands
# there is one site; to guess whom the recording crawler asked would merge sites that it kept apart.
_ABSOLUTE = re.compile(r"([a-z][a-z0-9+.-]*)://([^/?#]+)", re.IGNORECASE)
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


class Sites(NamedTuple):
    site: NDArray[np.int32]
    names: list[str]
    home: NDArray[np.int32]


def site_of(url: str) -> str | None:
    """`scheme://host[:port]`, None if the URL is not absolute.

    >>> site_of("HTTP://Www.Example.org:80/a?b"), site_of("https://example.org:8443"), site_of("/a")
    ('http://www.example.org', 'https://example.org:8443', None)
    """
    match = _ABSOLUTE.match(url)
    if match is None:
        return None
    scheme, host = match[1].lower(), match[2].lower()
    return f"{scheme}://{host.removesuffix(_DEFAULT_PORTS.get(scheme, ':'))}"


def sites_of(urls: Sequence[str], file: Path) -> Sites:
    """Sites in order of first appearance. `file` is named if a URL (row i + 1) is not absolute."""
    ids: dict[str, int] = {}
    site = np.empty(len(urls), dtype=np.int32)
    home: list[int] = []
    for page, url in enumerate(urls):
        name = site_of(url)
        if name is None:
            raise at_row(file, page + 1, f"{url[:60]!r} is not an absolute URL")
        number = site[page] = ids.setdefault(name, len(ids))
        if number == len(home):
            home.append(page)
        elif _before(url, urls[home[number]]):
            home[number] = page
    return Sites(site, list(ids), np.array(home, dtype=np.int32))


def _before(url: str, other: str) -> bool:
    """Whether it is the better home page: shorter, or as long and earlier in the alphabet."""
    return (len(url), url) < (len(other), other)


def recorded_graph(
    urls: Sequence[str], urls_file: Path, offsets: NDArray[np.int64], targets: NDArray[np.int32], format_name: str
) -> Graph:
    """A graph from recorded URLs (page i = row i + 1 of `urls_file`) and their links. Every site has its own
    address."""
    sites = sites_of(urls, urls_file)
    return Graph(
        offsets=offsets,
        targets=targets,
        site=sites.site,
        home=sites.home,
        dynamic=np.array(["?" in url.partition("#")[0] for url in urls], dtype=np.uint8),
        ips=np.arange(len(sites.names), dtype=np.int32),
        urls=StoredStrings.of(urls),
        site_names=StoredStrings.of(sites.names),
        origin={"format": format_name},
    )
