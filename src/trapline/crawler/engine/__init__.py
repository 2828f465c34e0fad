"""The crawl loop: asks the frontier for visits, reports their results, and connects the parts of a crawl to sockets and clock."""
