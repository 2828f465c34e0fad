"""Compilation with numba. Besides array_handles.py, only this file uses numba's flags, cache and intrinsics.

Rules of this file
- `_nrt=False`: kernels neither allocate nor count references. With reference counting, a helper that gets the
  frontier's arrays cost 100-650 ns per call in a prototype; without, 1-3 ns. The flag is undocumented, so the version
  of numba is pinned and tests/test_jit.py checks that the flag works.
- A *helper* is compiled into the kernels that call it and is never cached by itself. Its signature is explicit: without
  one, numba makes a specialisation per mixture of int32 and int64 arguments, and compilation takes twice as long.
- A *shared* function is for ranks what a helper is for kernels.
- A *kernel* is called from Python and cached on disk. numba notices edits of the kernel's own file only, not of the
  files of its helpers, so the cache folder is named after a hash of all files that kernels can be made of (sources.py).
- A *rank* is called by address, so that one compiled frontier serves every strategy. Passed as an argument, a rank
  would miss the cache in every process; as `types.FunctionType` it cost 59 us (prototype) each time it was passed from
  Python.
- Python passes a kernel the *address* of the frontier's arrays, not the arrays: array_handles.py.
- numba is extended by classes that our functions name, and never patched: Trapline is also a library, and its host may
  compile functions of its own in another thread.
- With NUMBA_DISABLE_JIT=1 everything here is plain Python.
"""

import hashlib
import os
import platform
import re
import shutil
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, ClassVar, TypeVar

import numba
import numpy as np
from llvmlite import ir
from llvmlite.binding import Linkage
from numba import njit, types
from numba.core import cgutils
from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserProvidedCacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.extending import intrinsic, register_jitable

from trapline.compiled.file_lock import alone
from trapline.compiled.sources import compiled_sources
from trapline.errors import ConfigError
from trapline.progress import ProgressCallback

Function = TypeVar("Function", bound=Callable[..., Any])

b1, f8, i8, void = types.boolean, types.float64, types.int64, types.void
type_of: Callable[[Any], Any] = numba.typeof
DISABLED = bool(numba.config.DISABLE_JIT)

_FLAGS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
_PACKAGE = Path(__file__).parent.parent
_PACKAGE_PREFIX = __name__.partition(".")[0] + "."
_helpers: list[tuple[Any, Any]] = []
_uncompiled: dict[FunctionType, tuple[Any, Any]] = {}  # the helpers among these that are not compiled yet
_kernels: list[tuple[Any, Any]] = []
_compiled_helpers = 0
_ready_kernels = 0
_one_thread = threading.RLock()  # held while the two counters change


def cache_folder() -> Path:
    """Return the cache folder of compiled kernels. There is one per state of the sources, numba, Python and processor."""
    # The path of the package is hashed, too: numba's own index uses it, so another installation would find nothing there.
    place = f"{numba.__version__} {np.__version__} {sys.version} {platform.machine()} {_PACKAGE}"
    digest = hashlib.sha256(place.encode())
    for file, text in compiled_sources(_PACKAGE).items():
        digest.update(file.encode() + b"\0" + text)
    name = digest.hexdigest()[:20]
    chosen = _cache_root() / name
    return chosen if _is_ours(chosen) else _temporary() / name


def _cache_root() -> Path:
    chosen = os.environ.get("TRAPLINE_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "trapline"
    )
    try:
        Path(chosen).mkdir(parents=True, exist_ok=True)
        if os.access(chosen, os.W_OK):
            return Path(chosen)
    except OSError:
        pass  # with a home that cannot be written (a container, a service user), each process compiles, and nothing fails
    return _temporary()


def _temporary() -> Path:
    return Path(tempfile.mkdtemp(prefix="trapline-"))  # used by this process only


def _is_ours(folder: Path) -> bool:
    """Return whether only we can write into this folder, because numba runs what it finds in a cache.

    If the folder is ours, the permissions of other users are removed.
    """
    try:
        found = folder.lstat()  # does not follow a link of another user
        is_ours = found.st_uid == os.geteuid() and stat.S_ISDIR(found.st_mode)
        if is_ours and found.st_mode & 0o077:
            folder.chmod(0o700)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return is_ours


def _made(folder: Path) -> Path:
    """Create the folder and return it. Return a temporary one if another user created it first, or it cannot be created."""
    with suppress(OSError):  # another process of the same user may have created it first
        folder.mkdir(mode=0o700, parents=True)
    if folder.exists() and _is_ours(folder):
        return folder
    temporary = _temporary() / folder.name
    temporary.mkdir(mode=0o700)
    return temporary


_CACHE = cache_folder()
_CACHE_IS_NEW = not _CACHE.exists()  # checked now, because numba creates the folder with the first declared kernel
if _CACHE_IS_NEW and not DISABLED:
    _CACHE = _made(_CACHE)
