"""Declares compiled functions, and makes them ready: loads them from files, or compiles them with numba.

numba is imported only when something must be compiled, because its import takes longer than all else that a small crawl does
(decision 62). compiler.py, entry.py and intrinsics.py import it, and use its flags and internals.

Rules of this file
- `_nrt=False`: kernels neither allocate nor count references. With reference counting, a helper that gets the
  frontier's arrays cost 100-650 ns per call in a prototype; without, 1-3 ns. The flag is undocumented, so the version
  of numba is pinned and tests/test_jit.py checks that the flag works.
- A *helper* is compiled into the kernels that call it and is never cached by itself. Its signature is explicit: without
  one, numba makes a specialisation per mixture of int32 and int64 arguments, and compilation takes twice as long.
- A *shared* function is for ranks what a helper is for kernels.
- A *kernel* is called from Python and kept on disk (kernel_files.py). numba's own cache notices edits of the kernel's own
  file only, not of the files of its helpers, and is bound to the path of the package. Python calls its entry (entry.py).
- A *rank* is called by address, so that one compiled frontier serves every strategy. Passed as an argument, a rank
  would miss the cache in every process; as `types.FunctionType` it cost 59 us (prototype) each time it was passed from
  Python.
- Python passes a kernel the *address* of the frontier's arrays, not the arrays: array_handles.py.
- Signatures are made of our own types (types.py). What compiled functions name, a helper or an intrinsic, gives numba its type when
  numba asks for it (`_numba_type_`).
- numba is extended by classes that our functions name, and never patched: Trapline is also a library, and its host may
  compile functions of its own in another thread.
- With NUMBA_DISABLE_JIT=1 everything here is plain Python.
"""

import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from types import FunctionType
from typing import Any, ClassVar, TypeVar

import numpy as np

from trapline.compiled import machine_code, numba_settings
from trapline.compiled.cache_folder import can_be_written, make, mark_used
from trapline.compiled.compile_workers import compile_workers, neighbours, process_count
from trapline.compiled.file_lock import alone
from trapline.compiled.kernel_files import CACHE, IDENTITY, KernelFile
from trapline.compiled.sources import callees, reached
from trapline.compiled.types import Signature, b1, f8, i8, signature, type_of, void
from trapline.errors import ConfigError, nearest
from trapline.progress import ProgressCallback

__all__ = [
    "DISABLED",
    "Intrinsic",
    "Rank",
    "b1",
    "caller3",
    "caller5",
    "f8",
    "helper",
    "i8",
    "kernel",
    "low_zeros",
    "prefetch",
    "ready",
    "shared",
    "type_of",
    "void",
    "word_at",
]

Function = TypeVar("Function", bound=Callable[..., Any])

DISABLED = numba_settings.is_disabled()

_UNKNOWN_FIELD = re.compile(r"Unknown attribute '(\w+)'")  # numba's message
_helpers: list["Helper"] = []
_uncompiled: dict[FunctionType, "Helper"] = {}  # the helpers among these that are not compiled yet
_shared: list[Callable[..., Any]] = []  # those that numba does not know yet
_kernels: list["Kernel"] = []
_ranks: list["Stored"] = []  # those that are cached
_unready: list["Kernel"] = []  # the kernels among these that are neither loaded nor compiled yet
_one_thread = threading.RLock()  # held while these change


class Helper:
    """A helper: its Python function and its signature."""

    def __init__(self, function: Any, declared: Signature) -> None:
        self.py_func = function
        self.signature = declared

    @cached_property
    def dispatcher(self) -> Any:
        from trapline.compiled.compiler import helper_dispatcher

        return helper_dispatcher(self.py_func)

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_

    def compile(self) -> None:
        from trapline.compiled.compiler import compile_helper

        _register_shared()
        compile_helper(self.dispatcher, self.signature)

    @property
    def specialisations(self) -> int:
        return len(self.dispatcher.signatures) if "dispatcher" in vars(self) else 0


