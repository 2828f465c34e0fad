"""What compiled code is made of: the source files on disk, and the code that this process has loaded.

The files are those with compiled functions, and all that they import, directly or indirectly. A compiled function contains functions and
constants of other files, and numba notices no edit there. The name of the cache folder (kernel_files.py) is therefore a hash of these
files. They are read as text, because every process does this at its start, and parsing would be slow. This module knows nothing about
numba.
"""

import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

_COMPILES = re.compile(rb"@(?:jit\.)?(?:kernel|helper|shared|page_rank|site_rank|rule)\b")
_COMMENT = re.compile(rb"#.*")
_IMPORT = re.compile(rb"from (trapline[\w.]*) import (\([^)]*\)|.*)")
_WHOLE = re.compile(rb"import (trapline[\w.]*)")
_NAME = re.compile(r"([\w*]+)(?: as (\w+))?")

Texts = dict[str, bytes]  # the texts of all files by their path in the package
Wanted = tuple[str, str]  # a file, and a name that it re-exports; ALL: everything in it
ALL = "*"


def compiled_sources(package: Path) -> Texts:
    """Return the files that compiled code can be made of."""
    texts = {path.relative_to(package).as_posix(): path.read_bytes() for path in package.rglob("*.py")}
    waiting = [(file, ALL) for file, text in texts.items() if _COMPILES.search(text)]
    found = set(waiting)
    while waiting:
        new = set(_leads_to(*waiting.pop(), texts)) - found
        found |= new
        waiting += new
    return {file: texts[file] for file in sorted({file for file, _ in found})}


def _leads_to(file: str, name: str, texts: Texts) -> Iterator[Wanted]:
    for module, original, own in _imports(texts[file]):
        if name in (ALL, own):
            yield from _homes(module, original, texts)


def _homes(module: str, name: str, texts: Texts) -> Iterator[Wanted]:
    """Yield the files in which an imported name is looked up. A name that a package only re-exports does not import the whole package."""
    file, inner = _file(module, texts), _file(f"{module}.{name}", texts)
    if inner:
        yield inner, ALL
    if file:
        is_reexported = file.endswith("__init__.py") and name in (own for _, _, own in _imports(texts[file]))
        yield file, name if is_reexported or inner else ALL


@cache
def _imports(text: bytes) -> tuple[tuple[str, str, str], ...]:
    """Return all imports of Trapline in a file, also those in functions: the module, the name there, the name here."""
    return tuple(_each_import(text))


def _each_import(text: bytes) -> Iterator[tuple[str, str, str]]:
    for module, names in _IMPORT.findall(text):
        for name, own in _NAME.findall(_COMMENT.sub(b"", names).decode()):
            yield module.decode(), name, own or name
    for module in _WHOLE.findall(text):
        yield module.decode(), ALL, ALL


def _file(module: str, texts: Texts) -> str:
    """Return the file of a module; "" if there is none."""
    place = "/".join(module.split(".")[1:])
    return next((file for file in (f"{place}.py", f"{place}/__init__.py".lstrip("/")) if file in texts), "")


# ---- The code in this process: the bytecode of all functions that a function reaches, and their constants.
#
# The sources on disk are not enough to name compiled code: a long-lived process can have imported a file before an edit, and Python can
# run old bytecode of a file that was edited twice within a second.

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
