"""One crawl divided into partitions: which partition owns which page, and how links between partitions reach their owners.

`parallel/live/` runs partitions as processes, `parallel/simulated/` runs them in simulated time. The packages below
this one do not know that a crawl may have several partitions.
"""

# These names and limits are here because the command line needs them before it spends time on imports.
# What a partition does with links to pages of other partitions (docs/parallel.md).
FIREWALL, CROSS_OVER, EXCHANGE = "firewall", "cross-over", "exchange"
MOST_PROCESSES = 64  # maximum number of processes of a crawl, live or simulated
MOST_PARTITIONS = 4096  # maximum number of partitions that a plan may divide a web into
