"""The robots.txt of each site: its rules, its text, and the redirects that lead to it.

The rules forbid prefixes of paths. A prefix reaches to the character after the second slash (`/p/1`) or after the first `=`
(`/d?id=1`); a path that has neither is its own prefix. Each prefix is forbidden by its own draw, except those that would
forbid the home page. `allowed` is the reference for the politeness checker; it knows no crawler and parses no robots.txt.
"""

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from xxhash import xxh3_64_intdigest

from trapline.testweb.answers.published import robots_lines
from trapline.testweb.web.behaviour import draw
from trapline.testweb.web.paths import EXTRA, ROBOTS_TXT

if TYPE_CHECKING:
    from trapline.testweb.web.served_web import ServedWeb

WITH_RULES = ("rules", "redirect", "away", "huge")
NOTHING_ALLOWED = ("error", "reset")
HUGE_BYTES = 1_000_000  # twice the 500 KiB that RFC 9309 (2.5) requires crawlers to parse; the rules come first

_BEGINNING = re.compile(r"/[^/?=]*(?:/[^?]?|(?:\?[^=]*)?=.?)?")


def allowed(web: "ServedWeb", site: int, path: str) -> bool:
    """Return whether the site's robots.txt allows this path to every crawler.

    RFC 9309: a file that cannot be fetched because of a server error forbids everything; a file that does not exist (or is
    behind endless redirects, 2.3.1.2) forbids nothing.
    """
    if path == ROBOTS_TXT or path.startswith(f"{EXTRA}robots/"):
        return True
    if web.behaviours[site].robots in NOTHING_ALLOWED:
        return False
    return not (_has_rules(web, site) and path.startswith(rules(web, site)))


def crawl_delay_s(web: "ServedWeb", site: int) -> float:
    return web.behaviours[site].crawl_delay_s if _has_rules(web, site) else 0.0


def _has_rules(web: "ServedWeb", site: int) -> bool:
    return web.behaviours[site].robots in WITH_RULES


@lru_cache(maxsize=100_000)
def rules(web: "ServedWeb", site: int) -> tuple[str, ...]:
    """Return the forbidden prefixes, in alphabetical order."""
    share, home = web.behaviours[site].disallowed, web.paths[web.home[site]]
    if share == 0:
        return ()
    pages = np.flatnonzero(np.frombuffer(web.site, np.int32) == site).tolist()
    beginnings = {beginning(web.paths[page]) for page in pages}
    return tuple(
        sorted(start for start in beginnings if _forbidden(web, site, start, share) and not home.startswith(start))
    )


def _forbidden(web: "ServedWeb", site: int, start: str, share: float) -> bool:
    # In robots.txt * and $ have a special meaning. The URLs that testweb adds are allowed to every crawler.
    if "*" in start or "$" in start or start.startswith(EXTRA):
        return False
    return draw(web.seed, f"disallow {site}", xxh3_64_intdigest(start.encode())) < share


def beginning(path: str) -> str:
    """Return the prefix by which rules forbid this path.

    >>> [beginning(path) for path in ("/p/17", "/d?id=17", "/a/b/c.html", "/index.html", "/dir/", "/x?y")]
    ['/p/1', '/d?id=1', '/a/b', '/index.html', '/dir/', '/x']
    """
    match = _BEGINNING.match(path)
    return match[0] if match else path


def location(web: "ServedWeb", site: int) -> str | None:
    """Return where the site's robots.txt redirects to; None if it does not redirect."""
    match web.behaviours[site].robots:
        case "redirect":
            return f"{EXTRA}robots/{site}"
        case "away":
            return f"{web.origins[int(draw(web.seed, 'robots away', site) * web.sites)]}{EXTRA}robots/{site}"
        case "loop":
            return ROBOTS_TXT
        case _:
            return None


def text(web: "ServedWeb", site: int) -> bytes:
    """Return the content of the file, independent of the URL at which it is served."""
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
