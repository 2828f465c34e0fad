"""Many partitions, one crawl: who owns which page, and how links between partitions reach their owners.

`in_process.py` runs partitions in simulated time. Nothing below this package knows that there is more than one.
"""

# Here, because the command line needs them before it may spend time on imports.
MOST_PROCESSES = 64  # of a crawl, live or simulated
MOST_PARTITIONS = 4096  # that a plan may divide a web into
