"""`trapline testweb`: serves a web to crawl on loopback."""
