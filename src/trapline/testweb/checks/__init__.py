"""Checks of a crawler from the server's log: politeness, and freshness of the crawler's copies."""
