"""A file of lines put in order, in bounded memory: sorted pieces, then one merge. The order is that of bytes, as pywb wants it.

The sorted file has the same lines, hence the same length, and takes the old one's place by a rename: killed at any
moment, one of the two is there, and both fit the length that the database knows.
"""

import heapq
import os
from contextlib import ExitStack
from pathlib import Path

from trapline.output import sync

PIECE_BYTES = 48_000_000  # of text; as lines in Python a quarter more


def sort_lines(path: Path, piece_bytes: int = PIECE_BYTES) -> None:
    pieces = _sorted_pieces(path, piece_bytes)
    with ExitStack() as stack, _hidden(path, "sorted").open("wb") as file:
        file.writelines(heapq.merge(*(stack.enter_context(piece.open("rb")) for piece in pieces)))
        file.flush()
        os.fsync(file.fileno())
    os.replace(_hidden(path, "sorted"), path)
    sync(path.parent)
    remove_leftovers(path)


def remove_leftovers(path: Path) -> None:
    """What a sort that was killed left behind."""
    for leftover in path.parent.glob(f".{path.name}.*"):
        leftover.unlink()


def _sorted_pieces(path: Path, piece_bytes: int) -> list[Path]:
    pieces: list[Path] = []
    with path.open("rb") as unsorted:
        while lines := unsorted.readlines(piece_bytes):
            lines.sort()
            pieces.append(_hidden(path, f"piece-{len(pieces)}"))
            with pieces[-1].open("wb") as file:
                file.writelines(lines)
    return pieces


def _hidden(path: Path, what: str) -> Path:
    return path.with_name(f".{path.name}.{what}")
