"""A requisite: a file that a browser loads to show a page, as a page or a stylesheet names it. The readers are html/requisites.py
and css.py; which requisites are fetched is decided in crawler/requisites/."""

from typing import NamedTuple

from trapline.fetch.urls import MOST_TEXT

STYLESHEET, IMAGE, SCRIPT, ICON, MEDIA, FILE = "stylesheet", "image", "script", "icon", "media", "file"
"""Roles of a requisite. FILE: any other, such as a font, a manifest, or an image that a style names."""
MOST_OF_A_PAGE = 5_000  # requisites of a page or of a stylesheet; the others are ignored

_NOT_REQUESTED = ("data:", "about", "blob:")  # a data URL holds the file itself


class Requisite(NamedTuple):
    role: str
    href: str  # as written, without character references or escapes


def is_usable(href: str) -> bool:
    """Return whether a reference may be a URL to request.

    >>> is_usable("a.png"), is_usable("data:image/png;base64,AAAA"), is_usable("#shape")
    (True, False, False)
    """
    return 0 < len(href) <= MOST_TEXT and href[0] != "#" and href[:5].lower() not in _NOT_REQUESTED
