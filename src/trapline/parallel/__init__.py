"""Many partitions, one crawl: who owns which page, and how links between partitions reach their owners.

`in_process.py` runs partitions in simulated time. Nothing below this package knows that there is more than one.
"""