_OWN_FOLDER = re.compile("[0-9a-f]{20}")
_DAY_S = 86_400.0
_UNUSED_S = 30 * _DAY_S  # every version of the sources leaves a folder of some megabytes
_MOST_OLD = 8  # folders that were not used for a day; a developer who edits the sources makes dozens in a week


def _use_cache() -> None:
    """Mark our cache folder as used. If it is new, remove old folders that were not used for long, or that are too many."""
    with suppress(OSError):  # a folder may belong to another user, or another process may remove it at the same time
        _CACHE.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.utime(_CACHE)
        for folder in _superfluous(_CACHE.parent, time.time()) if _CACHE_IS_NEW else ():
            shutil.rmtree(folder, ignore_errors=True)


def _superfluous(root: Path, now: float) -> list[Path]:
    """Return the folders to remove: those not used for a day, except the newest few; those not used for long, all of them."""
    unused_s = {folder: now - folder.stat().st_mtime for folder in root.iterdir() if _OWN_FOLDER.fullmatch(folder.name)}
    old = sorted((folder for folder in unused_s if unused_s[folder] > _DAY_S), key=unused_s.__getitem__)
    return [folder for place, folder in enumerate(old) if place >= _MOST_OLD or unused_s[folder] > _UNUSED_S]


class _HelperLibrary(JITCodeLibrary):  # type: ignore[misc, unused-ignore]
    """The code of a helper in LLVM's intermediate representation, which is linked into kernels and optimised there.

    numba would also optimise it and generate machine code for the helper itself. That takes two thirds of a cold start,
    and the machine code would never run.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class _KernelLibrary(JITCodeLibrary):  # type: ignore[misc, unused-ignore]
    """The code of a kernel. numba links helpers so that other modules could use them, too; here they become private to the kernel.

    LLVM may then drop arguments that they do not use. docs/decisions/007 has the gain, from when the frontier's state
    was passed by value.
    """

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.linkonce_odr:
                function.linkage = "internal"
        super()._optimize_final_module()


class _KernelCompiler(Compiler):  # type: ignore[misc, unused-ignore]
    """numba's compiler with our code library for one function. All other functions of the process use numba's own."""

    library_class: type[JITCodeLibrary] = _KernelLibrary

    def compile_extra(self, func: Any) -> Any:
        library = self.library_class(self.state.targetctx.codegen(), func.__qualname__)
        library.enable_object_caching()  # as numba does with a library that it creates
        self.state.library = library
        return super().compile_extra(func)


class _HelperCompiler(_KernelCompiler):
    library_class = _HelperLibrary

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        # numba needs a new builtin for each function, as a key; it is never called.
        self.state.targetctx = self.state.targetctx.subtarget(get_executable=lambda *_: [].append)


class _CacheLocator(UserProvidedCacheLocator):  # type: ignore[misc, unused-ignore]
    """Locates the cache of our functions in our folder. `numba.config.CACHE_DIR` is left to other users of numba in the process."""

    def __init__(self, function: Any, file: str) -> None:
        self._py_file = file
        self._lineno = function.__code__.co_firstlineno
        self._cache_path = str(_CACHE / self.get_suitable_cache_subpath(file))

    @classmethod
    def from_function(cls, function: Any, file: str) -> Any:
        return super(UserProvidedCacheLocator, cls).from_function(function, file)


class _CacheFiles(CompileResultCacheImpl):  # type: ignore[misc, unused-ignore]
    _locator_classes: ClassVar[list[Any]] = [_CacheLocator, *CompileResultCacheImpl._locator_classes]


class _Cache(FunctionCache):  # type: ignore[misc, unused-ignore]
    _impl_class = _CacheFiles


def helper(signature: Any) -> Callable[[Function], Function]:
    """Declare a compiled function that only kernels and other helpers call."""

    def wrap(function: Function) -> Function:
        if DISABLED:
            return function
        dispatcher = njit(pipeline_class=_HelperCompiler, no_cpython_wrapper=True, no_cfunc_wrapper=True, **_FLAGS)(
            function
        )
        _helpers.append((dispatcher, signature))
        _uncompiled[dispatcher.py_func] = dispatcher, signature
        return dispatcher

    return wrap


def shared(function: Function) -> Function:
    """Declare a small function that ranks and helpers call. It is compiled into each of them, for the types that they pass.

    Python calls the uncompiled function.
    """
    return function if DISABLED else register_jitable(**_FLAGS)(function)


def kernel(signature: Any) -> Callable[[Function], Function]:
    """Declare a compiled function with one signature that Python calls; `ready()` loads or compiles it."""

    def wrap(function: Function) -> Function:
        if DISABLED:
            return function
        dispatcher = njit(pipeline_class=_KernelCompiler, **_FLAGS)(function)
        dispatcher._cache = _Cache(function)
        _kernels.append((dispatcher, signature))
        return dispatcher

    return wrap


def ready(progress: ProgressCallback | None = None, waiting: Callable[[], None] = lambda: None) -> None:
    """Make every kernel imported so far callable: load it from the cache, or compile and cache it.

    `waiting` is called if we wait for another process that compiles into the same cache, so as not to compile everything twice.
    """
    if _ready_kernels == len(_kernels):
        return
    with _one_thread:
        _use_cache()
        is_cached = all(_marker(dispatcher).exists() for dispatcher, _ in _kernels[_ready_kernels:])
        with nullcontext() if is_cached else alone(_CACHE / "compiling.lock", waiting):
            _load_or_compile_all(progress)


def _marker(dispatcher: Any) -> Path:
    """Return the file whose existence says that a kernel is in the cache."""
    return _CACHE / f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__name__}.compiled"


def _load_or_compile_all(progress: ProgressCallback | None) -> None:
    global _ready_kernels
    while _ready_kernels < len(_kernels):
        dispatcher, signature = _kernels[_ready_kernels]
        marker = _marker(dispatcher)
        if not marker.exists():
            _compile_helpers_of(dispatcher, progress)
            _report(progress, _compiled_helpers + _ready_kernels, dispatcher)
        _load_or_compile(dispatcher, signature, progress)
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
        _ready_kernels += 1


def _load_or_compile(dispatcher: Any, signature: Any, progress: ProgressCallback | None) -> None:
    try:
        _compile(dispatcher, signature)
    except Exception:  # unpickling a damaged cache can raise anything
        _forget(dispatcher)
        _compile_helpers_of(dispatcher, progress)
        _compile(dispatcher, signature)


def _forget(dispatcher: Any) -> None:
    """Empty the cache of one function, and no more than that: another process may be filling the folder at this moment."""
    with suppress(OSError):
        Path(dispatcher._cache.cache_path).mkdir(parents=True, exist_ok=True)
        dispatcher._cache.flush()


def _report(progress: ProgressCallback | None, done: int, dispatcher: Any) -> None:
    if progress is not None:
        progress(done, len(_helpers) + len(_kernels), dispatcher.py_func.__name__)


def _compile_helpers_of(kernel: Any, progress: ProgressCallback | None) -> None:
    """Compile the helpers that a kernel needs and that are not compiled yet. All others are left to the kernels that need them."""
    global _compiled_helpers
    for dispatcher, signature in _callees_first(kernel.py_func, set()):
        _report(progress, _compiled_helpers + _ready_kernels, dispatcher)
        _compile(dispatcher, signature)
        _compiled_helpers += 1


def _callees_first(function: FunctionType, seen: set[FunctionType]) -> Iterator[tuple[Any, Any]]:
    # A caller compiled first would compile its callees for the types it happens to pass, in addition to their own signatures.
    for named in _named_in(function):
        callee = getattr(named, "py_func", named)
        if isinstance(callee, FunctionType) and callee.__module__.startswith(_PACKAGE_PREFIX) and callee not in seen:
            seen.add(callee)
            yield from _callees_first(callee, seen)
            if callee in _uncompiled:
                yield _uncompiled.pop(callee)


def _named_in(function: FunctionType) -> Iterator[Any]:
    """Yield the objects that a function names: `name`, and `module.name`."""
    names = function.__code__.co_names
    for name in names:
        named = function.__globals__.get(name)
        yield named
        if isinstance(named, ModuleType):
            yield from (vars(named).get(attribute) for attribute in names)


def _compile(dispatcher: Any, signature: Any) -> None:
    dispatcher.disable_compile(False)
    dispatcher.compile(signature)
    dispatcher.disable_compile()


def specialisations() -> dict[str, int]:
    """Return the number of signatures that each helper and kernel was compiled for. More than one wastes compile time."""
    return {d.py_func.__qualname__: len(d.signatures) for d, _ in _helpers + _kernels}


# ---- Ranks: compiled functions that are called by address.


class Rank:
    """A strategy's function, compiled for one signature, with an address that kernels can call.

    `page_rank` and `site_rank` in frontier/ranking.py create ranks. A rank lives as long as its process.
    """

    _table: ClassVar[list[Callable[..., float]]] = []  # with JIT disabled, an address is an index into this list

    def __init__(self, function: Callable[..., float], signature: Any, cached: bool):
        self.function = function
        self.signature = signature
        self._address: int | None = None
        self._cached = cached
        if not DISABLED:
            # Indices and divisions by zero are checked in a user's rank, so that it cannot crash the process.
            flags = _FLAGS if cached else {**_FLAGS, "boundscheck": True, "error_model": "python"}
            self._dispatcher = njit(**flags)(function)
            if cached:
                self._dispatcher._cache = _Cache(function)

    def __call__(self, *arguments: Any) -> float:
        return self.function(*arguments)

    @property
    def address(self) -> int:
        if self._address is None:
            self._address = self._enter_table() if DISABLED else self._compile()
        return self._address

    def _enter_table(self) -> int:
        self._table.append(self.function)
        return len(self._table) - 1

    def _compile(self) -> int:
        try:
            result = self._compile_result()
        except Exception as error:  # numba's own errors, and others that its passes let through
            raise ConfigError(f"rank function {self.function.__name__!r} does not compile: {_reason(error)}") from error
        return int(result.library.get_pointer_to_function(result.fndesc.llvm_func_name))

    def _compile_result(self) -> Any:
        try:
            return self._dispatcher.get_compile_result(self.signature)
        except Exception:  # a damaged cache, as in `_load_or_compile`
            if not self._cached:
                raise
            _forget(self._dispatcher)
            return self._dispatcher.get_compile_result(self.signature)


def _reason(error: Exception) -> str:
    """Return the one line of numba's long message that says what is wrong."""
    if "NRT required" in str(error):  # NRT: numba's run time, which allocates
        return "a rank may not make lists, arrays or other objects"
    lines = [line.strip() for line in str(error).splitlines()]
    reason = next((line for line in lines if line and not line.startswith("Failed in nopython mode")), "")
    return reason if type(error).__module__.startswith("numba.") else f"{type(error).__name__}: {reason}"


