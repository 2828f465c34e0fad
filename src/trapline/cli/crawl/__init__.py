"""`trapline crawl` and the commands that read a crawl folder: status, report, explain, verify."""
