"""An axis that people can read: from 0 to a round number, with few ticks.

It knows numbers, and nothing of crawls or of the picture it is drawn in.
"""

import math
from typing import NamedTuple

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
