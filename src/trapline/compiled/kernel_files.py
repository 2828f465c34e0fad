"""Compiled functions as files, which later processes load instead of compiling.

There are two folders. The *cache* belongs to the user; every compiled function is written there (cache_folder.py). The
*prebuilt* folder is part of an installed wheel that carries compiled kernels (packaging/wheel.py); it is only read.

Stale machine code must never run. A file is loaded only if everything that it was made of is the same:
- the folder is named by the *identity*: a hash of all sources of compiled code (sources.py), of the versions of numba, llvmlite, numpy
  and Python, and of numba's settings. Paths are no part of it, so that clones and installations share the cache;
- the file is named by the function, its signature, the bytecode that this process has loaded (sources.py too) and the processor. A
  function outside the package is also named by its path and the content of its file;
- the file begins with a hash of all that and of the content.
A file that is missing, unreadable or damaged means that the function is compiled. Files are written under another name and renamed,
so a process that is killed leaves no half of a file.

A file contains the name of a function, a zero byte, and an object file with that function. machine_code.py loads it without numba.
"""

import hashlib
import importlib.util
import inspect
import json
import os
import pickle
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from trapline.compiled import numba_settings
from trapline.compiled.cache_folder import cache_folder, is_ours, make
from trapline.compiled.machine_code import load
from trapline.compiled.numba_settings import Processor
from trapline.compiled.sources import Texts, compiled_sources, loaded_code
from trapline.compiled.types import Signature

PROCESSOR_FILE = "processor.json"
_PACKAGE = Path(__file__).parent.parent
_PACKAGE_PREFIX = __name__.partition(".")[0] + "."
_HASH_BYTES = 32


def identity(package: Path) -> str:
    """Return the identity of the code that would be compiled from the sources of a package."""
    return _identity_of(compiled_sources(package))


def _identity_of(sources: Texts) -> str:
    digest = hashlib.sha256("\n".join(_versions()).encode())
    for file, text in sources.items():
        digest.update(b"\0" + file.encode() + b"\0" + hashlib.sha256(text).digest())
    return digest.hexdigest()[:20]


def _versions() -> Iterator[str]:
    yield f"numba {numba_settings.numba_version()!r}, llvmlite {numba_settings.llvmlite_version()}"
    yield f"numpy {'.'.join(np.__version__.split('.')[:2])}"  # as exact as numba distinguishes them
    # Machine code depends on the layout of Python's objects, which is the same in all versions of one bytecode.
    yield f"{sys.implementation.cache_tag} {sys.abiflags} {importlib.util.MAGIC_NUMBER.hex()}"
    yield f"{platform.system()} {platform.machine()} {sys.maxsize} {sys.byteorder}"
    yield from (f"{name} {value}" for name, value in numba_settings.code_settings().items())


_SOURCES = compiled_sources(_PACKAGE)
IDENTITY = _identity_of(_SOURCES)
CACHE = cache_folder(IDENTITY)


def _sources_are_unchanged() -> bool:
    try:
        return all((_PACKAGE / file).read_bytes() == text for file, text in _SOURCES.items())
    except OSError:
        return False


class KernelFile:
    """The files of one function: in the cache, and perhaps one that came with the package."""

    def __init__(self, function: Callable[..., Any], signature: Signature) -> None:
        self._name = f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")
        self._function: Any = function
        self._signature = signature

    @property
    def entry_name(self) -> str:
        """A name for the entry of the function, which no other function has."""
        return f"entry.{self._file(CACHE, numba_settings.processor())[0].stem}"

    def exists(self) -> bool:
        """Return whether there is a file, which may be damaged."""
        return any(file.exists() for file, _ in self._files())

    def load(self) -> int:
        """Load the machine code and return the address of its function; 0 if the function must be compiled."""
        for file, key in self._files():
            content = _read(file, key)
            if content is not None:
                name, _, code = content.partition(b"\0")
                return load(code, name.decode())
        return 0

    def save(self, name: str, code: bytes) -> None:
        """Write machine code that has a function of this name."""
        if not _sources_are_unchanged():
            return  # they were edited since this process started, and it may have imported some files after that
        if make(CACHE):
            _write(*self._file(CACHE, numba_settings.processor()), name.encode() + b"\0" + code)

    def _files(self) -> Iterator[tuple[Path, bytes]]:
        """Yield the files to try, with the keys that they must have: code for this very processor first."""
        own = numba_settings.processor()
        if is_ours(CACHE):
            yield self._file(CACHE, own)
        prebuilt = _prebuilt_processor(own)
        if prebuilt is not None:
            yield self._file(prebuilt_folder(_PACKAGE), prebuilt)

    def _file(self, folder: Path, processor: Processor) -> tuple[Path, bytes]:
        made_of = repr((IDENTITY, self._name, repr(self._signature), *processor)).encode()
        key = made_of + self._loaded_code() + self._own_source()
        number = hashlib.sha256(key).hexdigest()[:16]
        return folder / f"{self._name}-{number}.kernel", key

    def _loaded_code(self) -> bytes:
        cells = self._function.__closure__
        inner = pickle.dumps(tuple(cell.cell_contents for cell in cells)) if cells else b""
        return loaded_code(self._function) + inner

    def _own_source(self) -> bytes:
        """Return path and content of the file of a function outside the package, which the identity does not cover."""
        if self._function.__module__.startswith(_PACKAGE_PREFIX):
            return b""
        file = inspect.getfile(self._function)
        with suppress(OSError):  # a function that was typed in has no file
            return file.encode() + b"\0" + Path(file).read_bytes()
        return file.encode()


# ---- Kernels that came with the package.


def prebuilt_folder(package: Path, of: str = IDENTITY) -> Path:
    return package / "compiled" / "prebuilt" / of


@cache
def _prebuilt_processor(own: Processor) -> Processor | None:
    """Return the processor that the prebuilt kernels were compiled for; None if there are none that this processor can run."""
    if os.environ.get("TRAPLINE_PREBUILT") == "0" or numba_settings.chooses_processor():
        return None
    try:
        said = json.loads((prebuilt_folder(_PACKAGE) / PROCESSOR_FILE).read_text("utf-8"))
        built_for = (str(said["triple"]), str(said["name"]), str(said["features"]))
        needed = {f"+{feature}" for feature in said["needs"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return built_for if built_for[0] == own[0] and needed <= set(own[2].split(",")) else None


# ---- Files.


def _read(file: Path, key: bytes) -> bytes | None:
    """Return the content of a file; None if it cannot be read, or is not what was written under this key."""
    try:
        whole = file.read_bytes()
    except OSError:
        return None
    content = whole[_HASH_BYTES:]
    return content if whole[:_HASH_BYTES] == _hash(key, content) else None


def _write(file: Path, key: bytes, content: bytes) -> None:
    temporary = ""
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=file.parent)
        with open(descriptor, "wb") as opened:
            opened.write(_hash(key, content) + content)
        os.replace(temporary, file)
    except OSError:  # a full disk: this process has what it compiled, others will compile it
        with suppress(OSError):
            os.unlink(temporary)


def _hash(key: bytes, content: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(key).digest() + content).digest()
