"""docs/crawl-folder.md explains every table and column of the database, and its queries run on a crawl."""

import re
import sqlite3
from pathlib import Path

import pytest

from tests.crawler.store_world import batch
from trapline.crawler.files.layout import claim_new
from trapline.crawler.store.keeper import Keeper
from trapline.crawler.store.settings import StoreSettings

PAGE = (Path(__file__).parents[2] / "docs" / "crawl-folder.md").read_text()
QUERIES = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> sqlite3.Connection:
    folder = tmp_path_factory.mktemp("crawls") / "c"
    claim_new(folder, {}).release()
    keeper = Keeper(folder, StoreSettings())
    keeper.commit([batch(number) for number in range(1, 6)])
    keeper.close(lambda step: None)
    return sqlite3.connect(folder / "crawl.db")


def test_every_table_and_column_is_explained(database: sqlite3.Connection) -> None:
    tables = [name for (name,) in database.execute("select name from sqlite_master where type in ('table', 'view')")]
    assert len(tables) == 28
    for table in tables:
        assert f"**{table}**" in PAGE
        for column in database.execute(f"select name from pragma_table_info('{table}')"):
            assert f"`{column[0]}`" in PAGE, f"{table}.{column[0]}"


@pytest.mark.parametrize("query", QUERIES)
def test_the_queries_of_the_page_run(database: sqlite3.Connection, query: str) -> None:
    rows = database.execute(query).fetchall()
    assert rows or "not exists" in query
