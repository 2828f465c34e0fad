"""The rows of trust of sites and channels. A row is added when a site and channel is first used.

There is a row for each channel of each site, separate for verified and unverified senders. They are shrunk to a row for each
channel at all sites, and these to row 0 for all. While there is only one channel, row 0 is also the row of that channel.
"""

from collections.abc import Sequence

import numpy as np

from trapline.errors import InvariantError
from trapline.refresh.core.layout import CERTAIN, UNVERIFIED, Array
from trapline.refresh.live.memory import Memory, RefreshRules

# ---- Published points as a refresher keeps them. A provider may publish any number; the number kept is bounded.

MOST_AHEAD_S = 30 * 86_400.0
MERGED_S = 60.0  # points closer together than this are merged: the probability is that of a change at any of them
MOST_POINTS = 1000  # most points of a page


def ahead(points: Sequence[tuple[float, float]], now: float) -> Array:
    """Return the points that lie ahead, sorted by time and merged, as alternating times and probabilities.

    >>> ahead([(500.0, 0.5), (90.0, 1.0), (530.0, 0.5), (1e9, 1.0)], now=100.0).tolist()
    [500.0, 0.75]
    """
    kept: list[list[float]] = []
    for at_s, p in sorted((at_s, p) for at_s, p in points if now < at_s <= now + MOST_AHEAD_S and 0.0 < p <= 1.0):
        if kept and at_s - kept[-1][0] < MERGED_S:
            kept[-1][1] = 1.0 - (1.0 - kept[-1][1]) * (1.0 - p)
        else:
            kept.append([at_s, p])
    return np.array(kept[:MOST_POINTS], np.float64).reshape(-1)


# ---- channels

MOST_CHANNELS = 128
NOT_VERIFIED = 0x80  # a bit that is added to the number of a channel for an unverified sender
ALL_SITES = -1


class Channels:
    """Finds and adds the rows of trust of sites and channels."""

    def __init__(self, memory: Memory, rules: RefreshRules) -> None:
        self._memory, self._rules = memory, rules
        trust = memory.whole.trust[1 : int(memory.whole.run[0].rows)]
        keys = zip(trust["site"].tolist(), trust["channel"].tolist(), trust["unverified"].tolist(), strict=True)
        self._rows = {key: row for row, key in enumerate(keys, 1)}
        self._known = {channel for _, channel, _ in self._rows}

    def row(self, site: int, channel: int, p: float) -> int:
        """Return the row of a site's channel, adding it if necessary. `p` of UNVERIFIED or less: the row for unverified senders."""
        if not 0 <= channel < MOST_CHANNELS:
            raise InvariantError(f"channel {channel} is not in 0..{MOST_CHANNELS - 1}; give the number of a channel")
        unverified = p <= UNVERIFIED
        key = (site, channel, int(unverified))
        if key not in self._rows:
            most = UNVERIFIED if unverified else CERTAIN
            self._add(key, parent=self._parent(channel), keeps=self._rules.keeps, most=most)
        return self._rows[key]

    def _parent(self, channel: int) -> int:
        """Return the row that a new row of this channel is shrunk to."""
        if self._known <= {channel}:
            return 0
        if len(self._known) == 1:
            self._part(*self._known)
        return self._of_channel(channel)

    def rows_of(self, site: int) -> list[int]:
        """Return all rows of a site, or of ALL_SITES."""
        keys = ((site, channel, unverified) for channel in sorted(self._known) for unverified in (0, 1))
        return [self._rows[key] for key in keys if key in self._rows]

    def row_at_all_sites(self, channel: int) -> int:
        """Return the row of a channel at all sites, adding it if necessary."""
        if len(self._known) == 1 and not self.rows_of(ALL_SITES):
            self._part(*self._known)
        return self._of_channel(channel)

    def _of_channel(self, channel: int) -> int:
        key = (ALL_SITES, channel, 0)
        if key not in self._rows:
            self._add(key, parent=0, keeps=self._rules.keeps_of_all, most=CERTAIN)
        return self._rows[key]

    def _part(self, channel: int) -> None:
        """Give the first channel a row of its own when a second channel is added. All outcomes in row 0 so far are of the first channel."""
        trust = self._memory.whole.trust
        outcomes = {name: trust[0][name] for name in trust.dtype.names or ()}
        rows = len(self._rows) + 1
        self._add((ALL_SITES, channel, 0), **outcomes)
        self._memory.whole.trust["parent"][1:rows] = self._rows[ALL_SITES, channel, 0]

    def _add(self, key: tuple[int, int, int], **fields: float) -> None:
        site, channel, unverified = key
        own = {"site": site, "channel": channel, "unverified": unverified}
        self._rows[key] = self._memory.add_row(**{**fields, **own})
        self._known.add(channel)
