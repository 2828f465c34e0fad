"""Makes canonical URLs of links as written on a page, of a bounded number for each page. Step 1 in docs/architecture.md.

Most links need no URL, because seen/table.py knows them. This module knows neither the scope nor the pages, and of sites only their names.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from trapline.crawler.discovery.sites import Sites
from trapline.fetch.html.page import Links
from trapline.fetch.urls import canonical, origin, plain

# Most targets of unknown links of one page that are resolved, and most targets of one page that are sent to other partitions. The links
# beyond count when a page links there again.
MOST_NEW = 8_192
MOST_NEW_BYTES = 1 << 20  # the most bytes of the URLs of these links
_MOST_FOREIGN_SITES = 1 << 16  # to remember: they only save time


class LinkUrls:
    def __init__(self, sites: Sites) -> None:
        self._sites = sites
        self._foreign_sites: set[str] = set()  # sites of URLs that other partitions own

    def made(self, links: Links, places: Sequence[int], base: str) -> Iterator[tuple[str | None, list[int]]]:
        """Yield the URL of each target of the links at these places, None if it is not a page, and the places of its links. These are
        the first MOST_NEW targets, up to MOST_NEW_BYTES."""
        name, folder = _split(base)
        room = MOST_NEW_BYTES
        for href, same in islice(_by_target(links, places).items(), MOST_NEW):
            url = self._simple(href, name, folder) or canonical(href, base)
            if url is not None:
                room -= len(url)
                if room < 0:
                    break
            yield url, same

    def _simple(self, href: str, name: str, folder: str) -> str | None:
        """Return the URL of a simple href: a relative one, or an absolute one on a site that is known, also to be of another partition.
        None: it is not simple."""
        if href[:4] != "http":
            return plain(href, name, folder)
        end = href.find("/", 8)
        site = href[:end]
        is_known = end > 0 and (self._sites.named(site) is not None or site in self._foreign_sites)
        return plain(href[end:], site, "/") if is_known else None

    def note_foreign_site(self, site: str) -> None:
        if len(self._foreign_sites) >= _MOST_FOREIGN_SITES:
            self._foreign_sites.clear()
        self._foreign_sites.add(site)


def _by_target(links: Links, places: Sequence[int]) -> dict[str, list[int]]:
    """Return the links at these places without their fragments, with the places of each. An index of an API links to each page many times.

    >>> _by_target(Links.of(["a#1", "b", "a#2"]), [0, 1, 2])
    {'a': [0, 2], 'b': [1]}
    """
    found: dict[str, list[int]] = {}
    for at, href in zip(places, links.some(places), strict=True):
        found.setdefault(_target(href), []).append(at)
    return found


def _target(href: str) -> str:
    """Return a link without its fragment. A space in front of the fragment belongs to the path, and must not become the end of the link,
    where a parser drops it.

    >>> _target("a#b"), _target("a #b")
    ('a', 'a #')
    """
    target = href.partition("#")[0]
    return target if target == href or not target or target[-1] > " " else f"{target}#"


def _split(url: str) -> tuple[str, str]:
    """Split a canonical URL into its origin and its folder.

    >>> _split("http://a.org/b/c?d/e")
    ('http://a.org', '/b/')
    """
    name = origin(url)
    path = url[len(name) :].partition("?")[0]
    return name, path[: path.rfind("/") + 1]
