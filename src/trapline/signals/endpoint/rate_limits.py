"""Rate limits for senders: token buckets, and a memory of recent keys. Both have a bounded size, whatever arrives.

The module knows keys and numbers, and no protocol: the endpoint decides on addresses, hosts and costs. It uses `OrderedDict`,
because finding the first key of a plain dict takes time for all keys removed before it.
"""

from collections import OrderedDict
from collections.abc import Hashable
from ipaddress import IPv6Address, ip_address
from typing import Generic, NamedTuple, TypeVar

Key = TypeVar("Key", bound=Hashable)
HOLD_UP = "trapline.hold_up"  # ASGI extension by which the application marks a connection as held up


class RequestRate(NamedTuple):
    """A rate: `burst` at once, and `per_second` in the long run."""

    per_second: float
    burst: float


class Buckets(Generic[Key]):
    """One token bucket per key. Beyond `most` keys, the least recently used ones are forgotten, and start with a full bucket.

    Law: in any t seconds, a key is granted at most burst + t * per_second, as long as it is not forgotten.
    """

    def __init__(self, rate: RequestRate, most: int = 100_000) -> None:
        self._rate, self._most = rate, most
        self._levels: OrderedDict[Key, tuple[float, float]] = OrderedDict()  # (tokens, time), least recently used first

    def __len__(self) -> int:
        return len(self._levels)

    def wait_s(self, key: Key, cost: float, now: float) -> float:
        """Take `cost` tokens and return 0.0, or take none and return the seconds to wait; infinity if `cost` exceeds the burst."""
        burst, per_second = self._rate.burst, self._rate.per_second
        level, at = self._levels.pop(key, (burst, now))
        level = min(burst, level + max(0.0, now - at) * per_second)
        granted = cost <= level
        self._levels[key] = (level - cost if granted else level, now)
        if len(self._levels) > self._most:
            self._levels.popitem(last=False)
        if granted:
            return 0.0
        return (cost - level) / per_second if cost <= burst and per_second > 0.0 else float("inf")

    def charge(self, key: Key, cost: float, now: float) -> None:
        """Take `cost` tokens even if the bucket has fewer, down to a debt of one burst."""
        burst = self._rate.burst
        level, at = self._levels.get(key, (burst, now))
        level = min(burst, level + max(0.0, now - at) * self._rate.per_second)
        self._levels[key] = (max(-burst, level - cost), now)


class Once(Generic[Key]):
    """Tells whether a key is new, which means not seen within the last `seconds`. Remembers the newest `most` keys."""

    def __init__(self, seconds: float, most: int = 400_000) -> None:
        self._seconds, self._most = seconds, most
        self._met: OrderedDict[Key, float] = OrderedDict()  # in order of time

    def __len__(self) -> int:
        return len(self._met)

    def is_new(self, key: Key, now: float) -> bool:
        """Return whether the key is new, and record it if so. A repetition does not extend the time: `seconds` after it was
        recorded, the key is new again."""
        self._forget(now)
        if key in self._met:
            return False
        self._met[key] = now
        return True

    def forget(self, key: Key) -> None:
        """Forget a key whose signal failed, so that the next one counts as new."""
        self._met.pop(key, None)

    def _forget(self, now: float) -> None:
        met = self._met
        while met:
            first = next(iter(met))
            if len(met) < self._most and now - met[first] < self._seconds:
                return
            met.popitem(last=False)


def sender_of(address: str) -> str:
    """Return the sender that an address belongs to: the IPv4 address itself, or the /64 of an IPv6 address, which one sender owns.

    >>> sender_of("192.0.2.7"), sender_of("2001:db8:1:2:3:4:5:6"), sender_of("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8:1:2::', '192.0.2.7')
    """
    if ":" not in address:
        return address
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    assert isinstance(parsed, IPv6Address)
    return str(parsed.ipv4_mapped or IPv6Address(int(parsed) >> 64 << 64))
