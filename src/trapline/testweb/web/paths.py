"""Paths of pages: the part of each page's URL after the site's name, and the lookup of a page by path.

A path is canonical by the WHATWG's rules: a client that follows a link to it requests exactly these bytes. No two pages of
a site have the same path; a page whose recorded URL has the same canonical path as another's gets its number as a query.
Pages are found by the hash of their path, which takes 12 bytes a page; a table of strings would take a hundred.
"""

import re
from array import array
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Sequence

import numpy as np
from ada_url import URL
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

ROBOTS_TXT = "/robots.txt"
SITEMAP, FEED, SCHEDULE = "/sitemap.xml", "/feed.xml", "/crawl-schedule.json"
RESERVED = (SITEMAP, FEED, SCHEDULE)
"""Files that providers publish (testweb/answers/published.py)."""
EXTRA = "/-/"
"""Prefix of the URLs that testweb itself adds (redirects.py and robots_txt.py in testweb/answers). A page below it gets a query."""

# Characters that are canonical in path and query as they are. Segments of dots alone (_DOTTED) are not.
_USUAL = re.compile(r"[a-z]+://[^/?#]+(/[A-Za-z0-9_~!$*+,;:@=()?&/.-]*)")
_DOTTED = re.compile(r"/\.\.?(?=[/?]|$)")
_HOST_END = re.compile(r"[/?]")


class Paths:
    """The paths of all pages, and a hash table to find a page by site and path."""

    def __init__(self, paths: Sequence[str], site: NDArray[np.int32]) -> None:
        self.all = list(paths)
        """[pages]"""
        self._site = array("i", site.astype(np.int32).tobytes())
        keys = _keys(paths, site)
        order = np.argsort(keys, kind="stable")
        self._keys = array("Q", keys[order].tobytes())
        self._pages = array("i", order.astype(np.int32).tobytes())

    def __len__(self) -> int:
        return len(self._site)

    def __getitem__(self, page: int) -> str:
        return self.all[page]

    def page(self, site: int, path: str) -> int:
        """Return the page of this site with this path; -1 if there is none."""
        key = _key(site, path)
        at = bisect_left(self._keys, key)
        while at < len(self._keys) and self._keys[at] == key:
            page = self._pages[at]
            if self._site[page] == site and self.all[page] == path:
                return page
            at += 1
        return -1


def recorded_paths(urls: Iterable[str], site: NDArray[np.int32], reserved: Sequence[str] = ()) -> list[str]:
    """Return the paths of recorded URLs, in order of page. A page on a `reserved` path gets a query."""
    return _distinct([_path(url) for url in urls], site, reserved)


def numbered_paths(home: NDArray[np.int32], dynamic: NDArray[np.uint8]) -> list[str]:
    """Return paths for pages without URLs; in ten folders, so that a robots.txt can forbid some."""
    paths = [
        f"/d{page % 10}?id={page}" if flag else f"/p{page % 10}/{page}" for page, flag in enumerate(dynamic.tolist())
    ]
    for page in home.tolist():
        paths[page] = "/"
    return paths


def _path(url: str) -> str:
    usual = _USUAL.fullmatch(url)
    return usual[1] if usual and not _DOTTED.search(usual[1]) else canonical(_behind_host(url))


def canonical(path: str) -> str:
    """Return path and query in the canonical form of the WHATWG's URL parser.

    >>> canonical("/a/../b c?x y#z"), canonical(""), canonical("/a.html?b=1&c")
    ('/b%20c?x%20y', '/', '/a.html?b=1&c')
    """
    try:
        url = URL(f"http://a{path if path[:1] in ('/', '?') else f'/{path}'}")
    except ValueError:
        return "/"
    return url.pathname + url.search


def _behind_host(url: str) -> str:
    """Return path and query of a URL, without the fragment.

    >>> _behind_host("http://a.org/b?c#d"), _behind_host("http://a.org?c"), _behind_host("a/b#c")
    ('/b?c', '?c', 'a/b')
    """
    url = url.partition("#")[0]
    scheme, found, rest = url.partition("://")
    if not found or not scheme.isascii():
        return url
    cut = _HOST_END.search(rest)
    return rest[cut.start() :] if cut else ""


def _distinct(paths: list[str], site: NDArray[np.int32], reserved: Sequence[str]) -> list[str]:
    for page in list(_reserved(paths, {ROBOTS_TXT, *reserved})):
        paths[page] = _with_number(paths[page], page)
    while len(twins := _twins(paths, site)):
        for page in twins:
            paths[page] = _with_number(paths[page], page)
    return paths


def _reserved(paths: Sequence[str], reserved: Container[str]) -> Iterator[int]:
    return (page for page, path in enumerate(paths) if path in reserved or path.startswith(EXTRA))


def _with_number(path: str, page: int) -> str:
    return f"{path}{'&' if '?' in path else '?'}page={page}"


def _twins(paths: Sequence[str], site: NDArray[np.int32]) -> list[int]:
    """Return the pages whose path an earlier page of the site has too."""
    _, first = np.unique(_keys(paths, site), return_index=True)
    return np.setdiff1d(np.arange(len(paths)), first, assume_unique=True).tolist()


def _keys(paths: Sequence[str], site: NDArray[np.int32]) -> NDArray[np.uint64]:
    keys = (_key(own, path) for own, path in zip(site.tolist(), paths, strict=True))
    return np.fromiter(keys, np.uint64, len(paths))


def _key(site: int, path: str) -> int:
    return xxh3_64_intdigest(path.encode(), site)
