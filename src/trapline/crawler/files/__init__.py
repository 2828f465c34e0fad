"""The files of a crawl folder: layout, lock, snapshots, resume, verify and repair."""
