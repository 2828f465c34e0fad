"""Crawls a site and writes its pages, links and text as Parquet: python examples/crawl_to_parquet.py https://example.org/ FOLDER

Needs only what Trapline itself needs. Read the files with pandas, DuckDB, Polars or Spark.
"""

import sys
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]

import trapline

url, folder = sys.argv[1], Path(sys.argv[2])
trapline.crawl(url, output=folder, max_pages=10_000).run()
crawl = trapline.open_crawl(folder)
for name in ("pages", "links", "text"):
    pq.write_table(crawl.table(name), folder / f"{name}.parquet")
print(f"{crawl.summary['pages_fetched']:,} pages in {folder}")
