"""The store process, which writes WARC files, their index and the database, and commits them batch by batch."""
