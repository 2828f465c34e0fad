"""The arrays and kernels of the refresher: evidence, queue, timers, choice. The live refresher and the replayer share most of them."""
