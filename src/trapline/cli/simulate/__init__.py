"""`trapline simulate` and `trapline compare`."""
