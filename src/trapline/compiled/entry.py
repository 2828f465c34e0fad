"""Generates the entry of a kernel: the function that Python calls, in the form of a builtin function (METH_FASTCALL).

    PyObject *entry(PyObject *self, PyObject *const *arguments, Py_ssize_t count)

The entry checks the types of the arguments, calls the kernel and returns its result as a Python object. numba generates such functions
too, but they work only after numba was imported, and check only the sizes of an array's items, because numba's dispatcher has determined
the types before; that takes longer than most kernels. `self` has the objects to compare with, and the function that raises the errors of
compiled code (machine_code.py: `constants`). Variables of Python's C interface are not used: numba gives their names another meaning.

The layouts of Python's objects are those of its stable C interface, and of numpy's. Their hashes are in the name of every file: versions
of Python and numpy (kernel_files.py).
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

_BYTE, _INT, _WORD = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_OBJECT = _BYTE.as_pointer()
_NULL = ir.Constant(_OBJECT, None)
# Sizes and places in Python's and numpy's objects, in bytes.
_HEAD = object.__basicsize__
_TYPE, _SIZE = _HEAD - 8, _HEAD  # the size: of a tuple
_ITEMS = tuple.__basicsize__
_DATA, _NDIM, _SHAPE, _STRIDES, _DTYPE, _FLAGS = (_HEAD + place for place in (0, 8, 16, 24, 40, 48))  # of an array
_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400  # numpy's flags
# The constants of every entry, before those of its arguments: machine_code.py.
_RAISE, _ARRAY_CLASS, _TYPE_ERROR, _NONE = range(4)


def add_entry(context: Any, library: Any, description: Any, name: str) -> None:
    """Add the entry of a compiled function to its library, under this name."""
    module = context.create_module("entry")
    kind = context.call_conv.get_function_type(description.restype, description.argtypes)
    kernel = ir.Function(module, kind, description.llvm_func_name)
    entry = ir.Function(module, ir.FunctionType(_OBJECT, (_OBJECT, _OBJECT.as_pointer(), _WORD)), name)
    _Entry(context, entry, description.qualname).generate(kernel, description.restype, description.argtypes)
    library.add_ir_module(module)


class _Entry:
    """The entry of one kernel while it is generated."""

    def __init__(self, context: Any, entry: Any, name: str) -> None:
        self._context = context
        self._module = entry.module
        self._self, self._arguments, self._count = entry.args
        self._builder = ir.IRBuilder(entry.append_basic_block())
        self._name = name
        self._constants = _NONE + 1

    def generate(self, kernel: Any, result: Any, kinds: Any) -> None:
        builder = self._builder
        self._check(
            builder.icmp_signed("==", self._count, _WORD(len(kinds))), f"{self._name} takes {len(kinds)} arguments"
        )
        values = [self._value(kind, self._argument(i), f"argument {i + 1}") for i, kind in enumerate(kinds)]
        status, answer = self._context.call_conv.call_function(builder, kernel, result, kinds, values)
        with builder.if_then(status.is_error, likely=False):
            with builder.if_then(
                status.is_python_exc
            ):  # raised already, by Python code within compiled code: `objmode`
                builder.ret(_NULL)
            place = builder.ptrtoint(status.excinfoptr, _WORD)
            number = self._call("PyLong_FromLongLong", _OBJECT, place)
            self._call("PyObject_CallOneArg", _OBJECT, self._constant(_RAISE), number)
            self._call("Py_DecRef", ir.VoidType(), number)
            builder.ret(_NULL)
        builder.ret(self._object(result, answer))

    def _argument(self, number: int) -> Any:
        return self._builder.load(self._builder.gep(self._arguments, [_WORD(number)]))

    # ---- From objects to values.

    def _value(self, kind: Any, found: Any, what: str) -> Any:
        if isinstance(kind, types.Array):
            return self._array(kind, found, what)
        if isinstance(kind, types.BaseNamedTuple):
            return self._tuple(kind, found, what)
        if kind == types.boolean:
            answer = self._checked(self._call("PyObject_IsTrue", _INT, found))
            return self._builder.trunc(answer, ir.IntType(1))
        if kind == types.float64:
            return self._checked(self._call("PyFloat_AsDouble", ir.DoubleType(), found))
        if isinstance(kind, types.Integer):
            number = self._checked(self._call("PyLong_AsLongLong", _WORD, found))
            width = self._context.get_value_type(kind)
            return number if width == _WORD else self._builder.trunc(number, width)
        raise NotImplementedError(f"{self._name}: {what} is of type {kind}, which Python cannot pass to a kernel")

    def _checked(self, answer: Any) -> Any:
        """Return an answer of Python's C interface: -1 can be an error."""
        builder = self._builder
        is_float = isinstance(answer.type, ir.DoubleType)
        minus_one = ir.Constant(answer.type, -1)
        perhaps = (
            builder.fcmp_ordered("==", answer, minus_one) if is_float else builder.icmp_signed("==", answer, minus_one)
        )
        with builder.if_then(perhaps, likely=False):
            raised = self._call("PyErr_Occurred", _OBJECT)
            with builder.if_then(cgutils.is_not_null(builder, raised)):
                builder.ret(_NULL)
        return answer

    def _tuple(self, kind: Any, found: Any, what: str) -> Any:
        builder, expected = self._builder, self._next_constant()
        is_right = builder.icmp_unsigned("==", self._load(found, _TYPE, _OBJECT), expected)
        text = self._no_match(what, f"a {kind.instance_class.__name__}")
        self._check(is_right, text)
        size = self._load(found, _SIZE, _WORD)  # `tuple.__new__` makes instances of the class with any number of items
        self._check(builder.icmp_signed("==", size, _WORD(len(kind.types))), text)
        values = [
            self._value(item, self._load(found, _ITEMS + 8 * number, _OBJECT), f"{what}: {field}")
            for number, (field, item) in enumerate(zip(kind.fields, kind.types, strict=True))
        ]
        return self._context.make_tuple(builder, kind, values)

    def _array(self, kind: Any, found: Any, what: str) -> Any:
        builder, expected = self._builder, self._next_constant()
        text = self._no_match(what, f"an array of {kind.dtype} with {kind.ndim} dimensions, in C order and writable")
        self._check_class(found, text)
        flags = _ALIGNED | (_WRITEABLE if kind.mutable else 0) | (_CONTIGUOUS if kind.layout == "C" else 0)
        own = builder.and_(self._load(found, _FLAGS, _INT), _INT(flags))
        self._check(builder.icmp_signed("==", own, _INT(flags)), text)
        self._check(builder.icmp_signed("==", self._load(found, _NDIM, _INT), _INT(kind.ndim)), text)
        self._check_dtype(self._load(found, _DTYPE, _OBJECT), expected, text)

        array = self._context.make_array(kind)(self._context, builder)
        shape, strides = (
            [self._of_axis(found, place, axis) for axis in range(kind.ndim)] for place in (_SHAPE, _STRIDES)
        )
        items = shape[0] if shape else _WORD(1)
        for length in shape[1:]:
            items = builder.mul(items, length)
        item_bytes = self._context.get_abi_sizeof(self._context.get_data_type(kind.dtype))
        array.data = builder.bitcast(self._load(found, _DATA, _OBJECT), array.data.type)
        array.nitems, array.itemsize = items, _WORD(item_bytes)
        array.shape = cgutils.pack_array(builder, shape, _WORD)
        array.strides = cgutils.pack_array(builder, strides, _WORD)
        array.meminfo = array.parent = _NULL
        return array._getvalue()

    def _of_axis(self, found: Any, place: int, axis: int) -> Any:
        return self._load(self._load(found, place, _OBJECT), 8 * axis, _WORD)

    def _check_class(self, found: Any, text: str) -> None:
        builder, of_arrays = self._builder, self._constant(_ARRAY_CLASS)
        own = self._load(found, _TYPE, _OBJECT)
        with builder.if_then(builder.icmp_unsigned("!=", own, of_arrays), likely=False):
            is_derived = self._call("PyType_IsSubtype", _INT, own, of_arrays)
            self._check(builder.icmp_signed("!=", is_derived, _INT(0)), text)

    def _check_dtype(self, own: Any, expected: Any, text: str) -> None:
        builder = self._builder
        with builder.if_then(builder.icmp_unsigned("!=", own, expected), likely=False):
            is_equal = self._call("PyObject_RichCompareBool", _INT, own, expected, _INT(2))  # Py_EQ
            self._check(builder.icmp_signed("==", is_equal, _INT(1)), text)

    # ---- From values to objects.

    def _object(self, kind: Any, value: Any) -> Any:
        if kind == types.none:
            none = self._constant(_NONE)
            self._call("Py_IncRef", ir.VoidType(), none)
            return none
        if kind == types.boolean:
            return self._call("PyBool_FromLong", _OBJECT, self._builder.zext(value, _WORD))
        if kind == types.float64:
            return self._call("PyFloat_FromDouble", _OBJECT, value)
        if kind == types.int64:
            return self._call("PyLong_FromLongLong", _OBJECT, value)
        raise NotImplementedError(f"{self._name} returns {kind}, which no kernel can")

    # ---- Pieces.

    def _no_match(self, what: str, wanted: str) -> str:
        return f"{self._name}: {what} is not {wanted}"

    def _check(self, condition: Any, text: str) -> None:
        """Raise a TypeError with this text unless the condition holds."""
        builder = self._builder
        with builder.if_then(builder.not_(condition), likely=False):
            message = self._context.insert_const_string(self._module, text)
            self._call("PyErr_SetString", ir.VoidType(), self._constant(_TYPE_ERROR), message)
            builder.ret(_NULL)

    def _next_constant(self) -> Any:
        self._constants += 1
        return self._constant(self._constants - 1)

    def _constant(self, number: int) -> Any:
        return self._load(self._self, _ITEMS + 8 * number, _OBJECT)

    def _load(self, base: Any, place: int, kind: Any) -> Any:
        address = self._builder.gep(base, [_WORD(place)])
        return self._builder.load(self._builder.bitcast(address, kind.as_pointer()))

    def _call(self, name: str, result: Any, *arguments: Any) -> Any:
        """Call a function of Python's C interface."""
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        return self._builder.call(cgutils.get_or_insert_function(self._module, kind, name), arguments)
