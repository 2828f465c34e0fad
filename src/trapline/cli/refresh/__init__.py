"""`trapline refresh`: replay, serve, subscribe, accesses."""
