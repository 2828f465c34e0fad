"""Links in, pages out, for links that were met before: no string is made of them, and no URL.

Most links lead to pages that are known, and most of the others were met before too: what is out of scope, what is no page, a known page
by another spelling. The former are found in the table of URLs seen; of the latter some are remembered, each in the one slot that its
fingerprint may have, so that the memory is bounded and the newest displaces whatever was there.
"""

import numpy as np

from trapline.crawl.seen.hashing import PADDING
from trapline.crawl.seen.joining import LONGEST
from trapline.crawl.seen.kernels import Desk, find_links
from trapline.crawl.seen.table import Seen
from trapline.fetch.links import Links
from trapline.frontier.layout import Array
from trapline.pinned import Pin

UNKNOWN = -1
NO_PAGE = -2  # and less: whoever remembers a link may say why
SLOTS = 1 << 15
_USUAL, _MOST = 1024, 4096  # links that room is made for, and the most that it is kept for


class Lookup:
    """Pages of links, as far as they are known."""

    def __init__(self, seen: Seen, slots: int = SLOTS) -> None:
        """`slots`: a power of two."""
        self._seen = seen
        self._desk = Desk(
            np.zeros(LONGEST + PADDING, np.uint8), np.zeros(slots, np.int64), np.full(slots, UNKNOWN, np.int32)
        )
        self._pin = Pin(self._desk)
        self._make_room(_USUAL)

    def _make_room(self, links: int) -> None:
        self._fingerprints, self._pages = np.zeros(links, np.int64), np.zeros(links, np.int32)

    def find(self, links: Links, url: bytes) -> tuple[Array, int]:
        """The page of each link on the page at `url`, UNKNOWN, or what was remembered of it; and how many are unknown. The array is
        overwritten by the next call."""
        count = len(links)
        if count > len(self._pages) or len(self._pages) > _MOST:
            self._make_room(max(count, _USUAL))
        text, base = np.frombuffer(links.text or b" ", np.uint8), np.frombuffer(url, np.uint8)
        unknown = find_links(
            self._seen.handle, self._pin.handle, text, links.spans, base, self._fingerprints, self._pages
        )
        return self._pages[:count], unknown

    def forget(self) -> None:
        """What was remembered of links may hold no more."""
        self._desk.met[:] = 0
        self._desk.met_pages[:] = UNKNOWN

    def remember(self, at: int, page: int, found_by: int = 0) -> None:
        """What came of the link at this place of the last ones looked up: its page, or NO_PAGE or less. Not needed for a page that is
        `found_by` the same fingerprint."""
        fingerprint = int(self._fingerprints[at])
        if fingerprint and (page < 0 or fingerprint != found_by):
            slot = fingerprint & (len(self._desk.met) - 1)
            self._desk.met[slot], self._desk.met_pages[slot] = fingerprint, page
