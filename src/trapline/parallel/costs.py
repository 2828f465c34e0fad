"""What parallel crawls cost and cover, as far as a plan must assume it. Every number with its source; nothing else has any.

A web that is crawled is not the web that was measured: `trapline parallel plan --graph` simulates yours instead.
"""

# README.md, `make bench-live`: one loop and its store, 9 kB pages, on loopback: no link is the limit there.
PAGES_PER_SECOND = 4_600.0

# docs/parallel.md, `bench/exchange.py` on uci-ics-crawl, sent every 100 pages: coded, with the count of links.
BYTES_PER_URL = 24.0

# docs/reproduce-cho.md, table 1a, the generated web of 200,000 pages: coverage in firewall mode, of all pages, by partitions.
FIREWALL_COVERAGE = {1: 0.997, 2: 0.992, 4: 0.982, 8: 0.960, 16: 0.889, 32: 0.883, 64: 0.866}

# The same, experiment 4, "fewest exchanges": where 99 % of one process's quality were reached at all, no number of partitions needed more.
EXCHANGES = 16

# The same, table 4d: URLs sent per page with so many exchanges, after a fifth of the pages, by partitions.
URLS_PER_PAGE = {1: 0.0, 2: 0.380, 8: 0.743, 64: 1.176}

# Cho and Garcia-Molina 2002, of the conclusions: firewall is good for a "small number" of processes; 4: published, to the best of our
# knowledge. And where quality matters little, because a "relatively large fraction" is downloaded. What that is, and how much firewall must
# reach of what exchange does, is ours.
FIREWALL_PROCESSES = 4
FIREWALL_ENOUGH = 0.9
FIREWALL_SHARE = 0.5
