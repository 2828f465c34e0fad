"""The URLs that a web has beside its pages, to redirect: how a link is written, and where such a URL leads.

    /-/to/PAGE              to the page, on whatever site it is
    /-/chain/N/PAGE         to chain N - 1, at last to the page
    /-/loop/0/PAGE          to /-/loop/1/PAGE, and back

It writes and reads these paths and decides nothing: which pages are linked so is the web's (`Web.redirect`).
"""

import re
from typing import TYPE_CHECKING

from trapline.testweb.draws import draw
from trapline.testweb.paths import EXTRA

if TYPE_CHECKING:
    from trapline.testweb.web import Web

STATUSES = (301, 302, 303, 307, 308)
CHAIN = 3

_EXTRA = re.compile(rf"{EXTRA}(?:to|(chain|loop)/(\d{{1,2}}))/(\d{{1,10}})")


def hrefs(web: "Web", page: int, site: int) -> list[str]:
    """How a page of `site` links to `page`: by one link, or by two."""
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


def href(web: "Web", page: int, site: int) -> str:
    """A direct link: relative within the site, absolute to others."""
    return _there(web, web.site[page], web.paths[page], site)


def _there(web: "Web", site: int, path: str, asking: int) -> str:
    # A relative link that begins with two slashes would name a host.
    return path if site == asking and not path.startswith("//") else web.origins[site] + path


def location(web: "Web", site: int, path: str) -> tuple[int, str] | None:
    """Status and Location of a URL of this module; None: it is none."""
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
