"""Inputs of page ranks from URLs: features of a URL as numbers, and the pages that keep the state of sites and directories.

A rank is compiled and sees no text. It declares what it needs of a URL as inputs (docs/how-to/add-a-strategy.md). A live crawl computes
them when it discovers a page, a simulated crawl beforehand for all pages.

The state of a site or of a directory is a column of one of its pages: the first page of it that the crawl knows. The inputs `site_page`
and `directory_page` have the number of that page.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

MOST_EXTENSION = 6  # characters; as a number, an extension is then below 2^48, which a column holds exactly


def path_of(url: str) -> str:
    """Return the path of an absolute URL, without its first slash.

    >>> path_of("http://example.org/a/b.html?c=1#d"), path_of("http://example.org")
    ('a/b.html', '')
    """
    place = url.partition("#")[0].partition("?")[0]
    return place[place.find("://") + 3 :].partition("/")[2]


def segments(url: str) -> int:
    """Return the number of segments of the path that are not empty.

    >>> segments("http://example.org/"), segments("http://example.org/a/b/"), segments("http://example.org/a//b.html?c/d")
    (0, 2, 2)
    """
    return sum(map(bool, path_of(url).split("/")))


def parameters(url: str) -> int:
    """Return the number of parameters of the query.

    >>> parameters("http://example.org/a?b=1&c"), parameters("http://example.org/a?")
    (2, 0)
    """
    return sum(map(bool, url.partition("#")[0].partition("?")[2].split("&")))


def extension_number(extension: str) -> int:
    """Return the number by which ranks see this extension of a file name. 0: it is none, or longer than six characters.

    >>> extension_number("pdf") == extension_number(".PDF"), extension_number("a"), extension_number("")
    (True, 97, 0)
    """
    text = extension.removeprefix(".").lower()
    is_one = 0 < len(text) <= MOST_EXTENSION and text.isascii() and text.isalnum()
    return int.from_bytes(text.encode(), "big") if is_one else 0


def extension(url: str) -> int:
    """Return the number of the extension in the last segment of the path.

    >>> extension("http://example.org/a.b/c.PDF?d.e") == extension_number("pdf"), extension("http://example.org/a.b/")
    (True, 0)
    """
    _, dot, end = path_of(url).rpartition("/")[2].rpartition(".")
    return extension_number(end) if dot else 0


def directory(url: str) -> str:
    """Return the URL up to the last slash of its path.

    >>> directory("http://example.org/a/b?c/d"), directory("http://example.org")
    ('http://example.org/a/', 'http://example.org/')
    """
    place = url.partition("#")[0].partition("?")[0]
    host = place.find("://") + 3
    at = place.rfind("/", host)
    return f"{place}/" if at < 0 else place[: at + 1]


def site(url: str) -> str:
    """Return scheme, host and port.

    >>> site("http://example.org:8080/a?b"), site("http://example.org?b")
    ('http://example.org:8080', 'http://example.org')
    """
    place = url.partition("#")[0].partition("?")[0]
    host = place.find("://") + 3
    return place[: at if (at := place.find("/", host)) >= 0 else len(place)]


FEATURES: dict[str, Callable[[str], int]] = {
    "url_length": len,
    "url_segments": segments,
    "url_parameters": parameters,
    "url_extension": extension,
}
"""Features of one URL, by the name of the input."""
STATE_PAGES: dict[str, Callable[[str], str]] = {"site_page": site, "directory_page": directory}
"""Which part of its URL says with which pages a page shares a state, by the name of the input."""


def feature_values(name: str, urls: Iterable[str]) -> NDArray[np.float64]:
    """Return this feature of each URL."""
    return np.fromiter(map(FEATURES[name], urls), np.float64)


class StatePages:
    """The first page of each site, or of each directory: it keeps the state. Takes about 150 bytes for each of them."""

    def __init__(self, name: str) -> None:
        self._common, self._page_of = STATE_PAGES[name], dict[str, int]()

    def of(self, urls: Sequence[str], first: int) -> list[float]:
        """Return the page that keeps the state of each of these URLs, which are pages first, first + 1, ..."""
        known, common = self._page_of, self._common
        return [float(known.setdefault(common(url), page)) for page, url in enumerate(urls, first)]

    def restore(self, pages: Sequence[int], urls: Sequence[str]) -> None:
        """Note pages of an earlier run that keep states."""
        self._page_of.update(zip(map(self._common, urls), pages, strict=True))


def first_pages(values: NDArray[np.generic]) -> NDArray[np.float64]:
    """Return for each page the first page that has the same value.

    >>> first_pages(np.array([7, 3, 7, 3, 9])).tolist()
    [0.0, 1.0, 0.0, 1.0, 4.0]
    """
    _, first, value = np.unique(values, return_index=True, return_inverse=True)
    return first[value].astype(np.float64)
