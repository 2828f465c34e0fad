"""The documentation is true: its Python runs, its options and files exist, and all options are documented."""

import ast
import doctest
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.effort import slow
from trapline.cli import COMMANDS, trapline
from trapline.cli.testweb.freshness import freshness

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
    "export": ("how-to/export",),
    "demo": ("testweb",),
}


def options_of(command: str) -> set[str]:
    """The long name of each option, as in `--help`."""
    params = COMMANDS[command].load().params
    names = (name for param in params for name in (param.opts[-1], *param.secondary_opts))
    return {name for name in names if name.startswith("--")}


def options_named(pages: tuple[str, ...]) -> set[str]:
    return {name for page in pages for name in re.findall(r"--[a-z][a-z0-9-]*", (DOCS / f"{page}.md").read_text())}


@pytest.mark.parametrize("command", LIVE)
def test_every_option_of_a_live_command_is_in_its_page(command: str) -> None:
    assert options_of(command) - options_named(LIVE[command]) == set()


def test_every_option_in_the_pages_of_live_commands_exists() -> None:
    known = set().union(*map(options_of, LIVE))
    assert options_named(("crawl", "testweb")) - known == {"--help"}


def test_every_folder_has_a_docstring_and_a_place_in_the_architecture() -> None:
    said = (DOCS / "architecture.md").read_text()
    package = ROOT / "src" / "trapline"
    for init in package.glob("*/**/__init__.py"):
        folder = init.parent.relative_to(package).as_posix()
        assert len(ast.get_docstring(ast.parse(init.read_text())) or "") > 30, folder
        assert f"`{folder}/`" in said or "/" not in folder or folder.startswith("cli/"), folder
    named = set(re.findall(r"`((?:[a-z_0-9]+/)+(?:[a-z_0-9]+\.py)?)`", said)) - {"tests/proof/"}
    assert {one for one in named if not (package / one).exists()} == set()


def test_names_that_the_architecture_places_in_a_file_are_there() -> None:
    """A name "(in `file.py`)"."""
    placed = re.findall(r"`(\w+)` \(in `([\w/]+\.py)`\)", (DOCS / "architecture.md").read_text())
    assert placed
    for name, file in placed:
        texts = [path.read_text() for path in (ROOT / "src" / "trapline").rglob(file)]
        assert any(re.search(rf"^(?:class|def) {name}\b", text, re.M) for text in texts), (name, file)


def test_the_decision_on_the_store_has_the_sizes_of_the_code() -> None:
    from trapline.crawler.store import outbox
    from trapline.crawler.store.frames import GROUP_BYTES
    from trapline.crawler.store.settings import StoreSettings

    text = (DOCS / "decisions" / "018-store-process.md").read_text()
    settings = StoreSettings()
    for said in (
        f"{outbox.FETCHES}\nfetches or {outbox.BYTES >> 20} MiB of bodies",
        f"(up to {GROUP_BYTES / 1e6:g} MB:",
        f"{settings.backlog_bytes / 1e6:g} MB or {settings.backlog_batches} batches",
        f"latest {settings.revisits:,} bodies",
    ):
        assert said in text, said


@pytest.mark.parametrize("decision", sorted((DOCS / "decisions").glob("0*.md")), ids=lambda path: path.stem)
def test_a_decision_is_titled_by_its_number(decision: Path) -> None:
    assert decision.read_text().startswith(f"# {int(decision.stem[:3])}. ")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run(page: Path) -> None:
    assert doctest.testfile(str(page), module_relative=False).failed == 0


def test_the_example_of_a_strategy_crawls(tmp_path: Path) -> None:
    from trapline.graph import generate
    from trapline.simulator import simulate
    from trapline.strategies import load_strategy

    text = next(page for page in PAGES if page.stem == "add-a-strategy").read_text()
    file = tmp_path / "fewest_failures.py"
    file.write_text(text.split("```python\n", 1)[1].split("```", 1)[0])
    strategy = load_strategy(str(file))
    from trapline.frontier import Rules

    assert simulate(generate(200, 5, seed=1), strategy, Rules()).drained


def commands_of(page: Path) -> list[str]:
    """The command lines of a page: those after a $ in a console block, and those that begin with trapline in a block without a language."""
    found = []
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), re.M | re.S):
        mark = {"console": "$ ", "": ""}.get(language)
        if mark is not None:
            found += [line.removeprefix(mark) for line in block.splitlines() if line.startswith(f"{mark}trapline ")]
    return found


def parsed(words: list[str]) -> None:
    """Parse a command line as click would, without running it. A placeholder for a file need not exist."""
    context: click.Context = click.Context(trapline, info_name="trapline")
    command: click.Command = trapline
    while isinstance(command, click.Group):
        name, found, words = command.resolve_command(context, words)
        assert found is not None
        context, command = click.Context(found, info_name=name, parent=context), found
    if words[:1] == ["freshness"]:  # a separate command below `testweb`
        command = freshness
    known = {option for param in command.params for option in (*param.opts, *param.secondary_opts)} | {"--help"}
    given = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert given - known == set()


ALL_PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


@pytest.mark.parametrize("page", [page for page in ALL_PAGES if commands_of(page)], ids=lambda page: page.stem)
def test_every_command_of_a_page_exists_with_its_options(page: Path) -> None:
    for line in commands_of(page):
        words = shlex.split(line.replace("&", ""), comments=True)
        parsed(words[1:])


def test_the_readme_can_be_read_in_a_minute() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 100


@slow
def test_the_tutorial_runs(tmp_path: Path) -> None:
    """Every command and file of the tutorial, in its order."""
    text = (DOCS / "tutorial.md").read_text()
    (tmp_path / "quick_sites.py").write_text(re.search(r"^```python\n(.*?)^```", text, re.M | re.S)[1])  # type: ignore[index]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    served = None
    try:
        for line in commands_of(DOCS / "tutorial.md"):
            if line.endswith("&"):
                served = subprocess.Popen(
                    shlex.split(line.rstrip("& ")), cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
                )
                assert served.stdout is not None and served.stdout.readline()
                continue
            done = subprocess.run(
                line, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
            )
            assert done.returncode == 0, f"{line}\n{done.stderr}"
    finally:
        if served is not None:
            served.send_signal(signal.SIGTERM)
            served.wait(30)
    assert (tmp_path / "first" / "report.html").exists() and (tmp_path / "compared" / "compare.html").exists()


def test_the_results_of_papers_are_those_of_the_recorded_runs() -> None:
    from bench.paper_tables import pages

    for name, text in pages().items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"{name}: run bench/paper_tables.py"


def test_recorded_results_name_graphs_and_not_where_they_were() -> None:
    for file in (DOCS / "results").glob("*.json"):
        assert not [path for path in json.loads(file.read_text())["options"].get("graph") or [] if "/" in path], (
            file.name
        )
