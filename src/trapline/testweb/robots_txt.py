"""The robots.txt of each site: what it forbids, what it says, and behind which redirects it is.

What it forbids are beginnings of paths: up to the character behind the second slash (`/p/1`) or the first `=` (`/d?id=1`), or
a whole path that has neither. Each is forbidden by a draw of its own; never one by which the home page would be.
`allowed` is the law that a checker asks; it knows no crawler and reads no robots.txt.
"""

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from xxhash import xxh3_64_intdigest

from trapline.testweb.draws import draw
from trapline.testweb.paths import EXTRA, ROBOTS_TXT
from trapline.testweb.published import robots_lines

if TYPE_CHECKING:
    from trapline.testweb.web import Web

WITH_RULES = ("rules", "redirect", "away", "huge")
NOTHING_ALLOWED = ("error", "reset")
HUGE_BYTES = 1_000_000  # twice what RFC 9309 (2.5) wants parsed; the rules come first

_BEGINNING = re.compile(r"/[^/?=]*(?:/[^?]?|(?:\?[^=]*)?=.?)?")


def allowed(web: "Web", site: int, path: str) -> bool:
    """Whether the site's robots.txt allows this path to everybody. RFC 9309: a file that cannot be had for a reason of the
    server's forbids all, one that is not there (or behind redirects without end, 2.3.1.2) nothing."""
    if path == ROBOTS_TXT or path.startswith(f"{EXTRA}robots/"):
        return True
    if web.behaviours[site].robots in NOTHING_ALLOWED:
        return False
    return not (_has_rules(web, site) and path.startswith(rules(web, site)))


def crawl_delay_s(web: "Web", site: int) -> float:
    return web.behaviours[site].crawl_delay_s if _has_rules(web, site) else 0.0


def _has_rules(web: "Web", site: int) -> bool:
    return web.behaviours[site].robots in WITH_RULES


@lru_cache(maxsize=100_000)
def rules(web: "Web", site: int) -> tuple[str, ...]:
    """The beginnings that are forbidden, in alphabetical order."""
    share, home = web.behaviours[site].disallowed, web.paths[web.home[site]]
    if share == 0:
        return ()
    pages = np.flatnonzero(np.frombuffer(web.site, np.int32) == site).tolist()
    beginnings = {beginning(web.paths[page]) for page in pages}
    return tuple(sorted(one for one in beginnings if _forbidden(web, site, one, share) and not home.startswith(one)))


def _forbidden(web: "Web", site: int, start: str, share: float) -> bool:
    # In robots.txt * and $ are more than characters; and the URLs that testweb adds are for everybody.
    if "*" in start or "$" in start or start.startswith(EXTRA):
        return False
    return draw(web.seed, f"disallow {site}", xxh3_64_intdigest(start.encode())) < share


def beginning(path: str) -> str:
    """
    >>> [beginning(path) for path in ("/p/17", "/d?id=17", "/a/b/c.html", "/index.html", "/dir/", "/x?y")]
    ['/p/1', '/d?id=1', '/a/b', '/index.html', '/dir/', '/x']
    """
    match = _BEGINNING.match(path)
    return match[0] if match else path


def location(web: "Web", site: int) -> str | None:
    """Where the site's robots.txt redirects to; None: nowhere."""
    match web.behaviours[site].robots:
        case "redirect":
            return f"{EXTRA}robots/{site}"
        case "away":
            return f"{web.origins[int(draw(web.seed, 'robots away', site) * web.sites)]}{EXTRA}robots/{site}"
        case "loop":
            return ROBOTS_TXT
        case _:
            return None


def text(web: "Web", site: int) -> bytes:
    """What the file says, wherever it is."""
    delay_s, forbidden = crawl_delay_s(web, site), rules(web, site) if _has_rules(web, site) else ()
    lines = [
        "# Another robot's, stricter than ours.",
        "User-agent: nobody-in-particular",
        "Disallow: /",
        "",
        "User-agent: *",
        *([f"Crawl-delay: {delay_s:g}"] if delay_s else []),
        *(f"Disallow: {rule}".rstrip() for rule in forbidden or ("",)),
        *robots_lines(web, site),
    ]
    data = "\n".join([*lines, ""]).encode()
    if web.behaviours[site].robots == "huge":
        data += b"# and so on\n" * ((HUGE_BYTES - len(data)) // 12)
    return data
