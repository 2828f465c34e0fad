"""Compiles declared functions with numba. Imported only when a function must be compiled: see jit.py, which has the rules."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite.binding import Linkage
from numba import njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import register_jitable

import trapline.compiled.intrinsics  # noqa: F401  numba must know them before it compiles
from trapline.compiled.entry import add_entry
from trapline.compiled.types import Signature

FLAGS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}

_COLOURS = re.compile(r"\x1b\[[\d;]*m")  # numba marks parts of its messages if colorama is installed


class Compiled(NamedTuple):
    """A kernel or a rank in this process. `code` is empty if it contains addresses of this process."""

    name: str
    address: int
    code: bytes
    result: Any  # keeps the machine code


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


class _Library(JITCodeLibrary):  # type: ignore[misc, unused-ignore]
    """The code of a kernel or rank. numba links helpers so that other modules could use them, too; here they become private to the kernel.

    LLVM may then drop arguments that they do not use. docs/decisions/007 has the gain, from when the frontier's state
    was passed by value. `entry`: the only function of a kernel that is not private.
    """

    entry = ""

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            is_private = function.name != self.entry if self.entry else function.linkage == Linkage.linkonce_odr
            if is_private and not function.is_declaration:
                function.linkage = "internal"
        super()._optimize_final_module()


class _OwnCompiler(Compiler):  # type: ignore[misc, unused-ignore]
    """numba's compiler with our code library for one function. All other functions of the process use numba's own."""

    library_class: type[JITCodeLibrary] = _Library

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        # numba needs a new builtin for each function, as a key; it is never called.
        self.state.targetctx = self.state.targetctx.subtarget(get_executable=lambda *_: [].append)

    def compile_extra(self, func: Any) -> Any:
        library = self.library_class(self.state.targetctx.codegen(), func.__qualname__)
        library.enable_object_caching()  # as numba does with a library that it creates
        self.state.library = library
        return super().compile_extra(func)


class _HelperCompiler(_OwnCompiler):
    library_class = _HelperLibrary


def _kernel_compiler(entry_name: str) -> type[Compiler]:
    class KernelCompiler(_OwnCompiler):
        """Gives a kernel our entry in place of numba's wrapper."""

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            context = self.state.targetctx

            def add(library: Any, description: Any, *_: Any, **__: Any) -> None:
                library.entry = entry_name
                add_entry(context, library, description, entry_name)

            self.state.targetctx = context.subtarget(create_cpython_wrapper=add)

    return KernelCompiler


def helper_dispatcher(function: Callable[..., Any]) -> Any:
    """Return numba's object for a helper. Functions that call the helper find it by its `_numba_type_`."""
    return njit(pipeline_class=_HelperCompiler, no_cpython_wrapper=True, no_cfunc_wrapper=True, **FLAGS)(function)


def compile_helper(dispatcher: Any, signature: Signature) -> None:
    dispatcher.disable_compile(False)
    dispatcher.compile(signature.numba_signature)
    dispatcher.disable_compile()


def compile_kernel(function: Callable[..., Any], signature: Signature, entry_name: str) -> Compiled:
    """Compile a function that Python calls. The name of its entry is chosen by the caller, and unique."""
    own = _kernel_compiler(entry_name)
    result = _result(njit(pipeline_class=own, no_cfunc_wrapper=True, **FLAGS)(function), signature)
    return _compiled(result, entry_name)


def compile_rank(function: Callable[..., Any], signature: Signature) -> Compiled:
    """Compile a rank of Trapline, which compiled code calls by its address."""
    own = njit(pipeline_class=_OwnCompiler, no_cpython_wrapper=True, no_cfunc_wrapper=True, **FLAGS)(function)
    result = _result(own, signature)
    return _compiled(result, result.fndesc.llvm_func_name)


def compile_rank_of_user(function: Callable[..., Any], signature: Signature) -> Compiled:
    """Compile a user's rank. Indices and divisions by zero are checked, so that it cannot crash the process."""
    result = _result(njit(**{**FLAGS, "boundscheck": True, "error_model": "python"})(function), signature)
    name = result.fndesc.llvm_func_name
    return Compiled(name, result.library.get_pointer_to_function(name), b"", result)


def _result(dispatcher: Any, signature: Signature) -> Any:
    declared = signature.numba_signature
    dispatcher.compile(declared)
    return dispatcher.overloads[tuple(declared.args)]


def _compiled(result: Any, name: str) -> Compiled:
    library = result.library
    with global_compiler_lock:  # this generates the machine code
        address = library.get_pointer_to_function(name)
    is_of_this_process = library.has_dynamic_globals or result.lifted
    return Compiled(name, address, b"" if is_of_this_process else library._get_compiled_object(), result)


def register_shared(function: Callable[..., Any]) -> None:
    register_jitable(**FLAGS)(function)


def reason(error: Exception) -> str:
    """Return the one line of numba's long message that says what is wrong with a rank."""
    if "NRT required" in str(error):  # NRT: numba's run time, which allocates
        return "a rank may not make lists, arrays or other objects"
    if "No conversion from none to float64" in str(error):
        return "a rank must return a number on every path, and this one has a path that returns none"
    if "No conversion from" in str(error) and "return_value" in str(error):
        return "a rank must return a number"
    if isinstance(error, KeyError):
        return f"there is no field {error}"
    lines = [line.strip() for line in _COLOURS.sub("", str(error)).splitlines()]
    found = next((line for line in lines if line and not line.startswith("Failed in nopython mode")), "")
    return found if type(error).__module__.startswith("numba.") else f"{type(error).__name__}: {found}"
