"""The examples of docs/how-to/export.md run on an export, and the page explains every column."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from tests.export.test_export import small
from trapline.cli import run
from trapline.export.tables import TABLES

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "export.md").read_text()
EXAMPLES = re.findall(r"```(sql|python)\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("crawls")
    crawl = small()
    crawl.fetched("http://a.test/about", b"<title>About</title>We crawl", [])
    crawl.write(base / "crawl")
    assert run(["export", str(base / "crawl"), "--quiet"]) == 0
    return base


@pytest.mark.parametrize(("language", "code"), EXAMPLES)
def test_the_examples_run(language: str, code: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    if language == "python":
        exec(code, {})
    else:
        assert duckdb.sql(code).fetchall()


def test_there_are_examples_of_both_programs() -> None:
    assert [language for language, _ in EXAMPLES].count("sql") == 4 and "python" in dict(EXAMPLES)


def test_the_query_of_the_database_runs(folder: Path) -> None:
    (query,) = re.findall(r'sqlite3 -readonly crawl/crawl.db "(.*)"', PAGE)
    with closing(sqlite3.connect(folder / "crawl" / "crawl.db")) as database:
        assert database.execute(query).fetchall() == [("http://a.test/", "http://a.test/gone")]


def test_parts_are_read_as_the_page_says(folder: Path) -> None:
    import pandas as pd

    out = folder / "parts"
    assert run(["export", str(folder / "crawl"), "links", "--rows-per-file", "2", "-o", str(out), "--quiet"]) == 0
    assert len(pd.read_parquet(out / "links")) == 6
    assert duckdb.sql(f"select count(*) from '{out}/links/*.parquet'").fetchall() == [(6,)]


@pytest.mark.parametrize("table", TABLES)
def test_every_column_is_explained(table: str) -> None:
    described = PAGE.split(f"**{table}**")[1].split("\n\n**")[0]
    for column in TABLES[table].columns:
        assert f"`{column}`" in described
