"""The examples of docs/how-to/export.md run on an export, and the page explains every column."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from tests.export.test_export import small
from tests.export.written_crawl import WrittenCrawl
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
    assert [language for language, _ in EXAMPLES].count("sql") == 5 and "python" in dict(EXAMPLES)


def example(words: str) -> str:
    """Return the query with these words."""
    (found,) = (code for language, code in EXAMPLES if language == "sql" and words in code)
    return found


def test_depths_are_the_shortest_ways_from_the_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """/c leads to /far by three links from the seed, a redirect by two. No link leads to /alone."""
    crawl, a = WrittenCrawl("http://a.test/"), "http://a.test"
    crawl.fetched(f"{a}/", b"<a href=/b>b</a><a href=/short>s</a>", [f"{a}/b", f"{a}/short"])
    crawl.fetched(f"{a}/b", b"<a href=/c>c</a><a href=/>home</a>", [f"{a}/c", f"{a}/"])
    crawl.fetched(f"{a}/c", b"<a href=/far>far</a><a href=/c>c</a>", [f"{a}/far", f"{a}/c"])
    crawl.fetched(f"{a}/short", b"", [f"{a}/far"], "Location: /far\r\nContent-Type: text/html", status=301)
    crawl.page(f"{a}/alone")
    crawl.write(tmp_path / "crawl")
    monkeypatch.chdir(tmp_path)
    assert run(["export", "crawl", "pages", "links", "--quiet"]) == 0
    found = [(depth, url.removeprefix(a)) for depth, url in duckdb.sql(example("recursive")).fetchall()]
    assert found == [(0, "/"), (1, "/b"), (1, "/short"), (2, "/c"), (2, "/far")]


def test_a_broken_link_has_one_row_and_a_page_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index links to /x often; two pages link to /gone, one of them twice with the same words."""
    crawl, a = WrittenCrawl("http://a.test/"), "http://a.test"
    crawl.fetched(f"{a}/", b"<a href=/x>x</a>" * 5 + b"<a href=/gone>old</a>" * 2, [f"{a}/x", f"{a}/gone"])
    crawl.fetched(f"{a}/x", b"<a href=/gone>old</a>", [f"{a}/gone"])
    crawl.refused(f"{a}/gone", 404)
    crawl.write(tmp_path / "crawl")
    monkeypatch.chdir(tmp_path)
    assert run(["export", "crawl", "links", "--quiet"]) == 0
    assert duckdb.sql(example("target_status >= 400")).fetchall() == [
        (404, f"{a}/gone", f"{a}/", "old"),
        (404, f"{a}/gone", f"{a}/x", "old"),
    ]
    assert duckdb.sql(example("count(distinct source)")).fetchall() == [(f"{a}/gone", 2, 3), (f"{a}/x", 1, 5)]


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
