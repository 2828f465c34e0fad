"""A progress line on stderr, for every command that can take more than two seconds.

On a terminal the line is rewritten in place and erased at the end. Elsewhere (a log, CI) a plain line is printed now and then. Results
never go through this module: they belong on stdout.
"""

import math
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Self, TextIO

from trapline.progress import CountCallback
from trapline.terminal import rewrite_line, say_to
from trapline.units import duration

if TYPE_CHECKING:
    from trapline.refresh import Policy
    from trapline.strategies.base.chosen import Chosen

_REDRAW_S = 0.1  # fast enough for the eye, slow enough to cost nothing
_SETTLED_S = 1.0  # a rate over less time would be a guess
_LONG_S = 2.0  # a user waits this long without a message
_RECENT_S = 5.0  # a rate covers the last five to ten seconds, because many crawls slow down towards the end


class Progress:
    """Shows `label: done/total note`. Use it as a context manager and call `update` as often as convenient.

    With `unit`, such as pages, it also shows the rate per second and the time left.
    """

    def __init__(
        self,
        label: str,
        *,
        unit: str = "",
        stream: TextIO | None = None,
        plain_every_s: float = 10.0,
        quiet: bool = False,
    ) -> None:
        self._label = label
        self._unit = unit
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._in_place = self._stream.isatty() and not quiet
        plain_every_s = math.inf if quiet else plain_every_s
        self._every_s = _REDRAW_S if self._in_place else plain_every_s
        now = time.monotonic()
        # (time, amount done): an older mark, then a newer one. What the first update says was done before.
        self._marks: tuple[tuple[float, int], ...] = ()
        # A terminal shows the first update at once; a log shows only work that takes long.
        self._next_at = now + (0.0 if self._in_place else plain_every_s)
        self._note = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._in_place:
            rewrite_line(self._stream)

    def update(self, done: int, total: int, note: str = "") -> None:
        now = time.monotonic()
        self._marks = self._marks or ((now, done), (now, done))
        # A new step is shown at once; otherwise the old one would seem to go on.
        new_step = self._in_place and note != self._note
        if now < self._next_at and not new_step:
            return
        self._note = note
        self._next_at = now + self._every_s
        pace = self._pace(done, total, now)
        self._show(f"{self._label}: {done:,}/{total:,} {'; '.join(filter(None, (pace, note)))}".rstrip())

    def say(self, line: str) -> None:
        """Show one line at once, also in a log: for a wait of unknown length."""
        if not self._quiet:
            self._show(line)

    def _show(self, line: str) -> None:
        if self._in_place:
            width = shutil.get_terminal_size().columns - 1  # a full last column would wrap the line
            rewrite_line(self._stream, line, width)
        else:
            say_to(self._stream, line)

    def _pace(self, done: int, total: int, now: float) -> str:
        if not self._unit:
            return ""
        if now - self._marks[1][0] >= _RECENT_S:
            self._marks = (self._marks[1], (now, done))
        since, before = self._marks[0]
        if now - since < _SETTLED_S or done <= before:
            return self._unit
        per_second = (done - before) / (now - since)
        return f"{self._unit}, {per_second:,.0f} {self._unit}/s, {duration((total - done) / per_second)} left"


@contextmanager
def said_if_long(what: str, quiet: bool = False) -> Iterator[None]:
    """Show one line after two seconds, for work that cannot report how far it is."""
    with Progress(what, quiet=quiet) as progress:
        timer = threading.Timer(_LONG_S, progress.say, (f"{what} ...",))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()


# ---- Compilation, and other work without steps, with a progress line. Every command that needs the core starts with this.

_MANY_PAGES = 500_000

# What a command needs in any case: packages, modules and single kernels.
LIVE_CRAWL = ("trapline.frontier.core", "trapline.fetch.html", "trapline.crawler")
SIMULATED_CRAWL = (
    "trapline.simulator",
    "trapline.frontier.core.kernels.register_pages",
    "trapline.frontier.core.kernels.discover_pages",
    "trapline.graph.graph",
    "trapline.graph.pagerank",
)
ARCHIVED_PAGES = ("trapline.fetch.html.kernels.find_tags",)  # links and texts of stored pages
REPORT = (
    "trapline.graph.formats.urls._choose_homes",
    "trapline.graph.formats.urls._split_urls",
    "trapline.graph.graph",
    "trapline.graph.measure._walk",
    "trapline.graph.pagerank",
    "trapline.simulator.log",
    "trapline.simulator.metrics",
)


def compile_kernels(quiet: bool = False, within: Sequence[str] = ()) -> None:
    """Compile all kernels of the modules imported so far, with a progress line if any was not compiled yet.

    `within`: only these packages, modules and kernels. Others are compiled when they are first called, without a progress line.
    """
    from trapline.compiled.jit import ready

    with Progress("compiling", plain_every_s=2.0, quiet=quiet) as progress:
        ready(within=within, progress=progress.update, waiting=waiting_by(progress))


def waiting_by(progress: Progress) -> Callable[[], None]:
    """Return a function that shows that another process is compiling."""
    return lambda: progress.say("waiting for another trapline process to finish compiling")


def compile_crawl() -> None:
    """Compile the kernels of a simulated crawl, without the ranks."""
    import trapline.simulator.driver
    import trapline.simulator.metrics  # noqa: F401  imports all its kernels before they are counted

    compile_kernels(within=SIMULATED_CRAWL)


def compile_replay(quiet: bool = False, within: Sequence[str] = ()) -> None:
    """Compile kernels as `compile_kernels` does, and those that rebuild a crawl from its log."""
    import trapline.frontier.replay  # noqa: F401

    compile_kernels(quiet, (*within, "trapline.frontier.replay") if within else ())


def compile_ranks(every: Sequence["Chosen"], quiet: bool = False) -> None:
    """Compile ranks before the long part, and apart from the crawl, where an error would have other causes."""
    with Progress("compiling ranks", plain_every_s=2.0, quiet=quiet) as progress:
        for number, chosen in enumerate(every):
            progress.update(number, len(every), chosen.name)
            with chosen.blamed():
                for rank in (chosen.strategy.page, chosen.strategy.site):
                    _ = rank.function.address


def compile_policies(every: Sequence["Policy"], quiet: bool = False) -> None:
    """Compile refresh policies. Each one takes up to half a minute and reports no steps."""
    for number, policy in enumerate(every, 1):
        with said_if_long(f"compiling policy {policy.name} ({number} of {len(every)})", quiet):
            policy.compile()


@contextmanager
def step(what: str, number: int, unit: str = "pages") -> Iterator[None]:
    """Show a progress line for one call that cannot report how far it is. A log shows it only if `number` is large enough to take
    seconds."""
    with Progress(what, plain_every_s=0.0 if number > _MANY_PAGES else math.inf) as progress:
        progress.update(0, number, unit)
        yield


class TerminalSteps:
    """Shows each step of long work as a progress line."""

    @contextmanager
    def counted(self, what: str, unit: str) -> Iterator[CountCallback]:
        with Progress(what, unit=unit) as progress:
            yield progress.update

    def single(self, what: str, number: int, unit: str) -> AbstractContextManager[None]:
        return step(what, number, unit)
