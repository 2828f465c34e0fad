"""The crawl loop: asks the frontier for a visit, fetches its pages, judges the answers and reports them."""
