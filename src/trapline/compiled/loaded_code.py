"""What a compiled function consists of in this process: the bytecode of all functions that it reaches, and their constants.

The sources on disk (sources.py) are not enough to name compiled code: a long-lived process can have imported a file before an edit,
and Python can run old bytecode of a file that was edited twice within a second. This module knows nothing about numba.
"""

import hashlib
from collections.abc import Iterator
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

_PACKAGE_PREFIX = __name__.partition(".")[0] + "."
_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype)


def named_in(function: FunctionType) -> Iterator[Any]:
    """Yield the objects that a function names: `name`, and `module.name`."""
    names = function.__code__.co_names
    for name in names:
        named = function.__globals__.get(name)
        yield named
        if isinstance(named, ModuleType):
            yield from (vars(named).get(attribute) for attribute in names)


def callees(function: FunctionType) -> Iterator[FunctionType]:
    """Yield the functions of Trapline and of its own module that a function names, as the Python functions that they were."""
    for named in named_in(function):
        callee = getattr(named, "py_func", named)
        if isinstance(callee, FunctionType) and _is_followed(callee.__module__, function.__module__):
            yield callee


def _is_followed(module: str, own: str) -> bool:
    return module.startswith(_PACKAGE_PREFIX) or module == own


@cache
def loaded_code(function: FunctionType) -> bytes:
    """Return a hash of a function as it is loaded, with all functions that it reaches."""
    hashes = sorted((each.__module__, each.__qualname__, _hash_of_one(each)) for each in reached(function))
    return hashlib.sha256(repr(hashes).encode()).digest()


def reached(function: FunctionType) -> set[FunctionType]:
    """Return a function and all functions that it calls, directly or indirectly."""
    found, waiting = {function}, [function]
    while waiting:
        new = set(_callees(waiting.pop())) - found
        found |= new
        waiting += new
    return found


@cache
def _callees(function: FunctionType) -> tuple[FunctionType, ...]:
    return tuple(callees(function))


@cache
def _hash_of_one(function: FunctionType) -> str:
    digest = hashlib.sha256()
    for part in (*_parts(function.__code__), *(part for named in named_in(function) for part in _parts(named))):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def _parts(value: Any) -> Iterator[bytes]:
    """Yield the content of code and of constants as bytes. Other objects have no part in compiled code, or are reached by name."""
    if isinstance(value, CodeType):
        yield value.co_code
        yield " ".join((*value.co_names, *value.co_varnames, *value.co_freevars)).encode()
        for constant in value.co_consts:
            yield from _parts(constant)
    elif isinstance(value, tuple):
        for item in value:
            yield from _parts(item)
    elif isinstance(value, frozenset):
        yield repr(sorted(map(repr, value))).encode()
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape}".encode() + value.tobytes()
    elif isinstance(value, _PLAIN):
        yield repr(value).encode()
