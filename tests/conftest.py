"""Settings of all tests: the number of examples, the tests that only `make proof` runs, and the folder of recorded data
if there is one."""

from pathlib import Path

import pytest
from hypothesis import settings

from tests.effort import DATA, PROOF, examples

# `make test` uses the same examples in every run. The first example may take long, because it compiles.
# To search further: TRAPLINE_PROOF=1 pytest --hypothesis-profile=explore
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=examples(100), database=None)
settings.register_profile("proof", deadline=None, max_examples=examples(100), print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=2_000)
settings.load_profile("proof" if PROOF else "repeatable")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests to `make proof`, unless they are named on the command line."""
    if PROOF or any("::" in argument for argument in config.args):
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]


@pytest.fixture(scope="session")
def recorded_data() -> Path:
    """Return the folder of recorded graphs, traces and conformance suites. Every test of them has a relative on data of its own."""
    if DATA is None:
        pytest.skip("needs recorded data: set TRAPLINE_DATA to its folder (CONTRIBUTING.md)")
    return DATA
