"""docs/signals.md explains every table and column of signals.db and every option of its commands, and its queries run."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from trapline.cli.refresh.accesses import accesses
from trapline.cli.refresh.serve import serve
from trapline.cli.refresh.subscribe import subscribe
from trapline.signals.inbox import Inbox

PAGE = (Path(__file__).parents[2] / "docs" / "signals.md").read_text()


@pytest.fixture
def database(tmp_path: Path) -> sqlite3.Connection:
    Inbox(tmp_path).close()
    return sqlite3.connect(tmp_path / "signals.db")


def test_every_table_and_column_is_explained(database: sqlite3.Connection) -> None:
    with closing(database):
        names = database.execute("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'")
        tables = [name for (name,) in names]
        assert len(tables) == 8
        for table in tables:
            assert f"**{table}**" in PAGE
            for (column,) in database.execute(f"select name from pragma_table_info('{table}')"):
                assert f"`{column}`" in PAGE, f"{table}.{column}"


@pytest.mark.parametrize("query", re.findall(r"(?m)^select .*$", PAGE))
def test_the_queries_run(database: sqlite3.Connection, query: str) -> None:
    with closing(database):
        assert database.execute(query).fetchall() == []


def test_the_page_names_exactly_the_existing_options() -> None:
    options = {
        param.opts[-1] for one in (serve, subscribe, accesses) for param in one.params if param.opts[-1][:2] == "--"
    }
    of_commands = re.sub(r"bench/\S+ --[a-z-]+", "", PAGE)
    assert options == set(re.findall(r"--[a-z][a-z-]*", of_commands))
