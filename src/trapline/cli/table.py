"""Tables on a terminal: columns below each other, their units in the heading, the best value of each marked.

It knows text and numbers; which columns there are is said by whoever shows them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

BEST = "*"


@dataclass(frozen=True, slots=True)
class Column:
    """`better` is 1 if the larger value is the better one, -1 if the smaller is, 0 if neither."""

    heading: tuple[str, ...]
    value: Callable[[Any], float | None]
    shown: Callable[[float], str]
    better: int = 0

    def cells(self, rows: Sequence[Any]) -> list[str]:
        values = [self.value(row) for row in rows]
        ranked = [self.better * value for value in values if value is not None]
        texts = ["-" if value is None else self.shown(value) for value in values]
        # Marked by what is shown: of two values that look the same, neither is better.
        best = {
            text
            for value, text in zip(values, texts, strict=True)
            if value is not None and self.better * value == max(ranked)
        }
        marks = self.better != 0 and len(set(texts)) > 1
        return [text + (BEST if text in best else " ") if marks else text for text in texts]


def compared(names: Sequence[str], rows: Sequence[Any], columns: Sequence[Column], first: str = "strategy") -> str:
    """A row for each name; a column none of whose rows has a value is left out."""
    columns = [column for column in columns if any(column.value(row) is not None for row in rows)]
    height = max(len(column.heading) for column in columns)
    body = [[*_padded((first,), height), *names]]
    for column in columns:
        body.append([*_padded(column.heading, height), *column.cells(rows)])
    return "\n".join(_lines(body))


def listed(values: dict[str, str]) -> str:
    """A name and a value a row."""
    width = max(map(len, values)) + 2
    return "\n".join(f"{name:{width}}{value}" for name, value in values.items())


def _padded(heading: tuple[str, ...], height: int) -> tuple[str, ...]:
    return ("",) * (height - len(heading)) + heading


def _lines(body: list[list[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in body]
    for cells in zip(*body, strict=True):
        name, *numbers = (f"{cell:{'>' if place else '<'}{widths[place]}}" for place, cell in enumerate(cells))
        yield " ".join((name, *numbers)).rstrip()
