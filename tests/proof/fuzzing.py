"""Fuzzing of readers: a mutator with a fixed seed changes valid examples, and a reader must read each input or refuse it as documented.

A finding names any other exception and shows the first such input as hex. `at` is the number of the input, from which it can be made
again. For some inputs the function calls are counted and compared with the limit of the reader.
"""

import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import NamedTuple

from tests.proof.section import Finding, say

FULL, SHORT = 1_000_000, 2_000  # inputs of a finding
_COUNTED = 100  # the calls of one input in this many are counted, which takes several times as long
_SHOWN = 200  # bytes of an input that a finding shows
_LONG_S = 10.0
_SEED = 20
_STUMBLES = (
    b"",
    b"\0",
    b"\xff",
    b"\xed\xa0\x80",
    b"1e999",
    b"NaN",
    b"-1",
    b"null",
    b"[" * 5_000,
    b"&amp;",
    b"%00",
    b"<!--",
    b"]]>",
)
_NUMBERS = (0, 1, 127, 128, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)


class Reader(NamedTuple):
    """A function that takes bytes from outside."""

    name: str
    read: Callable[[bytes], object]
    examples: Sequence[bytes]
    refusal: tuple[type[Exception], ...] = ()  # the exceptions that it may raise
    sealed: Callable[[bytes], bytes] = bytes  # makes a complete input from the changed part of it
    words: Sequence[bytes] = ()  # words of its format, inserted anywhere
    calls: tuple[int, int] | None = None  # limit of function calls, per input and per byte; None: not counted


class _Results:
    """The results of the inputs so far."""

    def __init__(self) -> None:
        self.inputs = self.read = 0
        self.slowest_s = self.seconds = self.most_calls = 0.0
        self.failures: Counter[str] = Counter()
        self.first: dict[str, str] = {}  # the first input of each kind of failure

    def try_one(self, reader: Reader, at: int) -> None:
        data = reader.sealed(changed(random.Random(f"{_SEED} {reader.name} {at}"), reader.examples, reader.words))
        self.inputs += 1
        worked = time.process_time()
        try:
            with _no_longer_than(_LONG_S):
                if reader.calls is not None and at % _COUNTED == 0:
                    self._count(reader, data)
                else:
                    reader.read(data)
            self.read += 1
        except reader.refusal:
            pass
        except Exception as error:
            self._fail(f"{reader.name}: {type(error).__name__}", at, data)
        took_s = time.process_time() - worked
        self.slowest_s = max(self.slowest_s, took_s)
        self.seconds += took_s

    def _count(self, reader: Reader, data: bytes) -> None:
        assert reader.calls is not None
        for_any, for_byte = reader.calls
        share = calls_of(lambda: reader.read(data)) / (for_any + for_byte * len(data))
        self.most_calls = max(self.most_calls, share)
        if share > 1.0:
            raise TooMuchWork

    def _fail(self, what: str, at: int, data: bytes) -> None:
        if what not in self.first:
            say(f"{what} (at {at}): {data.hex()}")
            cut = "..." if len(data) > _SHOWN else ""
            self.first[what] = f"the first at {at}: {data[:_SHOWN].hex()}{cut}"
        self.failures[what] += 1


class TooMuchWork(Exception):
    """A reader made more calls than its input allows."""


def fuzzed(title: str, readers: Sequence[Reader], inputs: int) -> Finding:
    """Fuzz the readers with `inputs` inputs in all."""
    results = _Results()
    for reader in readers:
        for example in reader.examples:
            reader.read(reader.sealed(example))  # loading on first use does not count
        for at in range(inputs // len(readers)):
            results.try_one(reader, at)
    measured = [
        f"{results.inputs:,} inputs to {len(readers)} readers, {results.read / results.inputs:.0%} of them accepted",
        f"{results.seconds / results.inputs * 1e6:.0f} us of processor time each, the slowest {results.slowest_s * 1e3:.0f} ms",
    ]
    if results.most_calls:
        measured.append(f"at most {results.most_calls:.0%} of the allowed function calls")
    measured += [f"{what} x {times}, {results.first[what]}" for what, times in results.failures.most_common(5)]
    return Finding(
        f"{title}: no input causes an undocumented exception or hangs.",
        "; ".join(measured),
        not results.failures,
    )


def calls_of(read: Callable[[], object]) -> int:
    """Return the number of function calls, in Python and in C."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        read()
    finally:
        sys.setprofile(None)
    return calls


@contextmanager
def _no_longer_than(seconds: float) -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


# ---- the mutator


def changed(chance: random.Random, examples: Sequence[bytes], words: Sequence[bytes] = ()) -> bytes:
    data = bytearray(chance.choice(examples))
    changes = (*_CHANGES, _word) if words else _CHANGES
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        change = chance.choice(changes)
        change(chance, data, words if change is _word else examples)
    return bytes(data)


def _flip(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _cut(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = chance.randrange(len(data) + 1)
    del data[at : at + chance.choice((1, 4, 64, len(data)))]


def _double(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at, size = chance.randrange(len(data) + 1), chance.choice((1, 8, 64))
    data[at:at] = data[at : at + size] * chance.choice((1, 2, 50))


def _exchange(chance: random.Random, data: bytearray, examples: Sequence[bytes]) -> None:
    other = chance.choice(examples)
    at, size = chance.randrange(len(data) + 1), chance.choice((4, 16, 256))
    data[at : at + size] = other[at : at + size]


def _number(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    size = chance.choice((1, 4, 8))
    at = chance.randrange(len(data) + 1)
    data[at : at + size] = (chance.choice(_NUMBERS) % 2 ** (8 * size)).to_bytes(size, chance.choice(("little", "big")))


def _stumble(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = chance.randrange(len(data) + 1)
    data[at : at + chance.choice((0, 1, 8))] = chance.choice(_STUMBLES)


def _word(chance: random.Random, data: bytearray, words: Sequence[bytes]) -> None:
    at = chance.randrange(len(data) + 1)
    data[at : at + chance.choice((0, 0, 8))] = chance.choice(words) * chance.choice((1, 1, 1, 200))


_CHANGES = (_flip, _cut, _double, _exchange, _number, _stumble)
