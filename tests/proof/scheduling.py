"""The decision core against a slow oracle, on new random webs at every run."""

from collections.abc import Iterator

from tests.proof.section import Finding, Section, by_pytest

_METHOD = """
Random webs have shared addresses, failures, retries, expired leases and batches. Three programs crawl each of them: the compiled
frontier, the same code without compilation, and a slow oracle that shares no code with them (`tests/naive`). Every answer of every call
is compared, for each pair of a page rank and a site rank. The live crawler and the simulator crawl the same web in virtual time, and
their fetches are compared page by page.
"""


def run(full: bool) -> Iterator[Finding]:
    """Always at full size: `make test` runs the same tests on fixed webs."""
    # Only the fixed webs of `make test` are certain to show every feature (`reach`).
    webs = {"compiled": "300", "uncompiled": "200", "order": "650"}
    oracle, politeness = "tests/frontier/test_frontier.py", "tests/frontier/test_politeness.py"
    yield by_pytest(
        f"The compiled frontier gives the same answers as the oracle, and is polite, on {webs['compiled']} webs per pair of ranks.",
        *("-k", "not reach", oracle, politeness),
        env={"TRAPLINE_WEBS": webs["compiled"]},
    )
    yield by_pytest(
        f"The uncompiled frontier gives the same answers as the oracle, on {webs['uncompiled']} webs per pair of ranks.",
        *("-k", "answers", oracle),
        env={"TRAPLINE_WEBS": webs["uncompiled"], "NUMBA_DISABLE_JIT": "1"},
    )
    yield by_pytest(
        f"The live crawler and the simulator fetch pages in the same order, on {webs['order']} webs per strategy.",
        *("-k", "random_webs", "tests/crawler/test_crawler_vs_simulator.py"),
        env={"TRAPLINE_WEBS": webs["order"]},
    )


SECTION = Section("Scheduling", _METHOD, run)
