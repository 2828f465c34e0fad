"""Access counts received by HTTP: parses a body of lines (access_log.py), and writes to the inbox those about crawled sites."""

from collections.abc import Callable

from trapline.signals.access_log import BAD, CHANNEL, AccessCounts
from trapline.signals.endpoint.intake import ACCEPTED, LOST, MALFORMED, UNKNOWN, Intake, SignalTally
from trapline.signals.endpoint.known_sites import SitesKnown, authority_of
from trapline.signals.endpoint.reply import NOT_WRITTEN, Reply, as_json


class AccessPosts:
    """Answers posts of access counts."""

    def __init__(self, known: SitesKnown, intake: Intake, tally: SignalTally, clock: Callable[[], float]) -> None:
        self._known_sites, self._intake, self._tally, self._clock = known, intake, tally, clock

    async def post(self, body: bytes) -> Reply:
        accesses = AccessCounts("", self._clock())
        accesses.read(body.splitlines())
        found = list(accesses.signals(CHANNEL))
        signals = [signal for signal in found if authority_of(signal.url) in self._known_sites]
        if signals and not await self._intake.written(signals):
            self._tally.add(CHANNEL, LOST, len(signals))
            return NOT_WRITTEN
        self._tally.add(CHANNEL, ACCEPTED, len(signals))
        self._tally.add(CHANNEL, UNKNOWN, len(found) - len(signals))
        self._tally.add(CHANNEL, MALFORMED, accesses.lines[BAD])
        return as_json({"lines": dict(accesses.lines), "taken": len(signals), "unknown": len(found) - len(signals)})
