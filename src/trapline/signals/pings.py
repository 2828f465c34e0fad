"""IndexNow pings, from request to inbox: parsed (indexnow.py), of a known site, within limits, proven (ownership.py).

200: all of it is on disk. 202: it is taken, and lost if the endpoint is killed before the key is known: held in memory, or
about a site that the crawl does not know (which is not said, for it is nobody's business). The others as the protocol has them.
"""

import asyncio
from collections.abc import Callable, Sequence

from trapline.signals.indexnow import Claim, Ping, Refusal, ping_of_body, ping_of_query
from trapline.signals.intake import Intake
from trapline.signals.ownership import Ownership, Standing
from trapline.signals.reply import DONE, NOT_WRITTEN, TAKEN, Reply, said, too_many
from trapline.signals.sites_known import SitesKnown
from trapline.signals.small_fetch import SmallFetch
from trapline.signals.tally import HELD, LIMITED, MALFORMED, OUT_OF_SCOPE, REFUTED, UNKNOWN, Tally

CHANNEL = "indexnow"


class Pings:
    def __init__(
        self, known: SitesKnown, intake: Intake, fetch: SmallFetch, tally: Tally, clock: Callable[[], float]
    ) -> None:
        self._known, self._intake, self._tally, self._clock = known, intake, tally, clock
        self.ownership = Ownership(fetch, self._settle, clock)
        self._releasing: set[asyncio.Task[bool]] = set()

    async def get(self, query: bytes) -> Reply:
        return await self._answer(ping_of_query(query))

    async def post(self, body: bytes) -> Reply:
        return await self._answer(ping_of_body(body))

    async def close(self) -> None:
        """What waits for its key goes to the inbox, unverified."""
        await self.ownership.close()
        await asyncio.gather(*self._releasing)

    async def _answer(self, ping: Ping | Refusal) -> Reply:
        if isinstance(ping, Refusal):
            self._tally.add(CHANNEL, MALFORMED)
            return said(ping.status, ping.why)
        if ping.authority not in self._known:
            return self._ended(ping, UNKNOWN, TAKEN)
        claim = ping.claim(self._known)
        if not all(map(claim.covers, ping.urls)):
            return self._ended(ping, OUT_OF_SCOPE, said(422, "a URL is not in the folder of the key file"))
        if not self._known.has(claim.location.partition(":")[0], ping.authority):
            return self._ended(ping, OUT_OF_SCOPE, said(422, "the key file is not on a site that is crawled"))
        return await self._judge(ping, claim)

    async def _judge(self, ping: Ping, claim: Claim) -> Reply:
        verdict = self.ownership.standing(claim)
        standing = verdict and verdict.standing
        if standing is Standing.REFUTED:
            return self._ended(ping, REFUTED, said(403, "the key is not in its file"))
        vouched = standing is Standing.PROVEN
        if (wait_s := self._intake.wait_s(ping.authority, len(ping.urls), vouched)) > 0.0:
            return self._ended(ping, LIMITED, too_many(wait_s))
        if standing in (Standing.PROVEN, Standing.OPEN):
            return await self._take(ping, vouched)
        verdict = self.ownership.hold(claim, ping.urls)
        if verdict.standing is Standing.TOO_MANY:
            return self._ended(ping, LIMITED, too_many(verdict.retry_s))
        return self._ended(ping, HELD, TAKEN)

    async def _take(self, ping: Ping, vouched: bool) -> Reply:
        now = self._clock()
        if not await self._intake.changed(CHANNEL, ((url, now) for url in ping.urls), vouched):
            return NOT_WRITTEN
        return DONE if vouched else TAKEN

    def _ended(self, ping: Ping, outcome: str, reply: Reply) -> Reply:
        self._tally.add(CHANNEL, outcome, len(ping.urls))
        return reply

    def _settle(self, claim: Claim, standing: Standing, urls: Sequence[str]) -> None:
        """What was held is released. Its moment is now: the few seconds since it came do not matter."""
        if standing is Standing.REFUTED:
            self._tally.add(CHANNEL, REFUTED, len(urls))
            return
        now, vouched = self._clock(), standing is Standing.PROVEN
        releasing = self._intake.changed(CHANNEL, [(url, now) for url in urls], vouched)
        task = asyncio.get_running_loop().create_task(releasing)
        self._releasing.add(task)
        task.add_done_callback(self._releasing.discard)
