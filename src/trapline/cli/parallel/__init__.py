"""`trapline parallel`: plan, simulate, status, resize."""
