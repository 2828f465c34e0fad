"""Compilation with numba. Besides array_handles.py and kernel_files.py, only this file uses numba's flags, cache and intrinsics.

Rules of this file
- `_nrt=False`: kernels neither allocate nor count references. With reference counting, a helper that gets the
  frontier's arrays cost 100-650 ns per call in a prototype; without, 1-3 ns. The flag is undocumented, so the version
  of numba is pinned and tests/test_jit.py checks that the flag works.
- A *helper* is compiled into the kernels that call it and is never cached by itself. Its signature is explicit: without
  one, numba makes a specialisation per mixture of int32 and int64 arguments, and compilation takes twice as long.
- A *shared* function is for ranks what a helper is for kernels.
- A *kernel* is called from Python and kept on disk (kernel_files.py). numba's own cache notices edits of the kernel's own
  file only, not of the files of its helpers, and is bound to the path of the package.
- A *rank* is called by address, so that one compiled frontier serves every strategy. Passed as an argument, a rank
  would miss the cache in every process; as `types.FunctionType` it cost 59 us (prototype) each time it was passed from
  Python.
- Python passes a kernel the *address* of the frontier's arrays, not the arrays: array_handles.py.
- numba is extended by classes that our functions name, and never patched: Trapline is also a library, and its host may
  compile functions of its own in another thread.
- With NUMBA_DISABLE_JIT=1 everything here is plain Python.
"""

import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import FunctionType
from typing import Any, ClassVar, TypeVar

import numba
import numpy as np
from llvmlite import ir
from llvmlite.binding import Linkage
from numba import njit, types
from numba.core import cgutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.extending import intrinsic, register_jitable

from trapline.compiled.cache_folder import can_be_written, make, mark_used
from trapline.compiled.compile_workers import compile_workers, neighbours, process_count
from trapline.compiled.file_lock import alone
from trapline.compiled.kernel_files import CACHE, IDENTITY, KernelCache
from trapline.compiled.sources import callees, reached
from trapline.errors import ConfigError, nearest
from trapline.progress import ProgressCallback

Function = TypeVar("Function", bound=Callable[..., Any])

b1, f8, i8, void = types.boolean, types.float64, types.int64, types.void
type_of: Callable[[Any], Any] = numba.typeof
DISABLED = bool(numba.config.DISABLE_JIT)

_UNKNOWN_FIELD = re.compile(r"Unknown attribute '(\w+)'")  # numba's message
_COLOURS = re.compile(r"\x1b\[[\d;]*m")  # numba marks parts of its messages if colorama is installed
_FLAGS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
_helpers: list[tuple[Any, Any]] = []
_uncompiled: dict[FunctionType, tuple[Any, Any]] = {}  # the helpers among these that are not compiled yet
_kernels: list[tuple[Any, Any]] = []
_ranks: list[tuple[Any, Any]] = []  # those that are cached
_unready: list[tuple[Any, Any]] = []  # the kernels among these that are neither loaded nor compiled yet
_one_thread = threading.RLock()  # held while these change


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
    """Declare a compiled function with one signature that Python calls. It is loaded or compiled by `ready`, or by its first call."""

    def wrap(function: Function) -> Function:
        if DISABLED:
            return function
        dispatcher = njit(pipeline_class=_KernelCompiler, **_FLAGS)(function)
        dispatcher._cache = KernelCache(function)
        dispatcher._compile_for_args = partial(_first_call, dispatcher)
        _kernels.append((dispatcher, signature))
        _unready.append((dispatcher, signature))
        return dispatcher

    return wrap


def _first_call(dispatcher: Any, *_: Any) -> Any:
    """Return what numba shall call after a kernel was called that is not ready.

    This replaces numba's own compilation, which would be for the types of the arguments instead of for the kernel's signature.
    """
    ready(dispatcher)
    return dispatcher


