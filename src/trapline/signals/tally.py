"""What became of the signals that came: counted, by channel and outcome, and kept by the hour. Every one has exactly one outcome.

Those that are in the inbox are there one by one as well; of the others nothing but this number is kept, however many they are.
"""

from collections import Counter
from collections.abc import Callable

ACCEPTED = "accepted"  # in the inbox; vouched for
UNVERIFIED = "unverified"  # in the inbox; nobody vouches for it
REPEATED = "repeated"  # its URL was signalled just now
HELD = "held"  # until the key is known; counted again by what then becomes of it
REFUTED = "refuted"  # the key file is not there, or says something else
UNSIGNED = "unsigned"  # a delivery whose signature is missing or wrong
REPLAYED = "replayed"  # a delivery that came before
UNKNOWN = "unknown"  # of a site that the crawl does not know, or to a callback that nobody has
MALFORMED = "malformed"
OUT_OF_SCOPE = "out of scope"  # not in the key file's folder
LIMITED = "limited"  # too many
LOST = "lost"  # the disk refused it, and the sender was told

_HOUR_S = 3600
Row = tuple[int, str, str, int]  # hour, channel, outcome, signals


class Tally:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.counts: Counter[tuple[str, str]] = Counter()  # (channel, outcome), since the endpoint began
        self.requests = 0
        self._new: Counter[tuple[int, str, str]] = Counter()

    def add(self, channel: str, outcome: str, signals: int = 1) -> None:
        if signals:
            self.counts[channel, outcome] += signals
            self._new[int(self._clock()) // _HOUR_S * _HOUR_S, channel, outcome] += signals

    def taken(self) -> list[Row]:
        """What is new since the last time, for whoever keeps it."""
        new, self._new = self._new, Counter()
        return [(*key, signals) for key, signals in new.items()]

    def put_back(self, rows: list[Row]) -> None:
        """They could not be kept yet."""
        for hour, channel, outcome, signals in rows:
            self._new[hour, channel, outcome] += signals

    def total(self, *outcomes: str) -> int:
        return sum(signals for (_, outcome), signals in self.counts.items() if outcome in outcomes)

    def by_channel(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for (channel, outcome), signals in sorted(self.counts.items()):
            found.setdefault(channel, {})[outcome] = signals
        return found