class Stored:
    """A function that is kept in a file: a rank, or a kernel. `address`: where its machine code is, when it is ready; 0 before."""

    def __init__(self, function: Any, declared: Signature) -> None:
        self.py_func = function
        self.signature = declared
        self.address = 0
        self.was_loaded = False
        self.compiled: Any = None
        self.file = KernelFile(function, declared)

    def load(self) -> bool:
        """Load the machine code from its file. Return False if it must be compiled."""
        self.address = self.file.load()
        self.was_loaded = self.address != 0
        return self.was_loaded

    def compile(self) -> None:
        _register_shared()
        self.compiled = self._compile()  # kept, because the machine code lives as long
        self.address = self.compiled.address
        if self.compiled.code:
            self.file.save(self.compiled.name, self.compiled.code)

    def _compile(self) -> Any:
        from trapline.compiled.compiler import compile_rank

        return compile_rank(self.py_func, self.signature)


class Kernel(Stored):
    """A kernel. `call` is what Python calls; it first makes the kernel ready."""

    def __init__(self, function: Any, declared: Signature) -> None:
        super().__init__(function, declared)
        # A `partial` costs 25 ns per call; an object of ours with `__call__` would cost 140.
        self.call = partial(_first_call, self)
        self._say_what_it_is()

    def load(self) -> bool:
        return super().load() and self._connect()

    def compile(self) -> None:
        super().compile()
        self._connect()

    def _connect(self) -> bool:
        """Replace what `call` calls by the machine code."""
        builtin = machine_code.builtin(self.py_func.__name__, self.address, self.signature)
        self.call.__setstate__((builtin, (), {}, {}))  # type: ignore[attr-defined]
        self._say_what_it_is()
        return True

    def _say_what_it_is(self) -> None:
        self.call.__doc__ = self.py_func.__doc__
        self.call.__name__, self.call.__module__ = self.py_func.__name__, self.py_func.__module__  # type: ignore[attr-defined]
        self.call.py_func = self.py_func  # type: ignore[attr-defined]

    def _compile(self) -> Any:
        from trapline.compiled.compiler import compile_kernel

        return compile_kernel(self.py_func, self.signature, self.file.entry_name)


def _register_shared() -> None:
    from trapline.compiled.compiler import register_shared

    while _shared:
        register_shared(_shared.pop())


def helper(declared: Signature | str) -> Callable[[Function], Function]:
    """Declare a compiled function that only kernels and other helpers call."""

    def wrap(function: Function) -> Function:
        if DISABLED:
            return function
        made: Any = Helper(function, signature(declared))
        _helpers.append(made)
        _uncompiled[made.py_func] = made
        return made

    return wrap


def shared(function: Function) -> Function:
    """Declare a small function that ranks and helpers call. It is compiled into each of them, for the types that they pass.

    Python calls the uncompiled function.
    """
    if not DISABLED:
        _shared.append(function)
    return function


def kernel(declared: Signature | str) -> Callable[[Function], Function]:
    """Declare a compiled function with one signature that Python calls. It is loaded or compiled by `ready`, or by its first call."""

    def wrap(function: Function) -> Function:
        if DISABLED:
            return function
        made = Kernel(function, signature(declared))
        _kernels.append(made)
        _unready.append(made)
        return made.call  # type: ignore[return-value]

    return wrap


def _first_call(kernel: Kernel, *arguments: Any) -> Any:
    ready(kernel.call)
    return kernel.call(*arguments)


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
        wanted: list[Stored] = [each for each in _unready if _is_wanted(each, kernels, within)]
        wanted += dict.fromkeys(each for rank in ranks for each in rank.to_compile())
        mark_used(CACHE)
        with nullcontext() if _are_cached(wanted) else _alone(waiting):
            _load_or_compile_all(wanted, progress)


def _is_wanted(declared: Kernel, kernels: Sequence[Any], within: Sequence[str]) -> bool:
    name = f"{declared.py_func.__module__}.{declared.py_func.__name__}."
    return declared.call in kernels or any(name.startswith(f"{part}.") for part in within) or not (kernels or within)