def _call_by_address(signature: Any) -> Callable[..., Any]:
    def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
        kind = context.call_conv.get_function_type(signature.return_type, signature.args)
        pointer = builder.inttoptr(values[0], kind.as_pointer())
        status, answer = context.call_conv.call_function(
            builder, pointer, signature.return_type, signature.args, values[1:]
        )
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return answer

    return generate


def caller3(signature: Any) -> Any:
    """Return the function `call(address, a, b, c)` for ranks of three arguments."""
    if DISABLED:
        return lambda address, *arguments: Rank._table[address](*arguments)

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def call(typing: Any, address: Any, a: Any, b: Any, c: Any) -> Any:
        return signature.return_type(i8, *signature.args), _call_by_address(signature)

    return call


def caller5(signature: Any) -> Any:
    """Return the function `call(address, a, b, c, d, e)` for ranks of five arguments."""
    if DISABLED:
        return lambda address, *arguments: Rank._table[address](*arguments)

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def call(typing: Any, address: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
        return signature.return_type(i8, *signature.args), _call_by_address(signature)

    return call


# ---- Prefetch: load a cache line that will be needed a few links later.


def _prefetch_code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    kind = signature.args[0]
    array = context.make_array(kind)(context, builder, values[0])
    pointer = cgutils.get_item_pointer(context, builder, kind, array, [values[1]])
    pointer = builder.bitcast(pointer, cgutils.voidptr_t)
    i32 = ir.IntType(32)
    ask = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, i32, i32, i32]), "llvm.prefetch.p0"
    )
    builder.call(ask, [pointer, i32(1), i32(3), i32(1)])  # arguments: for writing, keep in all caches, data cache
    return context.get_dummy_value()


