"""Loads machine code and makes it callable, without numba.

The code of a kernel has an *entry* (entry.py), a function in the form in which Python calls its own builtin functions. `builtin` makes
such a function of its address. The entry checks and converts the arguments. What it compares them with, and what raises the errors of
compiled code, are objects of this process; it finds them in `self`, a tuple.
"""

import ctypes
import pickle
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from llvmlite import binding as llvm

from trapline.compiled.types import Signature

_WITH_ARRAY_OF_ARGUMENTS = 0x0080  # METH_FASTCALL


class _Method(ctypes.Structure):
    """PyMethodDef of Python's C interface."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("description", ctypes.c_char_p),
    )


class _RaisedError(ctypes.Structure):
    """The first fields of numba's description of an error: a pickled tuple of class, arguments and place."""

    _fields_ = (("content", ctypes.c_void_p), ("size", ctypes.c_int))


_new_builtin = ctypes.pythonapi.PyCFunction_NewEx
_new_builtin.argtypes = (ctypes.POINTER(_Method), ctypes.py_object, ctypes.py_object)
_new_builtin.restype = ctypes.py_object


def builtin(name: str, address: int, signature: Signature) -> Any:
    """Return the function of Python whose entry is at this address."""
    # Python keeps only the address of the method, and reads it until the function is gone, also when the process ends. The function
    # therefore owns it, as the last of its constants.
    method = _Method(name.encode(), address, _WITH_ARRAY_OF_ARGUMENTS, None)
    return _new_builtin(ctypes.byref(method), (*constants(signature), method), None)


def constants(signature: Signature) -> Iterator[Any]:
    """Yield the objects that an entry needs, in the order in which `entry.py` asks for them."""
    yield from (_raise, np.ndarray, TypeError, None)
    for argument in signature.args:
        yield from _kinds(argument.example)


def _kinds(example: Any) -> Iterator[Any]:
    """Yield the type of each array's items, and the class of each tuple."""
    if isinstance(example, np.ndarray):
        yield example.dtype
    elif isinstance(example, tuple):
        yield type(example)
        for item in example:
            yield from _kinds(item)


def _raise(address: int) -> None:
    """Raise the error that compiled code describes at this address."""
    found = _RaisedError.from_address(address)
    error, arguments, _ = pickle.loads(ctypes.string_at(found.content, found.size))
    raise error(*(arguments or ()))


# ---- Machine code.


def load(code: bytes, name: str) -> int:
    """Load machine code and return the address of one of its functions; 0 if it has no function of this name."""
    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return int(engine.get_function_address(name))


@cache
def _engine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine()
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
