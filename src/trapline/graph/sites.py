"""Sites of a graph: from recorded URLs (scheme + host + port), or from page numbers where there are no URLs.

URLs are taken as recorded. This module resolves nothing, and canonicalises only the case of scheme and host and the
default port; a live crawl canonicalises its URLs in `trapline.urls`.

No page is lost. Recorded URLs can be malformed: real graphs have blanks and mail addresses in place of the host, and
relative links written as `http:faq.html`. Any text in place of the host makes a site, because guessing which server the
recording crawler contacted would merge sites that it kept apart. Pages whose URL has nothing in that place share the site
`(no host)`.
"""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.graph.formats import urls as bulk
from trapline.graph.formats.textfile import LoadOptions
from trapline.graph.graph import Graph
from trapline.graph.strings import StoredStrings

_ABSOLUTE = re.compile(r"([a-z][a-z0-9+.-]*)://([^/?#]+)", re.IGNORECASE)
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}

NO_HOST = "(no host)"


class GraphSites(NamedTuple):
    """Sites of a list of URLs: the site of each page, and name and home page of each site."""

    site: NDArray[np.int32]
    names: list[str]
    home: NDArray[np.int32]
    dynamic: NDArray[np.uint8]


def site_of(url: str) -> str | None:
    """Return `scheme://host[:port]` of the URL; None if it is not absolute.

    >>> site_of("HTTP://Www.Example.org:80/a?b"), site_of("https://example.org:8443"), site_of("/a")
    ('http://www.example.org', 'https://example.org:8443', None)
    """
    match = _ABSOLUTE.match(url)
    if match is None:
        return None
    scheme, host = match[1].lower(), match[2].lower()
    return f"{scheme}://{host.removesuffix(_DEFAULT_PORTS.get(scheme, ':'))}"


def sites_of(urls: StoredStrings) -> GraphSites:
    """Return the sites of the URLs, in order of first appearance.

    The home page is the one with the shortest URL in bytes; among equally short URLs the alphabetically first, among
    equal URLs the first. Pages whose URL has no host are on the site `(no host)`.
    """
    lengths, begins, dynamic = bulk.split(urls)
    # Neighbours mostly share a site, so the dictionary is looked up once a run, not once a page.
    runs = np.flatnonzero(begins)
    ids: dict[str, int] = {}
    of_run = np.array([ids.setdefault(_name(urls[page]), len(ids)) for page in runs.tolist()], dtype=np.int32)
    site = np.repeat(of_run, np.diff(runs, append=len(lengths)))
    return GraphSites(site, list(ids), bulk.homes(urls, site, len(ids)), dynamic)


def _name(url: str) -> str:
    return site_of(url) or NO_HOST


def recorded_graph(
    urls: StoredStrings,
    urls_file: Path,
    offsets: NDArray[np.int64],
    targets: NDArray[np.int32],
    format_name: str,
    sizes: NDArray[np.int64] | None = None,
) -> Graph:
    """Build a graph from recorded URLs and their links. Every site has its own address."""
    sites = sites_of(urls)
    if sites.names == [NO_HOST]:
        raise ConfigError(f"{urls_file}: no URL is absolute (scheme://host/...); the first is {urls[0][:60]!r}")
    return Graph(
        offsets=offsets,
        targets=targets,
        site=sites.site,
        home=sites.home,
        dynamic=sites.dynamic,
        ips=np.arange(len(sites.names), dtype=np.int32),
        urls=urls,
        site_names=StoredStrings.of(sites.names),
        sizes=sizes,
        origin={"format": format_name, **_oddities(sites)},
    )


def _oddities(sites: GraphSites) -> dict[str, object]:
    if NO_HOST not in sites.names:
        return {}
    return {"urls_without_host": int(np.count_nonzero(sites.site == sites.names.index(NO_HOST)))}


def numbered_graph(
    offsets: NDArray[np.int64], targets: NDArray[np.int32], format_name: str, options: LoadOptions
) -> Graph:
    """Build a graph without URLs. Every site has its own address.

    Each `ids_per_site` consecutive pages are a site, and the first of them is its home page; without the option all
    pages are one site. The home page is the first because published graphs without URLs are numbered in the order of
    their URLs: neighbours are on one host, and the shortest URL comes first.
    """
    pages = len(offsets) - 1
    per_site = min(options.ids_per_site or pages, pages)
    home = np.arange(0, pages, per_site, dtype=np.int32)
    return Graph(
        offsets=offsets,
        targets=targets,
        site=(np.arange(pages, dtype=np.int32) // np.int32(per_site)).astype(np.int32),
        home=home,
        dynamic=np.zeros(pages, dtype=np.uint8),
        ips=np.arange(len(home), dtype=np.int32),
        origin={"format": format_name, "ids_per_site": per_site},
    )
