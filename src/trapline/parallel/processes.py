"""Partitions as processes of this machine: one is started, told what it is, and watched to its end. When, and how often: crew.py."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress

from trapline.parallel.crew import Show, crawl_with
from trapline.parallel.manifest import Manifest
from trapline.parallel.worker import COMMAND, Task

_END_S = 3.0  # for one that is asked to end


def crawl_in_processes(manifest: Manifest, show: Show) -> Manifest:
    return crawl_with(manifest, show, launched)


async def launched(task: Task, before: Sequence[str] = ()) -> tuple[int, str]:
    """Run a worker to its end: its exit code, and the last line of its complaint. `before`: a command that runs another."""
    process = await asyncio.create_subprocess_exec(
        *before,
        sys.executable,
        *COMMAND,
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is the coordinator's
    )
    try:
        return await _watched(process, task)
    except asyncio.CancelledError:
        await _end(process)
        raise


async def _end(process: asyncio.subprocess.Process) -> None:
    """Killed, if it does not go when it is asked: it hangs, and its folder stands that."""
    with suppress(ProcessLookupError):
        process.terminate()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_END_S):
                    await process.wait()
        finally:  # also if we are cancelled once more
            if process.returncode is None:
                process.kill()
    await process.wait()


async def _watched(process: asyncio.subprocess.Process, task: Task) -> tuple[int, str]:
    """Its standard input stays open: a worker dies with whoever holds the other end."""
    assert process.stdin is not None and process.stderr is not None
    with suppress(OSError):  # it has died already
        process.stdin.write(task.to_line())
        await process.stdin.drain()
    complaint = await process.stderr.read()
    code = await process.wait()
    process.stdin.close()
    return code, last_line(complaint)


def last_line(complaint: bytes) -> str:
    """
    >>> last_line(b"Traceback\\n  ...\\nKeyError: 1\\n\\n"), last_line(b"")
    ('KeyError: 1', '')
    """
    lines = complaint.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
