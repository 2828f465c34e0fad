"""Pages that are fetched again: conditional requests, copies, and what signals, feeds and sitemaps say about changes."""
