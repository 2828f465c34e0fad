"""A Python program reads the folder of a crawl as tables, finished or interrupted."""

from pathlib import Path

import pytest

from tests.api.test_crawl import OPTIONS, PAGES, home, tree
from tests.crawler.small_server import small_server
from trapline import ConfigError, crawl, open_crawl
from trapline.api.stored_crawl import StoredCrawl
from trapline.export.tables import TABLES


def test_the_tables_of_an_interrupted_and_of_a_finished_crawl(tmp_path: Path) -> None:
    with small_server(tree, ("127.0.0.1",)) as server:
        for _ in crawl(home(server), output=tmp_path / "out", max_pages=50, **OPTIONS):
            break
        stored = open_crawl(tmp_path / "out")
        fetched = stored.summary["pages_fetched"]
        assert 0 < fetched <= 50
        assert stored.fetches["result"].to_pylist().count("fetched") == fetched  # the other one is /sitemap.xml
        list(crawl(resume=tmp_path / "out", max_pages=PAGES))
    assert stored.summary["pages_fetched"] == PAGES
    pages = stored.pages.to_pandas()
    fetched_pages = pages[pages.state == "fetched"]
    assert len(fetched_pages) == PAGES and set(fetched_pages.status) == {200}
    assert {name for name in TABLES if not hasattr(StoredCrawl, name)} == set(), "each table has a property"
    assert stored.requisites.num_rows == 0
    assert stored.links.num_rows == PAGES - 1 and stored.sites.num_rows == 1 and stored.text.num_rows == PAGES
    assert sum(batch.num_rows for batch in stored.batches("links")) == PAGES - 1


def test_mistakes_are_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        open_crawl(tmp_path / "none")
    with small_server(tree, ("127.0.0.1",)) as server:
        list(crawl(home(server), output=tmp_path / "out", max_pages=1, **OPTIONS))
    with pytest.raises(ConfigError, match="did you mean 'pages'"):
        open_crawl(tmp_path / "out").table("page")
