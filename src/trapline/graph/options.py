"""What a user may ask of a loader beyond the path, and how a loader says how far it is.

It knows no format: each names the options that it can fulfil, and `load` refuses the others.
"""

from collections.abc import Callable
from dataclasses import dataclass

Tell = Callable[[int, int, str], None]
"""Told how many of how many bytes of a file were read, and its name."""


def silent(done: int, total: int, what: str) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True)
class LoadOptions:
    dangling: bool = False
    """also the pages that a crawl saw links to and did not fetch, as pages without links"""
    pages_per_site: int | None = None
    """where pages have no URLs: so many numbers in a row are a site (--ids-per-site); None: all pages are one"""
    tell: Tell = silent
