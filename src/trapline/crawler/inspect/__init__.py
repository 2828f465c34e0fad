"""Read-only views of a crawl folder: summary, status, the history of a page, and the audit of politeness.

Only the summary is written, as `summary.json`.
"""
