"""The refresher of a live crawl: it decides when fetched pages are due again, and keeps the evidence about them across restarts."""
