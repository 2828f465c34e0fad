"""The compiled state machine of the frontier: the queues of sites, the heaps of sites, visits, batches and revisits, the
kernels that drivers call, and the class that owns the arrays. `frontier/layout.py` defines the arrays.

Other packages use the frontier through `trapline.frontier`. Only compiled code imports this package: the simulator, the refresher and
the exchange between partitions, whose kernels call these helpers."""
