"""Accesses that come by HTTP: a body of lines (access_log.py) to the inbox, as far as its pages are on sites that are crawled."""

from collections.abc import Callable

from trapline.signals.access_log import BAD, CHANNEL, Accesses
from trapline.signals.intake import Intake
from trapline.signals.reply import NOT_WRITTEN, Reply, as_json
from trapline.signals.sites_known import SitesKnown, authority_of
from trapline.signals.tally import ACCEPTED, LOST, MALFORMED, UNKNOWN, Tally


class AccessPosts:
    def __init__(self, known: SitesKnown, intake: Intake, tally: Tally, clock: Callable[[], float]) -> None:
        self._known, self._intake, self._tally, self._clock = known, intake, tally, clock

    async def post(self, body: bytes) -> Reply:
        accesses = Accesses("", self._clock())
        accesses.read(body.splitlines())
        found = list(accesses.signals(CHANNEL))
        signals = [signal for signal in found if authority_of(signal.url) in self._known]
        if signals and not await self._intake.written(signals):
            self._tally.add(CHANNEL, LOST, len(signals))
            return NOT_WRITTEN
        self._tally.add(CHANNEL, ACCEPTED, len(signals))
        self._tally.add(CHANNEL, UNKNOWN, len(found) - len(signals))
        self._tally.add(CHANNEL, MALFORMED, accesses.lines[BAD])
        return as_json({"lines": dict(accesses.lines), "taken": len(signals), "unknown": len(found) - len(signals)})