if DISABLED:

    def prefetch(array: Any, index: int) -> None:
        """Do nothing: plain Python has no prefetch."""

else:

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def prefetch(typing: Any, array: Any, index: Any) -> Any:
        """Load `array[index]` (first axis) into the processor's cache."""
        return void(array, i8), _prefetch_code


# ---- Words: eight bytes of an array at once, at any offset.


def _word_code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    kind = signature.args[0]
    array = context.make_array(kind)(context, builder, values[0])
    pointer = cgutils.get_item_pointer(context, builder, kind, array, [values[1]])
    return builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)


def _low_zeros_code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return builder.cttz(values[0], ir.Constant(ir.IntType(1), 1))


if DISABLED:

    def word_at(array: Any, index: int) -> int:
        return int.from_bytes(array[index : index + 8].tobytes(), sys.byteorder, signed=True)

    def low_zeros(word: int) -> int:
        return (word & -word).bit_length() - 1

else:

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def word_at(typing: Any, array: Any, index: Any) -> Any:
        """Return the eight bytes from `array[index]` on as one number. The caller makes sure that there are eight."""
        return i8(array, i8), _word_code

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def low_zeros(typing: Any, word: Any) -> Any:
        """Return the number of zero bits below the lowest one bit of a word that is not zero."""
        return i8(i8), _low_zeros_code
