"""What to fetch again, and when: policies as compiled functions, and a replayer of update traces that compares them. Laws:
docs/refresh.md."""