def _are_cached(functions: Sequence[Stored]) -> bool:
    return all(each.file.exists() for each in functions)


def _alone(waiting: Callable[[], None]) -> AbstractContextManager[None]:
    return alone(CACHE / "compiling.lock", waiting) if make(CACHE) else nullcontext()


def _load_or_compile_all(functions: list[Stored], progress: ProgressCallback | None) -> None:
    missing = [each for each in functions if not _are_cached([each])]
    report = _Report(missing, progress)
    processes = min(process_count(report.total), len(missing))
    if processes > 1 and can_be_written(CACHE):  # otherwise nothing that workers compile would arrive
        _compile_with_workers(missing, processes, report)
    for each in functions:
        if not each.address:
            _load_or_compile(each, report)


def _compile_with_workers(functions: list[Stored], processes: int, report: Callable[[str], None]) -> None:
    """Compile a part of the functions, until they are all compiled: here, or by a worker into a file."""
    functions = [each for each in functions if each.py_func.__module__ != "__main__"]  # a worker cannot import that
    functions = [functions[number] for number in neighbours([each.py_func for each in functions])]
    names = [_name(each) for each in functions]
    with compile_workers(names, processes, IDENTITY, CACHE.parent, report) as own:
        for number in own:
            _load_or_compile(functions[number], report)


def _load_or_compile(function: Stored, report: Callable[[str], None]) -> None:
    if not function.load():
        # All other helpers are left to the kernels that need them.
        for helper in _callees_first(function.py_func, set()):
            report(_name(helper))
            helper.compile()
        report(_name(function))
        function.compile()
    if function in _unready:
        _unready.remove(function)


def compile_to_file(function: Stored, report: Callable[[str], None]) -> bool:
    """Compile a function for other processes, unless it is in the cache. Return whether it is there now."""
    _load_or_compile(function, report)
    return _are_cached([function])


def declared_functions() -> dict[str, Stored]:
    """Return all kernels and cached ranks that were imported so far, by their names as `ready` gives them to workers."""
    return {_name(each): each for each in (*_kernels, *_ranks)}


def _name(declared: Helper | Stored) -> str:
    return f"{declared.py_func.__module__}:{declared.py_func.__qualname__}"


class _Report:
    """Reports each function before it is compiled, in this or another process: how many were, how many there are, and its name."""

    def __init__(self, missing: list[Stored], progress: ProgressCallback | None) -> None:
        self._progress = progress
        self._begun: set[str] = set()  # several processes compile some helpers
        functions = [each.py_func for each in missing]
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


def _callees_first(function: FunctionType, seen: set[FunctionType]) -> Iterator[Helper]:
    # A caller compiled first would compile its callees for the types it happens to pass, in addition to their own signatures.
    for callee in callees(function):
        if callee not in seen:
            seen.add(callee)
            yield from _callees_first(callee, seen)
            if callee in _uncompiled:
                yield _uncompiled.pop(callee)


def specialisations() -> dict[str, int]:
    """Return the number of signatures that each helper and kernel was compiled for. More than one wastes compile time."""
    helpers = {each.py_func.__qualname__: each.specialisations for each in _helpers}
    return helpers | {each.py_func.__qualname__: int(each.address != 0) for each in _kernels}


# ---- Intrinsics: functions of compiled code for which we generate the instructions ourselves.


class Intrinsic:
    """An intrinsic, by its name in intrinsics.py, and what that needs to make it."""

    def __init__(self, name: str, *arguments: Any) -> None:
        self._name, self._arguments = name, arguments

    @cached_property
    def _numba_type_(self) -> Any:
        from numba.core.registry import cpu_target

        from trapline.compiled import intrinsics

        # Kept, because numba keeps only a weak reference.
        self._made = getattr(intrinsics, self._name)(*self._arguments)
        cpu_target.typing_context.refresh()
        return cpu_target.typing_context.resolve_value_type(self._made)


