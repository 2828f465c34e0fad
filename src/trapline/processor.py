"""Processor time of the present process: user, system and idle seconds since a moment.

Idle is the time in which the process did not run: it waited for the network or the disk, or for a free processor core.
"""

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProcessorTime:
    user_s: float
    system_s: float
    idle_s: float

    @property
    def shares(self) -> tuple[float, float, float]:
        """User, system and idle time as shares of all time.

        >>> ProcessorTime(1.0, 0.5, 0.5).shares
        (0.5, 0.25, 0.25)
        """
        whole = self.user_s + self.system_s + self.idle_s
        return self.user_s / whole, self.system_s / whole, self.idle_s / whole

    @property
    def busy(self) -> float | None:
        """Share of the time in which the process ran; None if no time passed."""
        whole = self.user_s + self.system_s + self.idle_s
        return (self.user_s + self.system_s) / whole if whole > 0 else None

    def __add__(self, other: "ProcessorTime") -> "ProcessorTime":
        return ProcessorTime(self.user_s + other.user_s, self.system_s + other.system_s, self.idle_s + other.idle_s)


@dataclass(frozen=True, slots=True)
class CrawlProcessor:
    """Processor time of the processes of a crawl; if there are several of a kind, their sum."""

    loop: ProcessorTime  # decides, fetches and parses; or the loop of the simulator
    store: ProcessorTime | None = None  # compresses and writes; None: a simulated crawl has no store


def processor_clock() -> Callable[[], ProcessorTime]:
    """Return a function that returns the processor time since this call. Threads of the process count as user and system
    time; if several run at once, idle is 0 rather than negative."""
    began, user, system = _now()

    def passed() -> ProcessorTime:
        now, user_now, system_now = _now()
        used = user_now - user, system_now - system
        return ProcessorTime(*used, max(now - began - sum(used), 0.0))

    return passed


def _now() -> tuple[float, float, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return time.perf_counter(), used.ru_utime, used.ru_stime
