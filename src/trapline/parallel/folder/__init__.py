"""The folder of a parallel crawl: the manifest, the merged database of all partitions, the status, and the verification."""
