"""A crawl of a document tree from another source fetches the pages that `wget -r` finds under the same rules."""

import importlib
import shutil
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def document_tree(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Load the script that also prints the differences."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "bench" / "live"))
    module = importlib.import_module("document_tree")
    if shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin") is None:
        pytest.skip("nginx is not installed")
    if wanted := module.missing():
        pytest.skip(wanted)
    return module


def test_the_crawl_fetches_the_pages_that_wget_finds(document_tree: ModuleType, tmp_path: Path) -> None:
    [port], found = document_tree.nginx.free_ports([tree.address for tree in document_tree.TREES], 1), {}
    for name, command in (("wget", document_tree.by_wget), ("trapline", document_tree.by_trapline)):
        scratch = tmp_path / name
        scratch.mkdir()
        found[name] = document_tree.requested_urls(command(port, scratch), port, scratch)
    assert len(found["wget"]) > 500
    assert document_tree.differences(found["wget"], found["trapline"]) == {}
