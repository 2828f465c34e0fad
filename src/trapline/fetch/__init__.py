"""HTTP, names and addresses, robots.txt, and what a page says: the parts of a fetch. Steps 1, 5 and 6 of the way of a URL."""
