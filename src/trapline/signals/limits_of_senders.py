"""What one sender may take of us: token buckets, and a memory of what was said just now. Of bounded size, whoever comes.

It knows keys and numbers, and no protocol: whose address, which host and what a thing costs is the endpoint's to say. Ordered
dicts, for the first of a plain one is found only behind all that were removed before it.
"""

from collections import OrderedDict
from collections.abc import Hashable
from ipaddress import IPv6Address, ip_address
from typing import Generic, NamedTuple, TypeVar

Key = TypeVar("Key", bound=Hashable)
HOLD_UP = "trapline.hold_up"  # the ASGI extension by which an application says that it lets a sender wait


class Rate(NamedTuple):
    """`burst` at once, and `per_second` in the long run."""

    per_second: float
    burst: float


class Buckets(Generic[Key]):
    """One token bucket for each key; of more than `most` keys those that asked longest ago are forgotten, and begin anew.

    Law: what one key was granted in any t seconds is at most burst + t * per_second, as long as it is not forgotten.
    """

    def __init__(self, rate: Rate, most: int = 100_000) -> None:
        self._rate, self._most = rate, most
        self._levels: OrderedDict[Key, tuple[float, float]] = OrderedDict()  # tokens, and when; by the last question

    def __len__(self) -> int:
        return len(self._levels)

    def wait_s(self, key: Key, cost: float, now: float) -> float:
        """0.0: granted. Else nothing was taken, and so many seconds would have to pass; infinity: it is more than there ever is."""
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
        """Take so much whether it is there or not, down to a debt of one burst."""
        burst = self._rate.burst
        level, at = self._levels.get(key, (burst, now))
        level = min(burst, level + max(0.0, now - at) * self._rate.per_second)
        self._levels[key] = (max(-burst, level - cost), now)


class Once(Generic[Key]):
    """Whether a key is new: not met within the last `seconds`, of which the newest `most` keys are remembered."""

    def __init__(self, seconds: float, most: int = 400_000) -> None:
        self._seconds, self._most = seconds, most
        self._met: OrderedDict[Key, float] = OrderedDict()  # in order of time

    def __len__(self) -> int:
        return len(self._met)

    def is_new(self, key: Key, now: float) -> bool:
        """A key that is not new does not count as met again: it is new `seconds` after it was."""
        self._forget(now)
        if key in self._met:
            return False
        self._met[key] = now
        return True

    def forget(self, key: Key) -> None:
        """It came to nothing: the next one counts."""
        self._met.pop(key, None)

    def _forget(self, now: float) -> None:
        met = self._met
        while met:
            first = next(iter(met))
            if len(met) < self._most and now - met[first] < self._seconds:
                return
            met.popitem(last=False)


def sender_of(address: str) -> str:
    """Whom an address stands for: an IPv4 address for itself, an IPv6 address for its /64, which one sender has whole.

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
