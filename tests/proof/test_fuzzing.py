"""Fuzzing finds a reader that breaks its contract, and shows the input."""

from tests.proof.fuzzing import Reader, calls_of, fuzzed
from trapline.errors import ConfigError


def test_an_undocumented_exception_is_found_with_its_input() -> None:
    finding = fuzzed("x", [Reader("numbers", lambda data: _number(data), [b"12"], (ConfigError,))], 200)
    assert finding.holds is False
    assert "numbers: ValueError x " in finding.measured and "the first at " in finding.measured


def _number(data: bytes) -> int:
    if not data:
        raise ConfigError("empty")
    return int(data)


def test_a_documented_refusal_is_not_a_failure() -> None:
    assert fuzzed("x", [Reader("numbers", int, [b"12"], (ValueError,))], 200).holds


def test_too_many_calls_for_an_input_are_found() -> None:
    square = Reader(
        "square", lambda data: [abs(one) for one in data[:50] for _ in data[:50]], [b"x" * 50], calls=(9, 1)
    )
    finding = fuzzed("x", [square], 100)
    assert finding.holds is False and "square: TooMuchWork" in finding.measured
    assert calls_of(lambda: [abs(one) for one in range(10)]) >= 10


def test_a_finding_can_be_reproduced() -> None:
    seen: list[list[bytes]] = [[], []]
    for inputs in seen:
        fuzzed("x", [Reader("any", inputs.append, [b"abc"], words=[b"<a>"])], 50)
    assert seen[0] == seen[1] and len(set(seen[0])) > 20
