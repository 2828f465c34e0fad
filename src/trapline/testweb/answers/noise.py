"""Noise: meaningless bytes that differ from answer to answer, such as a token, the time, or the place of an advertisement.

None of it is text that a browser would show. Its length is always the same, so that the rest of a page stays the same. It is
a hash of the time, not the output of a generator, so a page fetched at a given time is the same for every client.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from xxhash import xxh3_128_hexdigest

if TYPE_CHECKING:
    from trapline.testweb.web.served_web import ServedWeb


def token(web: "ServedWeb", page: int, now: float) -> str:
    """Return a token of 32 characters."""
    return xxh3_128_hexdigest(f"{web.seed} noise {page} {now!r}".encode())


def stamp(at: float) -> str:
    """Format a time as in RFC 3339 and the W3C's date format, to the millisecond.

    >>> stamp(1.5)
    '1970-01-01T00:00:01.500Z'
    """
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"


def above(web: "ServedWeb", page: int, now: float) -> str:
    """Return the noise for the head of a page."""
    return f'<meta name="csrf-token" content="{token(web, page, now)}">\n'


def below(web: "ServedWeb", page: int, now: float) -> str:
    """Return the noise for the end of a page."""
    own = token(web, page, now)
    script = f'<script>var served = "{stamp(now)}", session = "{own}";</script>'
    return f'\n<ins class="ad" data-slot="{own[:8]}"></ins>\n{script}\n<!-- made for {own[8:]} -->\n'
