"""Who may speak for a host: the proof behind IndexNow's keys, and the pings that wait for it.

A claim (indexnow.py) is proven, refuted, or open: the file could not be had. Step by step: a claim never seen is asked for
at once, with its URLs held; an answer settles all that is held. Everything here is bounded: claims remembered, claims under
way, URLs held, and requests to one host.
Laws
- At most one request for (host, key) in OPEN_S, whatever the sender says of the file's place; at most CHECKS.burst more per host.
- URLs are released once, with the claim's answer, or given back as open when the endpoint ends.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple

from trapline.fetch import failure
from trapline.signals.indexnow import Claim, folder_of
from trapline.signals.limits_of_senders import Buckets, Once, Rate
from trapline.signals.small_fetch import Answer, SmallFetch

PROVEN_S = 86_400.0
OPEN_S = 600.0  # also for what was refuted: the file may be there soon
MOST_PROOFS = 100_000
MOST_PENDING = 1_000
MOST_HELD_BYTES = 32 * 1024 * 1024  # of URLs
_SOON_S = 5.0  # what is under way is over by then
CHECKS = Rate(5 / OPEN_S, 5)  # requests for key files, of one host


class Standing(Enum):
    PROVEN = "proven"
    REFUTED = "refuted"
    OPEN = "open"  # the file could not be had
    PENDING = "pending"
    TOO_MANY = "too many"


class Verdict(NamedTuple):
    standing: Standing
    retry_s: float = 0.0  # of TOO_MANY


class _Proof(NamedTuple):
    standing: Standing
    until: float


Settle = Callable[[Claim, Standing, Sequence[str]], None]


class Ownership:
    """`settle` is told what became of the URLs that were held."""

    def __init__(self, fetch: SmallFetch, settle: Settle, clock: Callable[[], float]) -> None:
        self._fetch, self._settle, self._clock = fetch, settle, clock
        self._proofs: OrderedDict[Claim, _Proof] = OrderedDict()  # the oldest first
        self._pending: dict[Claim, list[str]] = {}
        self._held_bytes = 0
        self._asked: Once[tuple[str, str]] = Once(OPEN_S, MOST_PROOFS)
        self._checks: Buckets[str] = Buckets(CHECKS)
        self._tasks: set[asyncio.Task[None]] = set()
        self.key_fetches = 0

    def __len__(self) -> int:
        return len(self._proofs)

    @property
    def pending(self) -> int:
        return len(self._pending)

    @property
    def held(self) -> int:
        return sum(map(len, self._pending.values()))

    def standing(self, claim: Claim) -> Verdict | None:
        """What is known of a claim; None: nothing."""
        proof = self._proofs.get(claim)
        if proof is not None and proof.until > self._clock():
            return Verdict(proof.standing)
        return Verdict(Standing.PENDING) if claim in self._pending else None

    def hold(self, claim: Claim, urls: Sequence[str]) -> Verdict:
        """Keep URLs of a claim of which nothing is known yet until something is."""
        size = sum(map(len, urls))
        if self._held_bytes + size > MOST_HELD_BYTES:
            return Verdict(Standing.TOO_MANY, _SOON_S)
        if claim not in self._pending:
            if (wait_s := self._may_not_ask_s(claim)) > 0.0:
                return Verdict(Standing.TOO_MANY, wait_s)
            self._ask(claim)
        self._pending[claim] += urls
        self._held_bytes += size
        return Verdict(Standing.PENDING)

    async def close(self) -> None:
        """What is still held stays open."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for claim in list(self._pending):
            self._release(claim, Standing.OPEN)

    def _may_not_ask_s(self, claim: Claim) -> float:
        """Seconds until this claim may be asked about; 0.0: now, and it is noted."""
        now = self._clock()
        if len(self._pending) >= MOST_PENDING:
            return _SOON_S
        if not self._asked.is_new((claim.authority, claim.key), now):
            return OPEN_S
        wait_s = self._checks.wait_s(claim.authority, 1.0, now)
        if wait_s > 0.0:
            self._asked.forget((claim.authority, claim.key))
        return wait_s

    def _ask(self, claim: Claim) -> None:
        self._pending[claim] = []
        self.key_fetches += 1
        task = asyncio.get_running_loop().create_task(self._check(claim))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _check(self, claim: Claim) -> None:
        standing = judged(await self._fetch.get(claim.location), claim)
        lasts_s = PROVEN_S if standing is Standing.PROVEN else OPEN_S
        self._proofs.pop(claim, None)
        self._proofs[claim] = _Proof(standing, self._clock() + lasts_s)
        if len(self._proofs) > MOST_PROOFS:
            self._proofs.popitem(last=False)
        self._release(claim, standing)

    def _release(self, claim: Claim, standing: Standing) -> None:
        urls = self._pending.pop(claim)
        self._held_bytes -= sum(map(len, urls))
        self._settle(claim, standing, urls)


def judged(answer: Answer, claim: Claim) -> Standing:
    """A file that is not there, or says something else, refutes the claim; a server in trouble says nothing about it.

    A file that was moved speaks for its folder where it is now: a redirect from above must not widen that.

    >>> claim = Claim("a.org", "abcdefgh", "http://a.org/k.txt")
    >>> judged(Answer(200, {}, b"abcdefgh\\n", True, claim.location), claim).value, judged(Answer(404), claim).value
    ('proven', 'refuted')
    >>> judged(Answer(503), claim).value, judged(Answer(failure=failure.TIMEOUT), claim).value
    ('open', 'open')
    """
    if answer.status == 200:
        same = answer.whole and answer.body.decode("utf-8-sig", "replace").strip() == claim.key
        return Standing.PROVEN if same and claim.folder.startswith(folder_of(answer.url)) else Standing.REFUTED
    if answer.failure == failure.ADDRESS:
        return Standing.REFUTED
    trouble = answer.status in (0, 408, 425, 429) or answer.status >= 500
    return Standing.OPEN if trouble else Standing.REFUTED
