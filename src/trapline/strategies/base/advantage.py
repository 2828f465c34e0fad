"""The advantage of a group of pages: by how much its mean exceeds the mean of all pages, as far as the group is large enough to tell.

    a = (S - n g) / (n + K)

S = sum of the values of the group's pages, n = their number, g = the mean of all pages, K = shrinkage (pages, > 0). This is the mean of
the group, shrunk towards g, less g: 0 for an empty group, half of the difference for K pages.
Source: shrunk means are empirical Bayes (Robbins 1956). Differs from the source: K is given and not estimated.

A page of value 3 where the mean of all is 1.5, with K = 3: (3 - 1.5) / (1 + 3).

>>> advantage(3.0, 1.0, 1.5, 3.0)
0.375
"""

from trapline.compiled.jit import shared


@shared
def advantage(total: float, pages: float, mean: float, shrinkage: float) -> float:
    """Return a, from S, n, g and K."""
    return (total - pages * mean) / (pages + shrinkage)
