"""The documentation says what is so: its Python runs, its options and files exist, and all options are in it."""

import ast
import doctest
import re
from pathlib import Path

import pytest

from trapline.cli import COMMANDS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted((DOCS / "how-to").glob("*.md"))
# Where a user looks for the options of a command.
LIVE = {
    "crawl": ("crawl", "strategies"),
    "testweb": ("testweb",),
    "status": ("crawl",),
    "explain": ("crawl",),
    "report": ("crawl",),
    "verify": ("crawl-folder",),
    "demo": ("testweb",),
}


def options_of(command: str) -> set[str]:
    """The long name of each, as `--help` has it."""
    params = COMMANDS[command].load().params
    return {param.opts[-1] for param in params if param.opts[-1].startswith("--")}


def options_named(pages: tuple[str, ...]) -> set[str]:
    return {name for page in pages for name in re.findall(r"--[a-z][a-z0-9-]*", (DOCS / f"{page}.md").read_text())}


@pytest.mark.parametrize("command", LIVE)
def test_every_option_of_a_live_command_is_in_its_page(command: str) -> None:
    assert options_of(command) - options_named(LIVE[command]) == set()


def test_every_option_in_the_pages_of_live_commands_exists() -> None:
    known = set().union(*map(options_of, LIVE))
    assert options_named(("crawl", "testweb")) - known == {"--help"}


def test_every_folder_says_what_it_holds_and_has_its_place_in_the_architecture() -> None:
    said = (DOCS / "architecture.md").read_text()
    package = ROOT / "src" / "trapline"
    for init in package.glob("*/**/__init__.py"):
        folder = init.parent.relative_to(package).as_posix()
        assert len(ast.get_docstring(ast.parse(init.read_text())) or "") > 30, folder
        assert f"`{folder}/`" in said or "/" not in folder or folder.startswith("cli/"), folder
    named = set(re.findall(r"`((?:[a-z_0-9]+/)+(?:[a-z_0-9]+\.py)?)`", said)) - {"tests/proof/"}
    assert {one for one in named if not (package / one).exists()} == set()


def test_what_the_architecture_places_in_a_file_is_there() -> None:
    """A name "(in `file.py`)"."""
    placed = re.findall(r"`(\w+)` \(in `(\w+\.py)`\)", (DOCS / "architecture.md").read_text())
    assert placed
    for name, file in placed:
        texts = [path.read_text() for path in (ROOT / "src" / "trapline").rglob(file)]
        assert any(re.search(rf"^(?:class|def) {name}\b", text, re.M) for text in texts), (name, file)


def test_the_decision_on_the_store_has_the_sizes_of_the_code() -> None:
    from trapline.crawl.store import outbox
    from trapline.crawl.store.frames import GROUP_BYTES
    from trapline.crawl.store.settings import StoreSettings

    text = (DOCS / "decisions" / "018-store-process.md").read_text()
    settings = StoreSettings()
    for said in (
        f"{outbox.FETCHES}\nfetches or {outbox.BYTES >> 20} MiB of bodies",
        f"(up to {GROUP_BYTES / 1e6:g} MB:",
        f"{settings.backlog_bytes / 1e6:g} MB or {settings.backlog_batches} batches",
        f"latest {settings.revisits:,} bodies",
    ):
        assert said in text, said


@pytest.mark.parametrize("decision", sorted((DOCS / "decisions").glob("*.md")), ids=lambda path: path.stem)
def test_a_decision_is_titled_by_its_number(decision: Path) -> None:
    assert decision.read_text().startswith(f"# {int(decision.stem[:3])}. ")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_is_what_happens(page: Path) -> None:
    assert doctest.testfile(str(page), module_relative=False).failed == 0


def test_the_example_of_a_strategy_crawls(tmp_path: Path) -> None:
    from trapline.graph import generate
    from trapline.simulate import simulate
    from trapline.strategies import load_strategy

    text = next(page for page in PAGES if page.stem == "add-a-strategy").read_text()
    file = tmp_path / "fewest_failures.py"
    file.write_text(text.split("```python\n", 1)[1].split("```", 1)[0])
    strategy = load_strategy(str(file))
    from trapline.frontier import Rules

    assert simulate(generate(200, 5, seed=1), strategy, Rules()).drained
