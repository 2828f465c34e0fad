"""A file that only grows: bytes gathered in memory, appended at once, made durable. It knows nothing of what they mean.

Whoever owns it writes down `length` after `flush`, durably; after a crash `cut_back` removes what came later.
"""

import os
from collections.abc import Callable
from pathlib import Path

from trapline.errors import ConfigError

# Not every system has fdatasync, which leaves out what a reader does not need, such as the time of the last change.
make_durable: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)


class Tail:
    def __init__(self, path: Path, length: int) -> None:
        self.path = path
        self.length = length  # with what is gathered
        self._gathered: list[bytes] = []
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)

    def add(self, data: bytes) -> int:
        """Append in memory; where it will begin."""
        offset = self.length
        self._gathered.append(data)
        self.length = offset + len(data)
        return offset

    def flush(self) -> None:
        if not self._gathered:
            return
        data = memoryview(b"".join(self._gathered))
        while data:
            data = data[os.write(self._descriptor, data) :]
        make_durable(self._descriptor)
        self._gathered.clear()

    def close(self) -> None:
        os.close(self._descriptor)


def cut_back(path: Path, length: int) -> int:
    """Leave the first `length` bytes; how many were cut. A file that is shorter is damaged: nobody here can repair it."""
    size = path.stat().st_size if path.exists() else 0
    if size < length:
        raise ConfigError(f"{path}: has {size} bytes where the crawl's database knows {length}; restore it from a copy")
    if size > length:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.ftruncate(descriptor, length)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    return size - length
