"""How much a test run tries. `make test` tries fixed examples and skips slow tests; `make proof` tries everything, with
new examples.

`TRAPLINE_PROOF=1 pytest ...` does for single tests what `make proof` does.

"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest

Case = TypeVar("Case")

PROOF = os.environ.get("TRAPLINE_PROOF") == "1"
_QUICK_SHARE = 16 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 12  # uncompiled tests take many times as long
DATA = Path(os.environ["TRAPLINE_DATA"]) if os.environ.get("TRAPLINE_DATA") else None
"""The folder of recorded data, which is not part of the repository; CONTRIBUTING.md says what it holds."""

slow = pytest.mark.slow
"""A test that takes seconds and has a quicker relative in `make test`: real clusters, kills, groups of processes."""


def sample(cases: Sequence[Case], every: int) -> Sequence[Case]:
    """Return the cases of a test to try: all in a proof, otherwise one of `every`."""
    return cases if PROOF else cases[::every]


def examples(count: int) -> int:
    """The number of examples to try of a property: `count` in a proof, otherwise a twelfth, or a sixteenth without compilation."""
    return count if PROOF else max(2, count // _QUICK_SHARE)
