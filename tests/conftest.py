"""Settings of all tests: the number of examples, the tests that only `make proof` runs, and the folder of real graphs
if it is present."""

from pathlib import Path

import pytest
from hypothesis import settings

from tests.effort import PROOF, examples

# `make test` uses the same examples in every run. The first example may take long, because it compiles.
# To search further: TRAPLINE_PROOF=1 pytest --hypothesis-profile=explore
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=examples(100), database=None)
settings.register_profile("proof", deadline=None, max_examples=examples(100), print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=2_000)
settings.load_profile("proof" if PROOF else "repeatable")

_SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests to `make proof`, unless they are named on the command line."""
    if PROOF or any("::" in argument for argument in config.args):
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of recorded graphs and traces beside the repository. Every test of them has a relative on data of its own."""
    if not _SHARED_DATA.is_dir():
        pytest.skip("the recorded graphs and traces (../shared/data beside the repository) are missing")
    return _SHARED_DATA
