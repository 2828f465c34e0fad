"""What all tests share: repeatable random examples, and the real graphs where they are present."""

from pathlib import Path

import pytest
from hypothesis import settings

# Examples are the same in every run, and compilation inside the first one is no reason to fail.
# To search further: pytest --hypothesis-profile=explore
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=2_000)
settings.load_profile("repeatable")

_SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real graphs beside the repository; not part of it."""
    if not _SHARED_DATA.is_dir():
        pytest.skip("the real graphs (../shared/data beside the repository) are not here")
    return _SHARED_DATA
