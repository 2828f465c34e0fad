"""Array handles: tuples of arrays that are passed to kernels, and between functions of a kernel, as one address.

numba determines the type of every argument at every call from Python: 2 to 7 us for a tuple of record arrays, 0.1 us
for an integer. Passed by value, a tuple of eighteen arrays is some 130 numbers, which are copied for every function
that is not inlined into its caller: replays of refresh took a fifth to three fifths more time. The tuple is therefore
kept in memory (`Pin`), a kernel gets its address, and each array is read from there where it is used (`Pinned`).
Besides jit.py, only this file uses the internals of numba.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, register_model

from trapline.compiled.jit import DISABLED, i8, type_of

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


class Pinned(types.Type):  # type: ignore[misc, unused-ignore]
    """The numba type of a recalled tuple. A kernel can only read its arrays by their names."""

    def __init__(self, example: tuple[Any, ...]) -> None:
        self.kind = type_of(example)
        content = hashlib.sha256(f"{self.kind.fields} {self.kind}".encode()).hexdigest()[:16]
        super().__init__(f"pinned {type(example).__name__} {content}")


@register_model(Pinned)
class _PinnedModel(models.PrimitiveModel):  # type: ignore[misc, unused-ignore]
    def __init__(self, manager: Any, pinned: Any) -> None:
        super().__init__(manager, pinned, ir.IntType(64))


@infer_getattr
class _PinnedArrays(AttributeTemplate):  # type: ignore[misc, unused-ignore]
    key = Pinned

    def generic_resolve(self, pinned: Any, name: str) -> Any:
        fields = pinned.kind.fields
        return pinned.kind.types[fields.index(name)] if name in fields else None


@lower_getattr_generic(Pinned)  # type: ignore[untyped-decorator, unused-ignore]
def _read_array(context: Any, builder: Any, pinned: Any, address: Any, name: str) -> Any:
    """Generate the code that reads one array of the tuple.

    The load is marked as invariant, so that LLVM need not repeat it after every write: arrays are only replaced between
    calls of kernels.
    """
    whole = builder.inttoptr(address, context.get_value_type(pinned.kind).as_pointer())
    array = builder.load(cgutils.gep_inbounds(builder, whole, 0, pinned.kind.fields.index(name)), align=8)
    array.set_metadata("invariant.load", builder.module.add_metadata([]))
    return array


def recaller(pinned: Pinned) -> Any:
    """Return the function `recall(handle)`, which gives the tuple that is pinned there."""
    if DISABLED:
        return lambda value: value

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def recall(typing: Any, handle: Any) -> Any:
        return pinned(i8), _as_it_is

    return recall


def narrower(wide: Pinned, narrow: Pinned) -> Any:
    """Return the function `view(recalled)`, which gives the first arrays of a wide tuple as the narrow tuple."""
    count = len(narrow.kind.types)
    if (wide.kind.fields[:count], wide.kind.types[:count]) != (narrow.kind.fields, narrow.kind.types):
        raise TypeError(f"{wide} does not begin as {narrow}")
    if DISABLED:
        return lambda value: narrow.kind.instance_class(*value[:count])

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def view(typing: Any, recalled: Any) -> Any:
        return narrow(wide), _as_it_is

    return view


def _as_it_is(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return values[0]
