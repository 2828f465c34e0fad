"""A crawl folder that knows some pages, made without a crawl, for commands that need one."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from trapline.crawler.files.layout import claim_new
from trapline.fetch.urls import origin


def crawl_of(folder: Path, urls: Sequence[str]) -> Path:
    claim_new(folder, {}).release()
    sites = list(dict.fromkeys(map(origin, urls)))
    with closing(sqlite3.connect(folder / "crawl.db")) as database, database:
        database.executemany("insert into site values (?, ?)", enumerate(sites))
        pages = [(number, sites.index(origin(url)), url) for number, url in enumerate(urls)]
        database.executemany("insert into page values (?, ?, ?)", pages)
    return folder
