"""Slow, obvious twins of what Trapline computes fast. They know the laws in docs/ and nothing of the fast code."""
