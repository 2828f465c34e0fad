"""The store: a process of its own that makes a crawl durable. Step 7 of the way of a URL."""
