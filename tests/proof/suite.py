"""All tests, including those that are too slow for `make test`, with new random examples at every run."""

from collections.abc import Iterator

from tests.proof.section import Finding, Section, by_pytest

_METHOD = """
`make test` uses a fixed twelfth of the random examples, and omits slow tests that have a faster variant: clusters, kills, groups of
processes, and compilation from an empty cache. Here every test runs, with all random examples, which are new at each run. A failing
example is printed in a form that repeats it (`@reproduce_failure`).
"""


def run(full: bool) -> Iterator[Finding]:
    """Always at full size."""
    yield by_pytest(
        "Every test passes on new random examples, including the slow tests.",
        *("--numprocesses", "2", "--dist", "worksteal"),
    )
    yield by_pytest(
        "Every test of frontier, strategies and simulator passes without compilation, too.",
        *("--numprocesses", "2", "--dist", "worksteal", "tests/frontier", "tests/strategies", "tests/simulator"),
        env={"NUMBA_DISABLE_JIT": "1"},
    )


SECTION = Section("The whole test suite", _METHOD, run)
