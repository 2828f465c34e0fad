"""An axis that people can read: from 0 to a round number, with few ticks and a unit that fits the size of the values.

It knows numbers, and nothing of crawls or of the picture it is drawn in.
"""

import math
from typing import NamedTuple

_TIME_UNITS = ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))
_BYTE_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
MOST_STEPS = 6


class Axis(NamedTuple):
    """Values are in `unit`; `top` is a tick or, if the data end at a hard limit, that limit."""

    label: str
    top: float
    unit: str = ""
    step: float = 1.0

    @property
    def ticks(self) -> list[float]:
        return [number * self.step for number in range(math.floor(self.top / self.step * (1 + 1e-9)) + 1)]


def axis(label: str, largest: float, unit: str = "", tight: bool = False) -> Axis:
    """An axis for values from 0 to `largest`. `tight`: it ends with the data instead of at the next tick.

    >>> axis("pages", 34_000.0).ticks
    [0.0, 10000.0, 20000.0, 30000.0, 40000.0]
    """
    largest = largest if largest > 0 else 1.0
    size = 10.0 ** math.floor(math.log10(largest / MOST_STEPS))
    step = next(size * one for one in (*_STEPS, 20.0) if size * one * MOST_STEPS >= largest * (1 - 1e-9))
    return Axis(label, largest if tight else step * math.ceil(largest / step * (1 - 1e-9)), unit, step)


def time_unit(seconds: float) -> tuple[float, str]:
    """The seconds of a unit in which so long a time is at least two, and its name.

    >>> time_unit(200_000.0), time_unit(90.0)
    ((86400.0, 'days'), (1.0, 'seconds'))
    """
    return next((unit for unit in _TIME_UNITS if seconds >= 2 * unit[0]), _TIME_UNITS[-1])


def number(value: float, unit: str = "") -> str:
    """A number for people, to about four digits.

    >>> number(12_345.6), number(0.25, "%"), number(3.0)
    ('12,346', '0.25 %', '3')
    """
    digits = 0 if value == 0 else max(0, 3 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{text} {unit}" if unit else text


def three_digits(value: float) -> str:
    """A number for a column of others, all to three digits or to whole ones.

    >>> three_digits(2.6), three_digits(0.97049), three_digits(41_216.0), three_digits(0.0)
    ('2.60', '0.970', '41,216', '0')
    """
    return f"{value:,.{2 - math.floor(math.log10(value)) if 1e-9 < value < 100 else 0}f}"


def byte_rate(bytes_per_s: float) -> str:
    """A bandwidth in the unit that fits it.

    >>> byte_rate(2_000_000.0), byte_rate(200.0)
    ('2 MB/s', '200 B/s')
    """
    size, name = next((unit for unit in _BYTE_UNITS if bytes_per_s >= unit[0]), (1.0, "B"))
    return number(bytes_per_s / size, f"{name}/s")
