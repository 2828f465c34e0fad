"""Slow and simple twins of what Trapline computes fast. They follow the laws in docs/ and know nothing of the fast code."""
