"""Pages that are fetched again, and what providers tell: conditional requests, copies, signals, sitemaps and feeds."""