def ready(
    *kernels: Any,
    within: Sequence[str] = (),
    ranks: Sequence["Rank"] = (),
    progress: ProgressCallback | None = None,
    waiting: Callable[[], None] = lambda: None,
) -> None:
    """Make kernels callable: load them from the cache, or compile and cache them.

    A kernel becomes ready by itself when it is first called. Call `ready` where that would take time at the wrong moment.
    `within`: names of packages, modules and single kernels, as far as they are imported. With neither, all kernels imported so far.
    `ranks`: ranks of Trapline to load or compile with them. Compilation takes as many processes as there are cores.
    `waiting` is called if we wait for another process that compiles into the same cache, so as not to compile everything twice.
    """
    if not _unready and not ranks:
        return
    with _one_thread:
        wanted = [each for each in _unready if _is_wanted(each[0], kernels, within)]
        wanted += dict.fromkeys(each for rank in ranks for each in rank.to_compile())
        mark_used(CACHE)
        with nullcontext() if _are_cached(wanted) else _alone(waiting):
            _load_or_compile_all(wanted, progress)


def _is_wanted(dispatcher: Any, kernels: Sequence[Any], within: Sequence[str]) -> bool:
    name = f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__name__}."
    return dispatcher in kernels or any(name.startswith(f"{part}.") for part in within) or not (kernels or within)


def _are_cached(kernels: list[tuple[Any, Any]]) -> bool:
    return all(dispatcher._cache.exists(signature, dispatcher.targetctx) for dispatcher, signature in kernels)


def _alone(waiting: Callable[[], None]) -> AbstractContextManager[None]:
    return alone(CACHE / "compiling.lock", waiting) if make(CACHE) else nullcontext()


def _load_or_compile_all(functions: list[tuple[Any, Any]], progress: ProgressCallback | None) -> None:
    missing = [each for each in functions if not _are_cached([each])]
    report = _Report(missing, progress)
    processes = min(process_count(report.total), len(missing))
    if processes > 1 and can_be_written(CACHE):  # otherwise nothing that workers compile would arrive
        _compile_with_workers(missing, processes, report)
    for dispatcher, signature in functions:
        if not dispatcher.overloads:
            _load_or_compile(dispatcher, signature, report)


def _compile_with_workers(functions: list[tuple[Any, Any]], processes: int, report: Callable[[str], None]) -> None:
    """Compile a part of the functions, until they are all compiled: here, or by a worker into a file."""
    functions = [each for each in functions if each[0].py_func.__module__ != "__main__"]  # a worker cannot import that
    functions = [functions[number] for number in neighbours([dispatcher.py_func for dispatcher, _ in functions])]
    names = [_name(dispatcher) for dispatcher, _ in functions]
    with compile_workers(names, processes, IDENTITY, CACHE.parent, report) as own:
        for number in own:
            _load_or_compile(*functions[number], report)


def _load_or_compile(dispatcher: Any, signature: Any, report: Callable[[str], None]) -> None:
    if not dispatcher._cache.find(signature, dispatcher.targetctx):
        # All other helpers are left to the kernels that need them.
        for helper, of_helper in _callees_first(dispatcher.py_func, set()):
            report(_name(helper))
            _compile(helper, of_helper)
        report(_name(dispatcher))
    _compile(dispatcher, signature)
    if (dispatcher, signature) in _unready:
        del dispatcher._compile_for_args
        _unready.remove((dispatcher, signature))


def compile_to_file(dispatcher: Any, signature: Any, report: Callable[[str], None]) -> bool:
    """Compile a function for other processes, unless it is in the cache. Return whether it is there now."""
    _load_or_compile(dispatcher, signature, report)
    return _are_cached([(dispatcher, signature)])


def declared_functions() -> dict[str, tuple[Any, Any]]:
    """Return all kernels and cached ranks that were imported so far, by their names as `ready` gives them to workers."""
    return {_name(dispatcher): (dispatcher, signature) for dispatcher, signature in (*_kernels, *_ranks)}


def _name(dispatcher: Any) -> str:
    return f"{dispatcher.py_func.__module__}:{dispatcher.py_func.__qualname__}"


