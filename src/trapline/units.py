"""Formatting of numbers for people: in a unit that fits their size, with few digits; and the units that people type.

This module knows nothing about crawls, and does not parse what people type.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

DURATIONS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}
BITS_AND_BYTES = {
    "B": 1.0,
    "kB": 1e3,
    "KB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "kbit": 1e3 / 8,
    "Mbit": 1e6 / 8,
    "Gbit": 1e9 / 8,
}  # without Kb and mb: some people read these as bits, others as bytes
BIT_AND_BYTE_RATES = {f"{unit}{per}": bytes_ for unit, bytes_ in BITS_AND_BYTES.items() for per in ("", "/s")}

_BYTE_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


class TimeUnit(NamedTuple):
    seconds: float
    name: str
    sign: str


_TIME_UNITS = (
    TimeUnit(86_400.0, "days", "days"),
    TimeUnit(3_600.0, "hours", "h"),
    TimeUnit(60.0, "minutes", "min"),
    TimeUnit(1.0, "seconds", "s"),
)


def time_unit(seconds: float) -> TimeUnit:
    """Return the largest unit of which this time is at least two, or seconds.

    >>> time_unit(200_000.0).name, time_unit(90.0).sign
    ('days', 's')
    """
    return next((unit for unit in _TIME_UNITS if seconds >= 2 * unit.seconds), _TIME_UNITS[-1])


def duration(seconds: float) -> str:
    """Format a time with two or more digits, in the unit that fits.

    >>> duration(0.25), duration(42.4), duration(200), duration(9000), duration(2e6)
    ('0.25 s', '42 s', '3.3 min', '2.5 h', '23 days')
    """
    unit = time_unit(seconds)
    value = seconds / unit.seconds
    return f"{value:,.0f} {unit.sign}" if value >= 10 else f"{value:.2g} {unit.sign}"


def number(value: float, unit: str = "") -> str:
    """Format a number with about four digits.

    >>> number(12_345.6), number(0.25, "%"), number(3.0)
    ('12,346', '0.25 %', '3')
    """
    digits = 0 if value == 0 else max(0, 3 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{text} {unit}" if unit else text


def counted(amount: int, what: str) -> str:
    """Format a count with its noun, in the singular or the plural.

    >>> counted(1, "site"), counted(1_200, "page")
    ('1 site', '1,200 pages')
    """
    return f"{amount:,} {what}{'' if amount == 1 else 's'}"


def three_digits(value: float) -> str:
    """Format a number for a column of numbers: three digits, or a whole number from 100 on.

    >>> three_digits(2.6), three_digits(0.97049), three_digits(41_216.0), three_digits(99.97), three_digits(0.0)
    ('2.60', '0.970', '41,216', '100', '0')
    """
    return f"{value:,.{2 - math.floor(math.log10(value)) if 1e-9 < value < 99.95 else 0}f}"


def bytes_shown(amount: float) -> str:
    """Format a number of bytes in the unit that fits.

    >>> bytes_shown(200), bytes_shown(20e3), bytes_shown(1.5e6)
    ('200 B', '20 kB', '1.5 MB')
    """
    size, unit = byte_unit(amount)
    return number(amount / size, unit)


def byte_unit(amount: float) -> tuple[float, str]:
    """Return the size and the name of the largest unit of which this amount is at least one, or bytes.

    >>> byte_unit(20e3), byte_unit(0)
    ((1000.0, 'kB'), (1.0, 'B'))
    """
    return next((unit for unit in _BYTE_UNITS if amount >= unit[0]), (1.0, "B"))


def byte_rate(bytes_per_s: float) -> str:
    """Format a rate in bytes per second.

    >>> byte_rate(2_000_000.0)
    '2 MB/s'
    """
    return f"{bytes_shown(bytes_per_s)}/s"


def shortest(value: float, units: Mapping[str, float]) -> str:
    """Return the shortest text with a unit that means exactly this value.

    >>> shortest(5400.0, DURATIONS), shortest(200e3, BIT_AND_BYTE_RATES)
    ('1.5h', '200kB')
    """
    ways = ((f"{value / size:.15g}", unit) for unit, size in units.items())
    exact = (number + unit for number, unit in ways if float(number) * units[unit] == value)
    return min(exact, key=len, default=f"{value!r}")
