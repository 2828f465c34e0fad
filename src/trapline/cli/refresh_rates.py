"""Options of `trapline refresh serve` on how much may come in: per sender, per site, and in all. It counts nothing itself.

Defaults are repeated here, because importing `Rates` takes longer than --help may; a test compares the two.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trapline.cli.sections import Section
from trapline.errors import ConfigError

if TYPE_CHECKING:
    from trapline.signals.intake import Rates
    from trapline.signals.limits_of_senders import Rate

_RATE = (str, "N:BURST")

RATES = Section(
    "How much (N a second, BURST at once; who sends more is told to wait)",
    (
        ("--sender-rate", "sender_rate", _RATE, "50:1000", "Requests of one address."),
        ("--site-rate", "site_rate", _RATE, "50:20000", "URLs of one site, by its owner."),
        ("--total-rate", "total_rate", _RATE, "20000:200000", "URLs of all sites, by owners."),
        ("--unverified-rate", "unverified_rate", _RATE, "1:10000", "URLs of one site, by others."),
        ("--unverified-total", "unverified_total", _RATE, "2000:50000", "URLs of all sites, by others."),
    ),
)


@dataclass(frozen=True, slots=True)
class Rated:
    """The options as typed, by the names of their fields."""

    sender_rate: str
    site_rate: str
    total_rate: str
    unverified_rate: str
    unverified_total: str

    def rates(self) -> "Rates":
        from trapline.signals.intake import Rates

        texts = (getattr(self, field) for field in RATES.fields)
        sender, site, total, site_unvouched, total_unvouched = map(_rate, RATES.flags, texts)
        return Rates(sender, site, site_unvouched, total, total_unvouched)


def _rate(flag: str, text: str) -> "Rate":
    """A rate without a burst has the burst of twenty seconds."""
    from trapline.signals.limits_of_senders import Rate

    first, colon, second = text.partition(":")
    try:
        per_second = float(first)
        burst = float(second) if colon else max(1.0, 20.0 * per_second)
    except ValueError:
        per_second = burst = math.nan
    if not (0.0 < per_second < math.inf and 1.0 <= burst < math.inf):
        raise ConfigError(f"{flag} {text}: not N or N:BURST, such as 50:1000; N above 0, BURST at least 1")
    return Rate(per_second, burst)