class _Report:
    """Reports each function before it is compiled, in this or another process: how many were, how many there are, and its name."""

    def __init__(self, missing: list[tuple[Any, Any]], progress: ProgressCallback | None) -> None:
        self._progress = progress
        self._begun: set[str] = set()  # several processes compile some helpers
        functions = [dispatcher.py_func for dispatcher, _ in missing]
        helpers = {helper for function in functions for helper in reached(function) if helper in _uncompiled}
        self.total = len(functions) + len(helpers)

    def __call__(self, name: str) -> None:
        if name in self._begun:
            return
        done = len(self._begun)
        self._begun.add(name)
        self.total = max(self.total, done + 1)  # a damaged file is found only when it is loaded
        if self._progress is not None:
            self._progress(done, self.total, name.rpartition(":")[2])


def _callees_first(function: FunctionType, seen: set[FunctionType]) -> Iterator[tuple[Any, Any]]:
    # A caller compiled first would compile its callees for the types it happens to pass, in addition to their own signatures.
    for callee in callees(function):
        if callee not in seen:
            seen.add(callee)
            yield from _callees_first(callee, seen)
            if callee in _uncompiled:
                yield _uncompiled.pop(callee)


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

    def __init__(
        self, function: Callable[..., float], signature: Any, cached: bool, fields: Sequence[str] = (), guide: str = ""
    ):
        """`cached`: it is a rank of Trapline, and not a user's. `fields`: what the function can read, and `guide`: where that is
        described, for the message about a field that does not exist."""
        self.function = function
        self._fields, self._guide = fields, guide
        self.signature = signature
        self._address: int | None = None
        self._is_cached = cached
        if not DISABLED:
            # Indices and divisions by zero are checked in a user's rank, so that it cannot crash the process.
            flags = _FLAGS if cached else {**_FLAGS, "boundscheck": True, "error_model": "python"}
            self._dispatcher = njit(**flags)(function)
            if cached:
                self._dispatcher._cache = KernelCache(function)
                _ranks.append((self._dispatcher, signature))

    def __call__(self, *arguments: Any) -> float:
        return self.function(*arguments)

    @property
    def address(self) -> int:
        if self._address is None:
            self._address = self._enter_table() if DISABLED else self._compile()
        return self._address

    @property
    def is_of_user(self) -> bool:
        return not self._is_cached

    def to_compile(self) -> Iterator[tuple[Any, Any]]:
        """Yield the function for `ready`, unless it is compiled, or not cached: such a function is a user's, and may be wrong."""
        if not DISABLED and self._is_cached and not self._dispatcher.overloads:
            yield self._dispatcher, self.signature

    def _enter_table(self) -> int:
        # numpy's numbers would give infinity, and not the error of compiled code.
        function = np.errstate(divide="raise")(self.function) if self.is_of_user else self.function
        self._table.append(function)
        return len(self._table) - 1

    def _compile(self) -> int:
        try:
            result = self._dispatcher.get_compile_result(self.signature)
        except Exception as error:  # numba's own errors, and others that its passes let through
            why = self._no_field(error) or _reason(error)
            raise ConfigError(f"rank function {self.function.__name__!r} does not compile: {why}") from error
        return int(result.library.get_pointer_to_function(result.fndesc.llvm_func_name))

    def _no_field(self, error: Exception) -> str:
        """Return the message about a field that does not exist, with the nearest one. "": the error is another one."""
        unknown = [str(error.args[0])] if isinstance(error, KeyError) else _UNKNOWN_FIELD.findall(str(error))
        if not unknown:
            return ""
        hint = nearest(unknown[0], self._fields)
        return f"there is no field {unknown[0]!r}; {hint if hint.startswith('did') else self._guide}"


def _reason(error: Exception) -> str:
    """Return the one line of numba's long message that says what is wrong."""
    if "NRT required" in str(error):  # NRT: numba's run time, which allocates
        return "a rank may not make lists, arrays or other objects"
    if "No conversion from none to float64" in str(error):
        return "a rank must return a number on every path, and this one has a path that returns none"
    if "No conversion from" in str(error) and "return_value" in str(error):
        return "a rank must return a number"
    if isinstance(error, KeyError):
        return f"there is no field {error}"
    lines = [line.strip() for line in _COLOURS.sub("", str(error)).splitlines()]
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
