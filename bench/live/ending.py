"""Orderly end of a benchmark: when it is terminated (by timeout, by make), it still ends the servers and crawlers it started."""

import signal
import sys
from typing import NoReturn


def end_in_order() -> None:
    signal.signal(signal.SIGTERM, _end)


def _end(*_: object) -> NoReturn:
    # `timeout` sends the signal twice; the second one would interrupt the cleanup.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit("terminated")
