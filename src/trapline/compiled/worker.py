"""A process that compiles functions into the cache, besides the process that started it.

Its standard input is the task, on which it also claims functions (compile_workers.py). It writes the name of each function that it
begins to compile to its standard output. When nobody reads that any more, because the other process died, the system ends it.
"""

import os
import signal
import sys
from importlib import import_module

from trapline.compiled.compile_workers import claimed, read_task
from trapline.compiled.jit import compile_to_file, declared_functions
from trapline.compiled.kernel_files import IDENTITY

_TASK, _REPORTS = 0, 1


def main() -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    identity, names = read_task(_TASK)
    if identity != IDENTITY:
        return  # the sources were edited since the other process started
    for module in dict.fromkeys(name.partition(":")[0] for name in names):
        import_module(module)
    declared = declared_functions()
    process, processes = map(int, sys.argv[1:3])
    for number in claimed(_TASK, len(names), process, processes):
        if not compile_to_file(declared[names[number]], _report):
            return  # the disk is full, or the sources were edited


def _report(name: str) -> None:
    os.write(_REPORTS, f"{name}\n".encode())
