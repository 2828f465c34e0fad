"""Redirects: the URLs that a web has besides its pages, how links to them are written, and where they lead.

    /-/to/PAGE              redirects to the page, which may be on another site
    /-/chain/N/PAGE         redirects to chain N - 1, in the end to the page
    /-/loop/0/PAGE          redirects to /-/loop/1/PAGE, and that one back

This module writes and reads these paths and decides nothing: the web decides which pages are linked through redirects
(`ServedWeb.redirect`).
"""

import re
from typing import TYPE_CHECKING

from trapline.testweb.web.behaviour import draw
from trapline.testweb.web.paths import EXTRA

if TYPE_CHECKING:
    from trapline.testweb.web.served_web import ServedWeb

STATUSES = (301, 302, 303, 307, 308)
CHAIN = 3

_EXTRA = re.compile(rf"{EXTRA}(?:to|(chain|loop)/(\d{{1,2}}))/(\d{{1,10}})")


def hrefs(web: "ServedWeb", page: int, site: int) -> list[str]:
    """Return the links by which a page of `site` links to `page`: one, or two."""
    direct = href(web, page, site)
    own = web.site[page]
    match web.redirect(page):
        case "plain":
            return [_there(web, own, f"{EXTRA}to/{page}", site)]
        case "chain":
            return [_there(web, own, f"{EXTRA}chain/{CHAIN}/{page}", site)]
        case "away":
            other = int(draw(web.seed, "away", page) * web.sites)
            return [_there(web, other, f"{EXTRA}to/{page}", site)]
        case "loop":
            return [direct, _there(web, own, f"{EXTRA}loop/0/{page}", site)]
        case _:
            return [direct]


def href(web: "ServedWeb", page: int, site: int) -> str:
    """Return a direct link: relative within the site, absolute to other sites."""
    return _there(web, web.site[page], web.paths[page], site)


def _there(web: "ServedWeb", site: int, path: str, asking: int) -> str:
    # A relative link that begins with two slashes would name a host.
    return path if site == asking and not path.startswith("//") else web.origins[site] + path


def location(web: "ServedWeb", site: int, path: str) -> tuple[int, str] | None:
    """Return status and Location for a redirecting URL; None if the path is not one."""
    match = _EXTRA.fullmatch(path)
    if match is None or int(match[3]) >= web.pages:
        return None
    kind, step, page = match[1], int(match[2] or 0), int(match[3])
    status = STATUSES[int(draw(web.seed, "status", page) * len(STATUSES))]
    if kind == "loop":
        return status, f"{EXTRA}loop/{1 - min(step, 1)}/{page}"
    if kind == "chain" and step > 0:
        return status, f"{EXTRA}chain/{step - 1}/{page}"
    return status, href(web, page, site)
