"""Our parcels on their way to others, as they lie on our disk; and whether we and a receiver are of one moment.

A folder that was put back as an older copy has forgotten parcels that others have, or has not received parcels that others have deleted
since. Nothing can mend that, and going on would lose links silently or wait for ever. It is seen when a receiver first says how far it
has come: what it has of ours was made before this run began, and what follows that is still here. It refuses to know how parcels travel
(delivery.py).
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from trapline.errors import ConfigError

Read = Callable[[int, int, int], list[tuple[int, bytes]]]


def are_of_one_moment(received: int, made: int, waiting: int | None) -> bool:
    """Return whether a receiver that has so many parcels fits a sender that made so many. `waiting`: the first one behind those that
    the sender still has; None: it has none."""
    return received <= made and (made + 1 if waiting is None else waiting) == received + 1


class ParcelsOfOneMoment:
    """`Parcels` for `Delivery`."""

    def __init__(self, folder: Path, read: Read, made: Mapping[int, int]) -> None:
        """`read`: from the disk. `made`: parcels for each receiver when this run began."""
        self._folder, self._read, self._made = folder, read, dict(made)
        self._met: set[int] = set()  # receivers

    def after(self, receiver: int, number: int, most: int) -> list[tuple[int, bytes]]:
        """Nothing for one that is of another moment: whoever runs the loop is told."""
        found = self._read(receiver, number, most)
        if receiver not in self._met:
            made = self._made.get(receiver, 0)
            if not are_of_one_moment(number, made, found[0][0] if found else None):
                self._surface(receiver, number, made)
                return []
            self._met.add(receiver)
        return found

    def _surface(self, receiver: int, has: int, made: int) -> None:
        other = self._folder.with_name(f"partition-{receiver}")
        line = (
            f"{self._folder}: it and {other.name} are not of one moment ({has} parcels arrived there of {made} that were made here): "
            "put back copies of all partitions that were taken together, or crawl anew into another folder"
        )
        told = {"message": "the folders of two partitions", "exception": ConfigError(line)}
        asyncio.get_running_loop().call_exception_handler(told)
