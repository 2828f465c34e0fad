"""Intrinsics: functions of compiled code for which we generate the instructions ourselves, and the type of recalled tuples.

jit.py and array_handles.py declare them; numba asks for them when it compiles a function that calls them. Each function here that
jit.py or array_handles.py names returns numba's object for one intrinsic.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, register_model

from trapline.compiled.types import Signature, Type

_i8, _void = types.int64, types.void

# ---- Recalled tuples: see array_handles.py.


class PinnedType(types.Type):  # type: ignore[misc, unused-ignore]
    """numba's type of a recalled tuple. A kernel can only read its arrays by their names."""

    def __init__(self, kind: Any, name: str) -> None:
        self.kind = kind
        super().__init__(name)


@register_model(PinnedType)
class _PinnedModel(models.PrimitiveModel):  # type: ignore[misc, unused-ignore]
    def __init__(self, manager: Any, pinned: Any) -> None:
        super().__init__(manager, pinned, ir.IntType(64))


@infer_getattr
class _PinnedArrays(AttributeTemplate):  # type: ignore[misc, unused-ignore]
    key = PinnedType

    def generic_resolve(self, pinned: Any, name: str) -> Any:
        fields = pinned.kind.fields
        return pinned.kind.types[fields.index(name)] if name in fields else None


@lower_getattr_generic(PinnedType)  # type: ignore[untyped-decorator, unused-ignore]
def _read_array(context: Any, builder: Any, pinned: Any, address: Any, name: str) -> Any:
    """Generate the code that reads one array of the tuple.

    The load is marked as invariant, so that LLVM need not repeat it after every write: arrays are only replaced between
    calls of kernels.
    """
    whole = builder.inttoptr(address, context.get_value_type(pinned.kind).as_pointer())
    array = builder.load(cgutils.gep_inbounds(builder, whole, 0, pinned.kind.fields.index(name)), align=8)
    array.set_metadata("invariant.load", builder.module.add_metadata([]))
    return array


def _as_it_is(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return values[0]


def recall(pinned: Type) -> Any:
    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def recall(typing: Any, handle: Any) -> Any:
        return pinned.numba_type(_i8), _as_it_is

    return recall


def view(wide: Type, narrow: Type) -> Any:
    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def view(typing: Any, recalled: Any) -> Any:
        return narrow.numba_type(wide.numba_type), _as_it_is

    return view


# ---- Calls of ranks by their addresses.


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


def call3(declared: Signature) -> Any:
    signature = declared.numba_signature

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def call(typing: Any, address: Any, a: Any, b: Any, c: Any) -> Any:
        return signature.return_type(_i8, *signature.args), _call_by_address(signature)

    return call


def call5(declared: Signature) -> Any:
    signature = declared.numba_signature

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def call(typing: Any, address: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
        return signature.return_type(_i8, *signature.args), _call_by_address(signature)

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


def prefetch() -> Any:
    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def prefetch(typing: Any, array: Any, index: Any) -> Any:
        return _void(array, _i8), _prefetch_code

    return prefetch


# ---- Words: eight bytes of an array at once, at any offset.


def _word_code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    kind = signature.args[0]
    array = context.make_array(kind)(context, builder, values[0])
    pointer = cgutils.get_item_pointer(context, builder, kind, array, [values[1]])
    return builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)


def _low_zeros_code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return builder.cttz(values[0], ir.Constant(ir.IntType(1), 1))


def word_at() -> Any:
    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def word_at(typing: Any, array: Any, index: Any) -> Any:
        return _i8(array, _i8), _word_code

    return word_at


def low_zeros() -> Any:
    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def low_zeros(typing: Any, word: Any) -> Any:
        return _i8(_i8), _low_zeros_code

    return low_zeros
