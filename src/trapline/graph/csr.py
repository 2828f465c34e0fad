"""Links from edge arrays to CSR, by counting sort: linear time, one scatter, no comparison.

Rows keep the order of their edges (the order of links on a page decides who is discovered first).
"""

import numpy as np
from numpy.typing import NDArray

from trapline.jit import kernel, ready

Offsets = NDArray[np.int64]
Ids = NDArray[np.int32]


@kernel("void(int32[::1], int64[::1])")
def _count(rows: Ids, counts: Offsets) -> None:
    for edge in range(len(rows)):
        counts[rows[edge] + 1] += 1


@kernel("void(int32[::1], int32[::1], int64[::1], int32[::1])")
def _scatter(rows: Ids, values: Ids, cursor: Offsets, out: Ids) -> None:
    for edge in range(len(rows)):
        row = rows[edge]
        out[cursor[row]] = values[edge]
        cursor[row] += 1


@kernel("int64(int64[::1], int32[::1], int32[::1])")
def _drop_parallel(offsets: Offsets, targets: Ids, last_row: Ids) -> int:
    """Moves the first of equal links in each row to the front, in place; returns how many stay."""
    kept, start = 0, 0
    for row in range(len(offsets) - 1):
        end = offsets[row + 1]
        for link in range(start, end):
            target = targets[link]
            if last_row[target] != row:
                last_row[target] = row
                targets[kept] = target
                kept += 1
        start = end
        offsets[row + 1] = kept
    return kept


def _offsets(rows: Ids, count: int) -> Offsets:
    ready()
    offsets = np.zeros(count + 1, dtype=np.int64)
    _count(rows, offsets)
    np.cumsum(offsets, out=offsets)
    return offsets


def grouped(rows: Ids, values: Ids, count: int) -> tuple[Offsets, Ids]:
    """The values of each row 0..count-1, in the order given."""
    offsets = _offsets(rows, count)
    out = np.empty(len(values), dtype=np.int32)
    _scatter(rows, values, offsets[:-1].copy(), out)
    return offsets, out


def without_parallel(offsets: Offsets, targets: Ids) -> tuple[Offsets, Ids]:
    """The same rows, each target once; works in the given arrays."""
    ready()
    last_row = np.full(len(offsets) - 1, -1, dtype=np.int32)
    kept = _drop_parallel(offsets, targets, last_row)
    return offsets, targets if kept == len(targets) else targets[:kept].copy()


def csr_from_edges(sources: Ids, targets: Ids, pages: int) -> tuple[Offsets, Ids]:
    """Offsets and targets of the links sources[i] -> targets[i], parallel ones removed. All ids in 0..pages-1."""
    return without_parallel(*grouped(sources, targets, pages))
