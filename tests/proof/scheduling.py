"""The decision core against a slow oracle, on new random webs at every run."""

from collections.abc import Iterator

from tests.proof.section import Finding, Section, by_pytest

_METHOD = """
Random webs with shared addresses, failures, retries, expired leases and batches are crawled by the compiled frontier, by the same code
without compilation, and by a slow oracle that shares nothing with them (`tests/naive`). Every answer of every call is compared, for each
pair of a page rank and a site rank. The live crawler and the simulator crawl the same web in virtual time and are compared page by page.
"""


def run(full: bool) -> Iterator[Finding]:
    """Always at its whole size: `make test` runs the same tests on fixed webs."""
    # That random webs show every feature (`reach`) is certain only for the fixed ones of `make test`.
    webs = {"compiled": "300", "uncompiled": "200", "order": "650"}
    oracle, politeness = "tests/frontier/test_against_oracle.py", "tests/frontier/test_politeness.py"
    yield by_pytest(
        f"The compiled frontier answers as the oracle does, and is polite, on {webs['compiled']} webs per pair of ranks.",
        *("-k", "not reach", oracle, politeness),
        env={"TRAPLINE_WEBS": webs["compiled"]},
    )
    yield by_pytest(
        f"So does the uncompiled frontier, on {webs['uncompiled']} webs per pair.",
        *("-k", "answers", oracle),
        env={"TRAPLINE_WEBS": webs["uncompiled"], "NUMBA_DISABLE_JIT": "1"},
    )
    yield by_pytest(
        f"The live crawler and the simulator fetch in the same order, on {webs['order']} webs per strategy.",
        *("-k", "chance", "tests/crawl/test_same_order.py"),
        env={"TRAPLINE_WEBS": webs["order"]},
    )


SECTION = Section("Scheduling", _METHOD, run)
