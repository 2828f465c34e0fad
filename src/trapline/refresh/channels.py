"""Who is believed how far: the rows of trust, given out as sites and channels are first heard of.

A row for each site and channel, those who cannot prove who they are apart from those who can; one for each channel at all sites, to which
these are shrunk; and row 0 for all of them together. While there is one channel only, it is all there is, and row 0 stands for it.
"""

from trapline.errors import InvariantError
from trapline.refresh.layout import CERTAIN, UNVERIFIED
from trapline.refresh.memory import Memory
from trapline.refresh.refresh_rules import RefreshRules

MOST_CHANNELS = 128
NOT_VERIFIED = 0x80  # beside a channel, where both are one number
ALL_SITES = -1


class Channels:
    def __init__(self, memory: Memory, rules: RefreshRules) -> None:
        self._memory, self._rules = memory, rules
        trust = memory.whole.trust[1 : int(memory.whole.run[0].rows)]
        keys = zip(trust["site"].tolist(), trust["channel"].tolist(), trust["unverified"].tolist(), strict=True)
        self._rows = {key: row for row, key in enumerate(keys, 1)}
        self._known = {channel for _, channel, _ in self._rows}

    def row(self, site: int, channel: int, p: float) -> int:
        """The row of a site's channel that tells something with this probability."""
        if not 0 <= channel < MOST_CHANNELS:
            raise InvariantError(f"channel {channel} is not in 0..{MOST_CHANNELS - 1}")
        unverified = p <= UNVERIFIED
        key = (site, channel, int(unverified))
        if key not in self._rows:
            most = UNVERIFIED if unverified else CERTAIN
            self._add(key, parent=self._parent(channel), keeps=self._rules.keeps, most=most)
        return self._rows[key]

    def _parent(self, channel: int) -> int:
        if self._known <= {channel}:
            return 0
        if len(self._known) == 1:
            self._part(*self._known)
        return self._of_channel(channel)

    def rows_of(self, site: int) -> list[int]:
        """All of a site, or of ALL_SITES."""
        keys = ((site, channel, unverified) for channel in sorted(self._known) for unverified in (0, 1))
        return [self._rows[key] for key in keys if key in self._rows]

    def row_at_all_sites(self, channel: int) -> int:
        """The row of one of several channels."""
        if len(self._known) == 1 and not self.rows_of(ALL_SITES):
            self._part(*self._known)
        return self._of_channel(channel)

    def _of_channel(self, channel: int) -> int:
        key = (ALL_SITES, channel, 0)
        if key not in self._rows:
            self._add(key, parent=0, keeps=self._rules.keeps_of_all, most=CERTAIN)
        return self._rows[key]

    def _part(self, channel: int) -> None:
        """A second channel: what all of them showed so far, the first one did."""
        trust = self._memory.whole.trust
        shown = {name: trust[0][name] for name in trust.dtype.names or ()}
        rows = len(self._rows) + 1
        self._add((ALL_SITES, channel, 0), **shown)
        self._memory.whole.trust["parent"][1:rows] = self._rows[ALL_SITES, channel, 0]

    def _add(self, key: tuple[int, int, int], **fields: float) -> None:
        site, channel, unverified = key
        own = {"site": site, "channel": channel, "unverified": unverified}
        self._rows[key] = self._memory.add_row(**{**fields, **own})
        self._known.add(channel)
