"""Exports of a crawl as tables for other programs: pages, fetches, sites, links and text, as Parquet, CSV or JSON Lines.

The folder of the crawl is only read. `source.py` reads the database, `archived_pages.py` the archives; one module per table makes rows of
them, and `files.py` writes the rows.
"""
