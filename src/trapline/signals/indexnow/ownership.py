"""Ownership of hosts: the check of IndexNow keys, and the pings that wait for its result.

A claim (request.py) is proven, refuted, or open, which means that the key file could not be fetched. The key file of a new claim
is fetched at once, while the URLs of its pings are held; the response settles all of them. Everything here is bounded: claims
remembered, claims being checked, URLs held, and requests to one host.
Laws
- At most one request per (host, key) in OPEN_S, wherever the sender says that the file is; per host at most CHECKS.burst at
  once, and CHECKS.per_second in the long run.
- Held URLs are released once: with the result of the claim, or as open when the endpoint ends.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple

from trapline.fetch import failure
from trapline.signals.endpoint.rate_limits import Buckets, Once, RequestRate
from trapline.signals.indexnow.request import OwnershipClaim, folder_of
from trapline.signals.small_fetch import SmallFetch, SmallResponse

PROVEN_S = 86_400.0
OPEN_S = 600.0  # for refuted claims too: the file may appear soon
MOST_PROOFS = 100_000
MOST_PENDING = 1_000
MOST_HELD_BYTES = 32 * 1024 * 1024  # total length of the held URLs
_SOON_S = 5.0  # the current requests are finished by then
CHECKS = RequestRate(5 / OPEN_S, 5)  # requests for key files, per host


class OwnershipState(Enum):
    PROVEN = "proven"
    REFUTED = "refuted"
    OPEN = "open"  # the key file could not be fetched
    PENDING = "pending"
    TOO_MANY = "too many"


class OwnershipVerdict(NamedTuple):
    state: OwnershipState
    retry_s: float = 0.0  # seconds to wait; set with TOO_MANY


class _Proof(NamedTuple):
    state: OwnershipState
    until: float


Settle = Callable[[OwnershipClaim, OwnershipState, Sequence[str]], None]


class Ownership:
    """Checks claims, and remembers the results. Calls `settle` with the result and the held URLs of each claim."""

    def __init__(self, fetch: SmallFetch, settle: Settle, clock: Callable[[], float]) -> None:
        self._fetch, self._settle, self._clock = fetch, settle, clock
        self._proofs: OrderedDict[OwnershipClaim, _Proof] = OrderedDict()  # the oldest first
        self._pending: dict[OwnershipClaim, list[str]] = {}
        self._held_bytes = 0
        self._recent_checks: Once[tuple[str, str]] = Once(OPEN_S, MOST_PROOFS)
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

    def state(self, claim: OwnershipClaim) -> OwnershipVerdict | None:
        """Return what is known about a claim; None if nothing is."""
        proof = self._proofs.get(claim)
        if proof is not None and proof.until > self._clock():
            return OwnershipVerdict(proof.state)
        return OwnershipVerdict(OwnershipState.PENDING) if claim in self._pending else None

    def hold(self, claim: OwnershipClaim, urls: Sequence[str]) -> OwnershipVerdict:
        """Hold the URLs of a claim until its key file has been checked, and start the check if it is not running."""
        size = sum(map(len, urls))
        if self._held_bytes + size > MOST_HELD_BYTES:
            return OwnershipVerdict(OwnershipState.TOO_MANY, _SOON_S)
        if claim not in self._pending:
            if (wait_s := self._wait_s(claim)) > 0.0:
                return OwnershipVerdict(OwnershipState.TOO_MANY, wait_s)
            self._start_check(claim)
        self._pending[claim] += urls
        self._held_bytes += size
        return OwnershipVerdict(OwnershipState.PENDING)

    async def close(self) -> None:
        """Stop all checks, and release the held URLs as open."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for claim in list(self._pending):
            self._release(claim, OwnershipState.OPEN)

    def _wait_s(self, claim: OwnershipClaim) -> float:
        """Return the seconds until this claim may be checked; 0.0: now, and the check is counted."""
        now = self._clock()
        if len(self._pending) >= MOST_PENDING:
            return _SOON_S
        if not self._recent_checks.is_new((claim.authority, claim.key), now):
            return OPEN_S
        wait_s = self._checks.wait_s(claim.authority, 1.0, now)
        if wait_s > 0.0:
            self._recent_checks.forget((claim.authority, claim.key))
        return wait_s

    def _start_check(self, claim: OwnershipClaim) -> None:
        self._pending[claim] = []
        self.key_fetches += 1
        task = asyncio.get_running_loop().create_task(self._check(claim))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _check(self, claim: OwnershipClaim) -> None:
        state = judged(await self._fetch.get(claim.location), claim)
        lasts_s = PROVEN_S if state is OwnershipState.PROVEN else OPEN_S
        self._proofs.pop(claim, None)
        self._proofs[claim] = _Proof(state, self._clock() + lasts_s)
        if len(self._proofs) > MOST_PROOFS:
            self._proofs.popitem(last=False)
        self._release(claim, state)

    def _release(self, claim: OwnershipClaim, state: OwnershipState) -> None:
        urls = self._pending.pop(claim)
        self._held_bytes -= sum(map(len, urls))
        self._settle(claim, state, urls)


def judged(answer: SmallResponse, claim: OwnershipClaim) -> OwnershipState:
    """Return the state that follows from the response for a key file.

    A file that is missing or has other content refutes the claim; a server error leaves it open. After a redirect, the file
    speaks for the folder that it was found in: a redirect from a higher folder must not widen that.

    >>> claim = OwnershipClaim("a.org", "abcdefgh", "http://a.org/k.txt")
    >>> judged(SmallResponse(200, {}, b"abcdefgh\\n", True, claim.location), claim).value, judged(SmallResponse(404), claim).value
    ('proven', 'refuted')
    >>> judged(SmallResponse(503), claim).value, judged(SmallResponse(failure=failure.TIMEOUT), claim).value
    ('open', 'open')
    """
    if answer.status == 200:
        same = answer.whole and answer.body.decode("utf-8-sig", "replace").strip() == claim.key
        return (
            OwnershipState.PROVEN if same and claim.folder.startswith(folder_of(answer.url)) else OwnershipState.REFUTED
        )
    if answer.failure == failure.ADDRESS:
        return OwnershipState.REFUTED
    trouble = answer.status in (0, 408, 425, 429) or answer.status >= 500
    return OwnershipState.OPEN if trouble else OwnershipState.REFUTED
