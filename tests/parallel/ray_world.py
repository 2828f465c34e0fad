"""A Ray cluster on this machine, for tests. We start and end it, on free ports, with its own folder and token."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.parallel.processes_world import wait_for

TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0123456789abcdef" * 2}
# No usage reports, and no more memory than we need.
_START = (
    "start",
    "--head",
    "--block",
    "--port=0",
    "--num-cpus=2",
    "--include-dashboard=false",
    "--disable-usage-stats",
)


_TRIES = 3  # Ray gives up if its own processes start slowly, as on a busy machine


@contextmanager
def cluster() -> Iterator[str]:
    """Yield the address of the cluster. The folder has a short name, because paths of sockets may not be long."""
    with tempfile.TemporaryDirectory(prefix="trap", ignore_cleanup_errors=True) as folder:
        process = _started(Path(folder))
        try:
            yield (Path(folder) / "ray_current_cluster").read_text()
        finally:
            _end(process)


def _started(folder: Path) -> subprocess.Popen[bytes]:
    """Start a cluster. Return its first process once the cluster is ready."""
    said = folder / "said"
    for _ in range(_TRIES):
        process = _start(folder, said)
        wait_for(lambda: b"will now block" in said.read_bytes() or process.poll() is not None)  # noqa: B023
        if process.poll() is None:
            return process
    raise AssertionError(f"Ray did not start: {said.read_text(errors='replace')}")


def _start(folder: Path, said: Path) -> subprocess.Popen[bytes]:
    options = (*_START, f"--object-store-memory={80 << 20}", f"--temp-dir={folder}")
    with said.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "ray.scripts.scripts", *options],
            stdout=output,
            stderr=output,
            env=os.environ | TOKEN,
            start_new_session=True,
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:  # must not hide why a test failed
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
