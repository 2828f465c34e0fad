"""What ends a crawl, by the words that its folder and `summary.json` have for it. It decides nothing: the crawler and its goals do."""

DRAINED = "drained"  # nothing is left to fetch
PAGES, SECONDS, BYTES = "max-pages", "max-seconds", "max-bytes"
INTERRUPTED, TERMINATED = "interrupted", "terminated"  # by Ctrl-C, by SIGTERM
BY_HAND = (INTERRUPTED, TERMINATED)
