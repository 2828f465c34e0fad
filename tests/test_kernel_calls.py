"""How Python calls kernels: what their entries accept, convert and refuse, with and without numba in the process."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba.core import sigutils
from numba.core.registry import cpu_target

from trapline.compiled import numba_settings
from trapline.compiled.jit import DISABLED, Rank, b1, caller3, f8, i8, kernel, ready, type_of, void
from trapline.compiled.types import signature

compiled_only = pytest.mark.skipif(DISABLED, reason="NUMBA_DISABLE_JIT=1: nothing is compiled")

ROW = np.dtype([("number", "i8"), ("share", "f8")], align=True)
OTHER_ROW = np.dtype([("share", "f8"), ("number", "i8")], align=True)  # of the same size


class Inner(NamedTuple):
    rows: np.ndarray


class Outer(NamedTuple):
    numbers: np.ndarray
    inner: Inner


class Alike(NamedTuple):
    numbers: np.ndarray
    inner: Inner


OUTER = Outer(np.zeros((2, 3), np.int32), Inner(np.zeros(2, ROW)))


@kernel(f8(i8, f8, b1))
def of_numbers(whole: int, part: float, is_negative: bool) -> float:
    return -(whole + part) if is_negative else whole + part


@kernel("int64(int64[::1], uint8)")
def of_array(numbers: np.ndarray, added: int) -> int:
    total = 0
    for i in range(len(numbers)):
        total += numbers[i] + added
    return total


@kernel(i8(type_of(OUTER)))
def of_tuple(outer: Outer) -> int:
    last = outer.inner.rows[len(outer.inner.rows) - 1]
    return outer.numbers[1, 2] * 1000 + last.number + outer.numbers.size


@kernel(b1(i8))
def is_even(number: int) -> bool:
    return number % 2 == 0


@kernel(void(type_of(np.zeros(1))))
def doubled(values: np.ndarray) -> None:
    for i in range(len(values)):
        values[i] *= 2.0


@kernel(i8(i8))
def below_five(number: int) -> int:
    if number >= 5:
        raise ValueError("five or more")
    return number


THREE = f8(i8, i8, i8)
call = caller3(THREE)


@kernel(f8(i8, i8))
def of_rank(address: int, number: int) -> float:
    return call(address, number, 0, 0)


@pytest.fixture(autouse=True, scope="module")
def compiled() -> None:
    ready()


@compiled_only
def test_numbers_of_python_and_numpy_are_converted() -> None:
    assert of_numbers(3, 0.5, False) == 3.5
    assert of_numbers(np.int32(3), np.float64(0.5), True) == -3.5
    assert of_numbers(-(2**62), 1, 0) == -(2.0**62)
    assert of_numbers(-1, -1.0, False) == -2.0  # -1 is what Python's conversions return for an error, too
    assert is_even(-(2**63)) is True and is_even(7) is False


def test_arrays_are_read_and_written_in_place() -> None:
    assert of_array(np.arange(5), 2) == 20 and of_array(np.zeros(0, np.int64), 2) == 0
    values = np.arange(3.0)
    assert doubled(values) is None
    assert values.tolist() == [0.0, 2.0, 4.0]
    assert of_array(np.arange(3).view(np.longlong), 0) == 3  # the same type by another name


@compiled_only
def test_tuples_of_arrays_and_of_tuples_are_read() -> None:
    numbers, rows = np.arange(6, dtype=np.int32).reshape(2, 3), np.zeros(2, ROW)
    rows["number"] = 7, 8
    assert of_tuple(Outer(numbers, Inner(rows))) == 5014


def test_arrays_in_a_file_are_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "numbers.npy", np.arange(4))
    assert of_array(np.load(tmp_path / "numbers.npy", mmap_mode="r+"), 0) == 6


def read_only() -> np.ndarray:
    numbers = np.arange(4)
    numbers.setflags(write=False)
    return numbers


@compiled_only
@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (of_numbers, (1, 2.0)),
        (of_numbers, (1, 2.0, False, 3)),
        (of_numbers, (1.5, 2.0, False)),
        (of_numbers, ("1", 2.0, False)),
        (of_numbers, (1, "2", False)),
        (of_numbers, (1, None, False)),
        (of_array, ([1, 2], 0)),
        (of_array, (None, 0)),
        (of_array, (np.arange(4.0), 0)),
        (of_array, (np.arange(4, dtype=np.int32), 0)),
        (of_array, (np.arange(4, dtype=np.uint64), 0)),
        (of_array, (np.arange(4)[::2], 0)),
        (of_array, (np.zeros((2, 2), np.int64), 0)),
        (of_array, (read_only(), 0)),
        (of_tuple, (Alike(*OUTER),)),
        (of_tuple, (tuple(OUTER),)),
        (of_tuple, (tuple.__new__(Outer, ()),)),
        (of_tuple, (OUTER._replace(inner=Inner(np.zeros(2, OTHER_ROW))),)),
        (of_tuple, (OUTER._replace(numbers=np.zeros((3, 2), np.int32).T),)),
    ],
)
def test_other_arguments_are_refused(function: Any, arguments: tuple[Any, ...]) -> None:
    """Their memory would be read as something that it is not."""
    with pytest.raises(TypeError):
        function(*arguments)


@compiled_only
def test_an_error_names_the_argument() -> None:
    with pytest.raises(TypeError, match=r"of_tuple: argument 1: inner: rows is not an array of .* with 1 dimensions"):
        of_tuple(OUTER._replace(inner=Inner(np.zeros(2))))
    with pytest.raises(OverflowError):
        of_numbers(2**63, 1.0, False)


@compiled_only
def test_a_call_keeps_no_reference_to_its_arguments_or_results() -> None:
    numbers, before = np.arange(1000), sys.getrefcount(None)
    references = sys.getrefcount(numbers), sys.getrefcount(numbers.dtype)
    for _ in range(1000):
        of_array(numbers, 1)
        doubled(np.zeros(1))
        with pytest.raises(TypeError):
            of_array(numbers[::2], 1)
    assert (sys.getrefcount(numbers), sys.getrefcount(numbers.dtype)) == references
    assert abs(sys.getrefcount(None) - before) < 500


@compiled_only
def test_an_error_of_python_code_in_a_rank_is_raised() -> None:
    def in_python(a: int, b: int, c: int) -> float:
        with numba.objmode(answer="float64"):
            answer = 10 / a
        return answer

    rank = Rank(in_python, THREE, cached=False)
    assert of_rank(rank.address, 5) == 2.0
    with pytest.raises(ZeroDivisionError):
        of_rank(rank.address, 0)


_ENDS = """
from trapline.frontier import Frontier, Rules
from trapline.strategies import load_strategy
frontier = Frontier(load_strategy("breadth-first"), Rules(), 0)
frontier.add_sites(500, 0.0, list(range(500)))
frontier.add_pages([number % 500 for number in range(40_000)])
frontier.discover(list(range(40_000)), 0.0)
kept = [(number, str(number)) for number in range(40_000)]
"""


@compiled_only
def test_a_process_that_has_called_kernels_ends_in_order() -> None:
    """Python reads the definition of a function for as long as the function lives, which is until the process has ended."""
    for _ in range(3):
        assert subprocess.run([sys.executable, "-c", _ENDS], timeout=120).returncode == 0


@compiled_only
def test_an_error_of_a_kernel_keeps_no_memory() -> None:
    def blocks_after_errors() -> int:
        for _ in range(1000):
            with suppress(ValueError):
                below_five(5)
        return sys.getallocatedblocks()

    blocks_after_errors()
    assert blocks_after_errors() - blocks_after_errors() > -500


# Declarations and numba.


@pytest.mark.parametrize(
    "text",
    [
        "void(int32[::1], uint8[::1], boolean[::1])",
        "int64(uint8[::1], int64,boolean, int32[:,::1], uint8)",
        "float64()",
    ],
)
def test_a_signature_is_what_numba_reads(text: str) -> None:
    args, returned = sigutils.normalize_signature(text)
    assert (signature(text).numba_signature.args, signature(text).numba_signature.return_type) == (args, returned)


def test_types_are_equal_if_their_memory_is() -> None:
    assert type_of(np.zeros(1, ROW)) == type_of(np.zeros(7, ROW)) != type_of(np.zeros(1, OTHER_ROW))
    assert type_of(np.zeros(2)) != type_of(np.zeros(4)[::2]) and type_of(np.zeros(1)) != type_of(np.zeros((1, 1)))
    assert i8(i8) == i8(i8) != f8(i8) != f8(i8, i8)


@compiled_only
@pytest.mark.parametrize(
    "variables",
    [{}, {"NUMBA_CPU_NAME": "generic"}, {"NUMBA_ENABLE_AVX": "0"}, {"NUMBA_OPT": "max"}, {"NUMBA_CACHE_DIR": "x"}],
)
def test_settings_are_those_of_numba(variables: dict[str, str]) -> None:
    """Without numba they are assumed, and must be the same as with it."""
    code = (
        "import json, sys\n"
        "if sys.argv[1:]: import numba\n"
        "from trapline.compiled import kernel_files, numba_settings as own\n"
        "found = [own.is_disabled(), own.code_settings(), own.processor(), own.chooses_processor(), kernel_files.IDENTITY]\n"
        "print(json.dumps([found, 'numba' in sys.modules]))"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")} | variables
    (alone, has_numba), (beside, _) = (
        json.loads(subprocess.check_output([sys.executable, "-c", code, *words], env=environment))
        for words in ([], ["numba"])
    )
    assert alone == beside
    assert has_numba == bool(variables.keys() - {"NUMBA_CACHE_DIR"})


@compiled_only
def test_the_processor_is_that_for_which_numba_compiles() -> None:
    assert numba_settings.processor() == tuple(cpu_target.target_context.codegen().magic_tuple())
    assert numba.__version__.encode() in numba_settings.numba_version()
