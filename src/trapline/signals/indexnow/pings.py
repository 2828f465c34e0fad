"""IndexNow pings on their way from request to inbox: parsing (request.py), known sites, rate limits, proof (ownership.py).

Status 200: all signals are on disk. Status 202: the ping is accepted, but is lost if the endpoint is killed before the key is
checked. That is so for pings held in memory, and for sites that the crawl does not know (the answer does not reveal which,
since the crawl's sites are nobody's business). All other statuses are those of the protocol.
"""

import asyncio
from collections.abc import Callable, Sequence

from trapline.signals.endpoint.intake import (
    DONE,
    HELD,
    LIMITED,
    MALFORMED,
    NOT_WRITTEN,
    OUT_OF_SCOPE,
    REFUTED,
    TAKEN,
    UNKNOWN,
    Intake,
    Reply,
    SignalTally,
    said,
    too_many,
)
from trapline.signals.endpoint.known_sites import SitesKnown
from trapline.signals.indexnow.ownership import Ownership, OwnershipState
from trapline.signals.indexnow.request import IndexNowPing, OwnershipClaim, Refusal, ping_of_body, ping_of_query
from trapline.signals.small_fetch import SmallFetch

CHANNEL = "indexnow"


class Pings:
    """Answers IndexNow pings, and passes their URLs to the intake."""

    def __init__(
        self, known: SitesKnown, intake: Intake, fetch: SmallFetch, tally: SignalTally, clock: Callable[[], float]
    ) -> None:
        self._known_sites, self._intake, self._tally, self._clock = known, intake, tally, clock
        self.ownership = Ownership(fetch, self._settle, clock)
        self._releasing: set[asyncio.Task[bool]] = set()

    async def get(self, query: bytes) -> Reply:
        return await self._answer(ping_of_query(query))

    async def post(self, body: bytes) -> Reply:
        return await self._answer(ping_of_body(body))

    async def close(self) -> None:
        """Write the URLs that still wait for their key to the inbox, as unverified."""
        await self.ownership.close()
        await asyncio.gather(*self._releasing)

    async def _answer(self, ping: IndexNowPing | Refusal) -> Reply:
        if isinstance(ping, Refusal):
            self._tally.add(CHANNEL, MALFORMED)
            return said(ping.status, ping.why)
        if ping.authority not in self._known_sites:
            return self._ended(ping, UNKNOWN, TAKEN)
        claim = ping.claim(self._known_sites)
        if not all(map(claim.covers, ping.urls)):
            return self._ended(ping, OUT_OF_SCOPE, said(422, "a URL is outside the folder of the key file"))
        if not self._known_sites.has(claim.location.partition(":")[0], ping.authority):
            return self._ended(ping, OUT_OF_SCOPE, said(422, "the key file is on a site that is not crawled"))
        return await self._judge(ping, claim)

    async def _judge(self, ping: IndexNowPing, claim: OwnershipClaim) -> Reply:
        verdict = self.ownership.state(claim)
        state = verdict and verdict.state
        if state is OwnershipState.REFUTED:
            return self._ended(ping, REFUTED, said(403, "the key file does not exist or does not contain the key"))
        vouched = state is OwnershipState.PROVEN
        if (wait_s := self._intake.wait_s(ping.authority, len(ping.urls), vouched)) > 0.0:
            return self._ended(ping, LIMITED, too_many(wait_s))
        if state in (OwnershipState.PROVEN, OwnershipState.OPEN):
            return await self._take(ping, vouched)
        verdict = self.ownership.hold(claim, ping.urls)
        if verdict.state is OwnershipState.TOO_MANY:
            return self._ended(ping, LIMITED, too_many(verdict.retry_s))
        return self._ended(ping, HELD, TAKEN)

    async def _take(self, ping: IndexNowPing, vouched: bool) -> Reply:
        now = self._clock()
        if not await self._intake.changed(CHANNEL, ((url, now) for url in ping.urls), vouched):
            return NOT_WRITTEN
        return DONE if vouched else TAKEN

    def _ended(self, ping: IndexNowPing, outcome: str, reply: Reply) -> Reply:
        self._tally.add(CHANNEL, outcome, len(ping.urls))
        return reply

    def _settle(self, claim: OwnershipClaim, state: OwnershipState, urls: Sequence[str]) -> None:
        """Release held URLs. The moment of their signals is now: the few seconds since the ping arrived do not matter."""
        if state is OwnershipState.REFUTED:
            self._tally.add(CHANNEL, REFUTED, len(urls))
            return
        now, vouched = self._clock(), state is OwnershipState.PROVEN
        releasing = self._intake.changed(CHANNEL, [(url, now) for url in urls], vouched)
        task = asyncio.get_running_loop().create_task(releasing)
        self._releasing.add(task)
        task.add_done_callback(self._releasing.discard)
