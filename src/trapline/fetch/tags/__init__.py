"""The tags of a page that can lead somewhere, found by compiled code. Step 6 of the way of a URL, its lower half.

A package of its own, because every file beside a kernel is part of the compiled code's cache key (jit.py).
"""
