"""The live crawl: the loop that asks the frontier and sends robots, and the store that keeps what they bring."""
