"""Bytes that differ from answer to answer and mean nothing: a token, the time of the answer, the place of an advertisement.

None of it is visible text, as a browser shows it; all of it is as long as it was, so that the rest of a page stays as it is.
It is a hash of the moment, and no generator: a page asked for at a moment is the same whoever asks.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from xxhash import xxh3_128_hexdigest

if TYPE_CHECKING:
    from trapline.testweb.web import Web


def token(web: "Web", page: int, now: float) -> str:
    """32 characters."""
    return xxh3_128_hexdigest(f"{web.seed} noise {page} {now!r}".encode())


def stamp(at: float) -> str:
    """As W3C and RFC 3339 write a moment, to the millisecond.

    >>> stamp(1.5)
    '1970-01-01T00:00:01.500Z'
    """
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"


def above(web: "Web", page: int, now: float) -> str:
    """What goes into the head of a page."""
    return f'<meta name="csrf-token" content="{token(web, page, now)}">\n'


def below(web: "Web", page: int, now: float) -> str:
    """What goes to its end."""
    own = token(web, page, now)
    script = f'<script>var served = "{stamp(now)}", session = "{own}";</script>'
    return f'\n<ins class="ad" data-slot="{own[:8]}"></ins>\n{script}\n<!-- made for {own[8:]} -->\n'
