"""Exports of a crawl as tables for other programs: pages, fetches, sites, links and text, as Parquet, CSV or JSON Lines.

The folder of the crawl is only read. `source.py` reads the database as of one moment. `database_tables.py` and `archive_tables.py` make
rows of the database and of the archives, `tables.py` says which columns they have, and `files.py` writes them.
"""
