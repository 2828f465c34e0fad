"""What all tests share: how many examples are tried, which tests are left to `make proof`, and the real graphs where they are present."""

from pathlib import Path

import pytest
from hypothesis import settings

from tests.effort import PROOF, examples

# In `make test` the examples are the same in every run. Compilation inside the first one is no reason to fail.
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
    """The folder of real graphs beside the repository; not part of it."""
    if not _SHARED_DATA.is_dir():
        pytest.skip("the real graphs (../shared/data beside the repository) are not here")
    return _SHARED_DATA
