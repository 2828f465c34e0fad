"""All tests, those that `make test` leaves out as too slow among them, with new random examples at every run."""

from collections.abc import Iterator

from tests.proof.section import Finding, Section, by_pytest

_METHOD = """
`make test` tries a fixed fifth of the random examples and leaves out tests that take seconds and have a quicker relative: clusters, kills,
groups of processes, compilation from nothing. Here every test runs, with the whole number of examples, drawn anew. A failing example is
printed in a form that repeats it (`@reproduce_failure`).
"""


def run(full: bool) -> Iterator[Finding]:
    """Always at its whole size."""
    yield by_pytest(
        "Every test passes, the slow ones too, on new random examples.",
        *("--numprocesses", "2", "--dist", "worksteal"),
    )


SECTION = Section("The whole test suite", _METHOD, run)