# ---- Ranks: compiled functions that are called by address.


class Rank:
    """A strategy's function, compiled for one signature, with an address that kernels can call.

    `page_rank` and `site_rank` in frontier/ranking.py create ranks. A rank lives as long as its process.
    """

    _table: ClassVar[list[Callable[..., float]]] = []  # with JIT disabled, an address is an index into this list

    def __init__(
        self,
        function: Callable[..., float],
        signature: Signature,
        cached: bool,
        fields: Sequence[str] = (),
        guide: str = "",
    ):
        """`cached`: it is a rank of Trapline, and not a user's. `fields`: what the function can read, and `guide`: where that is
        described, for the message about a field that does not exist."""
        self.function = function
        self._fields, self._guide = fields, guide
        self.signature = signature
        self._address: int | None = None
        self._is_cached = cached
        self._compiled: Any = None
        if cached and not DISABLED:
            self.stored = Stored(function, signature)
            _ranks.append(self.stored)

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

    def to_compile(self) -> Iterator[Stored]:
        """Yield the function for `ready`, unless it is compiled, or not cached: such a function is a user's, and may be wrong."""
        if not DISABLED and self._is_cached and not self.stored.address:
            yield self.stored

    def _enter_table(self) -> int:
        # numpy's numbers would give infinity, and not the error of compiled code.
        function = np.errstate(divide="raise")(self.function) if self.is_of_user else self.function
        self._table.append(function)
        return len(self._table) - 1

    def _compile(self) -> int:
        if self._is_cached:
            with _one_thread:
                if not self.stored.address:
                    _load_or_compile(self.stored, lambda name: None)
            return self.stored.address
        from trapline.compiled.compiler import compile_rank_of_user, reason

        _register_shared()
        try:
            self._compiled = compile_rank_of_user(self.function, self.signature)
        except Exception as error:  # numba's own errors, and others that its passes let through
            why = self._no_field(error) or reason(error)
            raise ConfigError(f"rank function {self.function.__name__!r} does not compile: {why}") from error
        return int(self._compiled.address)

    def _no_field(self, error: Exception) -> str:
        """Return the message about a field that does not exist, with the nearest one. "": the error is another one."""
        unknown = [str(error.args[0])] if isinstance(error, KeyError) else _UNKNOWN_FIELD.findall(str(error))
        if not unknown:
            return ""
        hint = nearest(unknown[0], self._fields)
        return f"there is no field {unknown[0]!r}; {hint if hint.startswith('did') else self._guide}"


def caller3(signature: Signature) -> Any:
    """Return the function `call(address, a, b, c)` for ranks of three arguments."""
    return _call_in_table if DISABLED else Intrinsic("call3", signature)


def caller5(signature: Signature) -> Any:
    """Return the function `call(address, a, b, c, d, e)` for ranks of five arguments."""
    return _call_in_table if DISABLED else Intrinsic("call5", signature)


def _call_in_table(address: int, *arguments: Any) -> float:
    return Rank._table[address](*arguments)


# ---- Instructions that Python does not have, and what takes their place in plain Python.


def _no_prefetch(array: Any, index: int) -> None:
    pass


def _word_of_bytes(array: Any, index: int) -> int:
    return int.from_bytes(array[index : index + 8].tobytes(), sys.byteorder, signed=True)


def _low_zeros_of_number(word: int) -> int:
    return (word & -word).bit_length() - 1


# prefetch(array, index): load `array[index]` (first axis) into the processor's cache, where it is needed a few links later.
prefetch: Any = _no_prefetch if DISABLED else Intrinsic("prefetch")
# word_at(array, index): the eight bytes from `array[index]` on as one number. The caller makes sure that there are eight.
word_at: Any = _word_of_bytes if DISABLED else Intrinsic("word_at")
# low_zeros(word): the number of zero bits below the lowest one bit of a word that is not zero.
low_zeros: Any = _low_zeros_of_number if DISABLED else Intrinsic("low_zeros")
