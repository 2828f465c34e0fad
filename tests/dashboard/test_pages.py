"""The files of the pages: they cannot turn text into markup or code, and they fit each other."""

import re
from pathlib import Path

import pytest

from tests.dashboard.stand_in import HEADERS, STATIC

FILES = sorted(path for path in STATIC.rglob("*") if path.is_file())
SCRIPTS = [path for path in FILES if path.suffix == ".js"]
INDEX = (STATIC / "index.html").read_text()
# Each of these makes markup or code from text, or is refused by the Content-Security-Policy.
FORBIDDEN = {
    "markup from text": r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|srcdoc",
    "code from text": r"\beval\b|new Function|setTimeout\(\s*[\"'`]|javascript:",
    "a style attribute": r"\bstyle\s*=|setAttribute\(\s*[\"']style|[{,]\s*style:",
    "a listener as an attribute": r"\bon(?!e\b)[a-z]+\s*=",
    "another server": r"https?://(?!www\.w3\.org/2000/svg|example\.org)",
}


def name_of(path: Path) -> str:
    return path.relative_to(STATIC).as_posix()


@pytest.mark.parametrize("why", FORBIDDEN)
@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_file_contains(path: Path, why: str) -> None:
    assert re.findall(FORBIDDEN[why], path.read_text()) == []


def test_the_page_has_no_inline_script_or_style() -> None:
    assert re.findall(r"<script(?![^>]* src=)[^>]*>|<style", INDEX) == []
    assert "unsafe" not in HEADERS["Content-Security-Policy"]


def test_every_id_that_a_script_uses_is_in_the_page() -> None:
    used = {found for path in SCRIPTS for found in re.findall(r'byId\("([^"]+)"\)', path.read_text())}
    ids = re.findall(r'\bid="([^"]+)"', INDEX)
    assert len(used) > 10 and used <= set(ids)
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_every_import_exists_and_is_used(path: Path) -> None:
    imports = re.findall(r'^import (.+?) from "(.+?)";$', path.read_text(), re.MULTILINE)
    body = re.sub(r"^import .+$", "", path.read_text(), flags=re.MULTILINE)
    for names, other in imports:
        exporting = (path.parent / other).resolve().read_text()
        for name in re.findall(r"\w+", names.removeprefix("* as ")):
            assert re.search(rf"\b{name}\b", body), f"{name} is not used"
            is_exported = re.search(rf"^export (async )?(const|class|function) {name}\b", exporting, re.MULTILINE)
            assert is_exported or names.startswith("*"), f"{other} has no {name}"


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_every_script_says_what_lives_there(path: Path) -> None:
    assert path.read_text().startswith("// ")


def test_the_page_and_the_style_sheet_name_only_files_that_exist() -> None:
    named = set(re.findall(r'(?:src|href)="/static/([^"]+)"', INDEX)) - {"page.css"}
    assert named and all((STATIC / name).is_file() for name in named)
