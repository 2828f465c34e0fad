"""Array handles: tuples of arrays that are passed to kernels, and between functions of a kernel, as one address.

numba determines the type of every argument at every call from Python: 2 to 7 us for a tuple of record arrays, 0.1 us
for an integer. Passed by value, a tuple of eighteen arrays is some 130 numbers, which are copied for every function
that is not inlined into its caller: replays of refresh took a fifth to three fifths more time. The tuple is therefore
kept in memory (`Pin`), a kernel gets its address, and each array is read from there where it is used (`Pinned`).
What numba must know of these types is in intrinsics.py.
"""

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from trapline.compiled.jit import DISABLED, Intrinsic
from trapline.compiled.types import Type, type_of

# numba's structure of an array: two owners (none here), number of items, bytes per item, address, shape, strides. For
# an array of one dimension: its length in words, and the places of its number of items and of its shape.
_WORDS, _ITEMS, _SHAPE = 7, 2, 5


def _words(value: Any) -> list[int]:
    """Return an array, or a tuple of arrays and tuples, as numba lays it out in memory."""
    if isinstance(value, tuple):
        return [word for item in value for word in _words(item)]
    return [0, 0, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides]


def handle_table(handles: Sequence[Any]) -> Any:
    """Return the handles of pins as an array from which a kernel can read them."""
    table = np.empty(len(handles), object if DISABLED else np.int64)
    for number, handle in enumerate(handles):
        table[number] = handle
    return table


class Pin:
    """A tuple of arrays in memory, in the form in which kernels can `recall` it by its handle while the pin lives.

    The pin does not keep the arrays alive. After replacing an array, the owner must make a new pin.
    """

    __slots__ = ("handle", "words")

    def __init__(self, value: tuple[Any, ...]) -> None:
        self.words = np.array([] if DISABLED else _words(value), np.int64)
        self.handle: Any = value if DISABLED else self.words.ctypes.data

    def set_length(self, which: int, length: int) -> None:
        """Set the length of array number `which` that kernels see from the next call on. All arrays up to it have one dimension."""
        self.words[_WORDS * which + _ITEMS] = self.words[_WORDS * which + _SHAPE] = length


class Pinned(Type):
    """The type of a recalled tuple. A kernel can only read its arrays by their names."""

    @cached_property
    def numba_type(self) -> Any:
        from trapline.compiled.intrinsics import PinnedType

        content = hashlib.sha256(self.text.encode()).hexdigest()[:16]
        return PinnedType(type_of(self.example).numba_type, f"pinned {type(self.example).__name__} {content}")

    @cached_property
    def text(self) -> str:
        return f"pinned {super().text}"


def recaller(pinned: Pinned) -> Any:
    """Return the function `recall(handle)`, which gives the tuple that is pinned there."""
    return (lambda value: value) if DISABLED else Intrinsic("recall", pinned)


def narrower(wide: Pinned, narrow: Pinned) -> Any:
    """Return the function `view(recalled)`, which gives the first arrays of a wide tuple as the narrow tuple."""
    count = len(narrow.types)
    if (wide.fields[:count], wide.types[:count]) != (narrow.fields, narrow.types):
        raise TypeError(f"{wide} does not begin as {narrow}")
    return (lambda value: type(narrow.example)(*value[:count])) if DISABLED else Intrinsic("view", wide, narrow)
