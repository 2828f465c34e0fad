"""When a feed says that it will change: `ttl`, `skipHours` and `skipDays` of RSS, and the syndication module's `sy:update*`.

A moment stands for the feed itself, not for the pages that it names. How likely a change then is, nobody says: content systems write
these by default. That is learned elsewhere.

Source: RSS 2.0 (rssboard.org/rss-specification); purl.org/rss/1.0/modules/syndication/: t_k = base + k * period / frequency.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import floor, inf, isfinite, nan
from typing import NamedTuple

from trapline.signals.dates import w3c_s

MOST_POINTS = 1000  # as many as an hourly feed has in the 30 days that are looked ahead
LEAST_STEP_S = 60.0

_YEAR_S = 365.2425 * 86_400.0
PERIODS_S = {
    "hourly": 3_600.0,
    "daily": 86_400.0,
    "weekly": 604_800.0,
    "monthly": _YEAR_S / 12,  # on average: the calendar's own are not told apart
    "yearly": _YEAR_S,
}
_NUMBER = re.compile(r"[0-9]{1,9}")
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


class Rhythm(NamedTuple):
    period_s: float = nan  # sy:updatePeriod
    frequency: int = 1  # sy:updateFrequency: updates in a period
    base_s: float = nan  # sy:updateBase; without it periods begin where those of the calendar do, in GMT
    ttl_s: float = nan
    skip_hours: frozenset[int] = frozenset()  # GMT
    skip_days: frozenset[int] = frozenset()  # 0: Monday

    @classmethod
    def of(cls, said: Mapping[str, Sequence[str]]) -> "Rhythm":
        """From the texts of the elements, by their names in small letters; what cannot be read was not said.

        >>> Rhythm.of({"ttl": ["90"], "hour": ["3", "noon"], "day": ["Sunday"]})[3:]
        (5400.0, frozenset({3}), frozenset({6}))
        """
        period_s = PERIODS_S.get(_first(said, "updateperiod").lower(), nan)
        if period_s != period_s and (said.get("updatefrequency") or said.get("updatebase")):
            period_s = PERIODS_S["daily"]  # the module's default
        hours = {
            int(text) % 24 for text in said.get("hour", ()) if _NUMBER.fullmatch(text)
        }  # 24 was midnight in RSS 0.91
        days = {DAYS.index(text.lower()) for text in said.get("day", ()) if text.lower() in DAYS}
        ttl = _number(_first(said, "ttl"))
        frequency = max(_number(_first(said, "updatefrequency")), 1)
        return cls(
            period_s, frequency, w3c_s(_first(said, "updatebase")), ttl * 60.0 or nan, frozenset(hours), frozenset(days)
        )

    def points(self, now: float, horizon_s: float) -> list[float]:
        """Moments after `now`, none beyond the horizon. A ttl counts from now, when the feed was read.

        >>> Rhythm(period_s=86_400.0, frequency=2, base_s=3_600.0).points(50_000.0, 86_400.0)
        [90000.0, 133200.0]
        """
        step_s = max(self._step_s(), LEAST_STEP_S)
        if not isfinite(step_s + horizon_s):
            return []
        first = self._base_s(now)
        first += step_s * (floor((now - first) / step_s) + 1)
        count = min(max(floor((now + horizon_s - first) / step_s) + 1, 0), MOST_POINTS)
        return [at for at in (first + k * step_s for k in range(count)) if not self._skipped(at)]

    def _step_s(self) -> float:
        if self.period_s == self.period_s:
            return self.period_s / self.frequency
        return self.ttl_s if self.ttl_s == self.ttl_s else inf

    def _base_s(self, now: float) -> float:
        if self.period_s != self.period_s:
            return now
        return self.base_s if self.base_s == self.base_s else 0.0

    def _skipped(self, at: float) -> bool:
        if not self.skip_hours and not self.skip_days:
            return False
        moment = datetime.fromtimestamp(at, UTC)
        return moment.hour in self.skip_hours or moment.weekday() in self.skip_days


def _first(said: Mapping[str, Sequence[str]], name: str) -> str:
    return next(iter(said.get(name, ())), "").strip()


def _number(text: str) -> int:
    return int(text) if _NUMBER.fullmatch(text) else 0
