"""Types and signatures of compiled functions, which are declared when a module is imported. Nothing here imports numba.

A type is an example of its values. It becomes numba's type when a function is compiled. A file of machine code is named by the text of
its signature (kernel_files.py), and entry.py and machine_code.py walk through a type by its items.
"""

import re
from collections.abc import Iterator
from functools import cache, cached_property
from typing import Any

import numpy as np

_EXAMPLES = {"void": None, "boolean": False, "int64": 0, "float64": 0.0}
_SIGNATURE = re.compile(r"(\w+)\((.*)\)")
_ARGUMENT = re.compile(r"(\w+)(\[[:,]*::1\])?")


class Type:
    """The type of an example: a number, an array, or a tuple of these. `is_item`: the type of one item of an array."""

    def __init__(self, example: Any, is_item: bool = False) -> None:
        self.example = example
        self.is_item = is_item

    @cached_property
    def numba_type(self) -> Any:
        from numba import typeof

        found = typeof(self.example)
        return found.dtype if self.is_item else found

    @property
    def dtype(self) -> "Type":
        """The type of the items of an array."""
        return Type(self.example, is_item=True)

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of a tuple's items."""
        return tuple(self.example._fields)

    @property
    def types(self) -> tuple["Type", ...]:
        """The types of a tuple's items."""
        return tuple(map(type_of, self.example))

    def __call__(self, *arguments: "Type") -> "Signature":
        """Return the signature of a function that returns this type."""
        return Signature(self, arguments)

    @cached_property
    def text(self) -> str:
        return f"item of {_text(self.example)}" if self.is_item else _text(self.example)

    def __repr__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


def _text(example: Any) -> str:
    if isinstance(example, np.ndarray):
        flags = example.flags
        return f"{_dtype_text(example.dtype)}[{example.ndim}, {flags.c_contiguous}, {flags.aligned}, {flags.writeable}]"
    if isinstance(example, tuple):
        return f"{type(example).__name__}{getattr(example, '_fields', '')}({', '.join(map(_text, example))})"
    return type(example).__name__


@cache
def _dtype_text(dtype: "np.dtype[Any]") -> str:
    return repr(dtype)


def type_of(example: Any) -> Type:
    """Return the type of a number, of an array, or of a tuple of these."""
    return Type(example)


b1, f8, i8, void = type_of(False), type_of(0.0), type_of(0), type_of(None)


class Signature:
    """The types of a function: what it returns, and its arguments."""

    def __init__(self, return_type: Type, args: tuple[Type, ...]) -> None:
        self.return_type = return_type
        self.args = args

    @cached_property
    def numba_signature(self) -> Any:
        return self.return_type.numba_type(*(kind.numba_type for kind in self.args))

    def __repr__(self) -> str:
        return f"{self.return_type}({', '.join(map(repr, self.args))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Signature) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


def signature(declared: Signature | str) -> Signature:
    """Return the signature of a text such as `float64(int64, int32[::1])`, in numba's notation; arrays are contiguous."""
    if isinstance(declared, Signature):
        return declared
    found = _SIGNATURE.fullmatch(declared)
    if found is None:
        raise ValueError(f"{declared}: not a signature")
    return _scalar(found[1])(*_arguments(found[2]))


def _arguments(text: str) -> Iterator[Type]:
    for name, brackets in _ARGUMENT.findall(text.replace(" ", "")):
        dimensions = brackets.count(",") + 1 if brackets else 0
        yield type_of(np.zeros((1,) * dimensions, _dtype(name))) if dimensions else _scalar(name)


def _scalar(name: str) -> Type:
    return type_of(_EXAMPLES[name] if name in _EXAMPLES else _dtype(name).type())


def _dtype(name: str) -> "np.dtype[Any]":
    return np.dtype(np.bool_ if name == "boolean" else name)
