"""An append-only file: bytes are collected in memory, appended together, and made durable. Their meaning is not known here.

The owner of the file records `length` durably after each `flush`; after a crash, `cut_back` removes all later bytes.
"""

import os
from collections.abc import Callable
from pathlib import Path

from trapline.errors import ConfigError

# fdatasync skips metadata that readers do not need, such as the modification time. Not every system has it.
make_durable: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)


class Tail:
    def __init__(self, path: Path, length: int) -> None:
        self.path = path
        self.length = length  # including the bytes that are still in memory
        self._gathered: list[bytes] = []
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)

    def add(self, data: bytes) -> int:
        """Append data in memory, and return the offset at which it will begin in the file."""
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
    """Cut a file to its first `length` bytes, and return how many bytes were removed.

    Raise `ConfigError` if the file is shorter: it is damaged, and the store cannot repair that.
    """
    size = path.stat().st_size if path.exists() else 0
    if size < length:
        raise ConfigError(
            f"{path}: has {size:,} bytes, but the database of the crawl has recorded {length:,};"
            " restore it from a copy, or repair the folder of the crawl: trapline verify --repair"
        )
    if size > length:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.ftruncate(descriptor, length)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    return size - length
