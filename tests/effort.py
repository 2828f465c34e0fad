"""How much a test run tries: `make test` tries fixed examples and leaves slow tests out; `make proof` tries everything on new examples.

`TRAPLINE_PROOF=1 pytest ...` does what `make proof` does, for single tests.
"""

import os

import pytest

PROOF = os.environ.get("TRAPLINE_PROOF") == "1"
_QUICK_SHARE = 5

slow = pytest.mark.slow
"""A test that takes seconds and has a quicker relative in `make test`: real clusters, kills, groups of processes."""


def examples(count: int) -> int:
    """How many examples of a property are tried: all of them in a proof, else a fifth."""
    return count if PROOF else max(2, count // _QUICK_SHARE)
