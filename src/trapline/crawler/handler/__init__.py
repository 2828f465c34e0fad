"""What a handler, or a Python program, receives of a crawl: pages, failed fetches, and those of earlier runs that were not handled."""
