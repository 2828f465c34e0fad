"""Memory that is freed goes back to the system. One setting of the C library, made once by who runs a crawl.

The frontier's arrays grow by being copied into larger ones. glibc takes the size of what was freed last for a hint, and from then on keeps
arrays of up to 32 MB on its heap, where the holes that they leave stay ours. With a fixed threshold large arrays are the system's own
again: measured by bench/live/memory.py, 84 to 113 bytes for each known URL instead of 92 to 122.
"""

import ctypes

_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD in glibc's malloc.h
_LARGE_BYTES = 1 << 20


def give_back_what_is_freed() -> None:
    """Nothing happens where the C library has no such setting."""
    setting = getattr(ctypes.CDLL(None), "mallopt", None)
    if setting is not None:
        setting(_MMAP_THRESHOLD, _LARGE_BYTES)
