"""The order desk: takes orders from the mailbox of a crawl, has them executed, answers them, and writes them to crawl.log.

A crawl of one process has a desk (run.py), and so has the coordinator of several partitions (parallel/live/coordinator.py). What an order
does is decided by the executor that they pass: crawl_control.py, or the coordinator, which forwards the order to all partitions.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from trapline.crawler.control.site_orders import delay_of, sites_of
from trapline.crawler.files.control_mailbox import (
    ADD_SEEDS,
    BLOCK,
    CONTINUE,
    DELAY,
    EXPORT_SITES,
    PAUSE,
    STOP,
    UNBLOCK,
    Mailbox,
    Order,
)
from trapline.crawler.files.event_log import EventLog
from trapline.errors import ConfigError
from trapline.units import counted, duration

ENDING = "the crawl is ending, and takes no more orders"
Counts = Mapping[str, int]
"""What an order did, as numbers that can be added up over partitions."""


class Done(Protocol):
    def __call__(self, counts: Counts, refused: str = "") -> None:
        """Note that an order is executed and durable. `refused`: why it is not; "": it is."""


Execute = Callable[[Order, Done], None]
"""Executes an order and calls `Done` in the end. Raises `ConfigError` if the order cannot be executed."""


class OrderDesk:
    def __init__(self, folder: Path | None, log: EventLog | None = None) -> None:
        self._mailbox, self._log = Mailbox(folder), log or EventLog(folder)

    def poll(self, execute: Execute, why_refused: Callable[[Order], str]) -> None:
        """Execute the orders that have arrived. `why_refused`: returns why an order cannot be executed now, or ""."""
        for number, order in self._mailbox.take():
            self._handle(number, order, execute, why_refused(order))

    def _handle(self, number: str, order: Order, execute: Execute, why_refused: str) -> None:
        def done(counts: Counts, refused: str = "") -> None:
            self._answer(number, order, refused or answer_text(order, counts), bool(refused))

        try:
            if why_refused:
                raise ConfigError(why_refused)
            execute(order, done)
        except ConfigError as error:
            self._answer(number, order, str(error), refused=True)

    def _answer(self, number: str, order: Order, text: str, refused: bool) -> None:
        self._mailbox.answer(number, text, refused)
        # Only values that orders have: others could take the place of our own fields.
        fields = {
            key: order.values[key]
            for key in ("site", "delay_s")
            if isinstance(order.values.get(key), str | int | float)
        }
        if isinstance(sites := order.values.get("sites"), list):
            fields["site"] = ", ".join(map(str, sites))
        level, event = ("warning", "order_refused") if refused else ("info", f"order_{order.do}")
        if order.do == EXPORT_SITES:
            level = "debug"  # the dashboard gives it every few seconds
        self._log.note(level, event, text, order=order.do, by=order.by, **fields)


def answer_text(order: Order, counts: Counts) -> str:
    """Return the answer to an order that was executed, as a sentence.

    >>> answer_text(Order("pause", "me"), {"visits": 1})
    'the crawl is paused; 1 visit under way ends after its current page'
    """
    return _TEXTS[order.do](order, counts) if order.do in _TEXTS else "done"


def _pause(order: Order, counts: Counts) -> str:
    visits = counts.get("visits", 0)
    if not visits:
        return "the crawl is paused"
    each = "ends after its current page" if visits == 1 else "end after their current page"
    return f"the crawl is paused; {counted(visits, 'visit')} under way {each}"


def _continue(order: Order, counts: Counts) -> str:
    return "the crawl continues" if counts.get("paused", 0) else "the crawl was not paused"


def _stop(order: Order, counts: Counts) -> str:
    return "the crawl is stopping"


def _block(order: Order, counts: Counts) -> str:
    return f"blocked {_names(order)}: {_known(counts, 'no longer visited')}"


def _unblock(order: Order, counts: Counts) -> str:
    return f"unblocked {_names(order)}: {_known(counts, 'visited again')}"


def _known(counts: Counts, what: str) -> str:
    sites = counts.get("sites", 0)
    if not sites:
        return "no known site changes"
    return f"{counted(sites, 'known site')} {'is' if sites == 1 else 'are'} {what}"


def _names(order: Order) -> str:
    return ", ".join(sites_of(order))


def _delay(order: Order, counts: Counts) -> str:
    text = f"the delay of {_names(order)} is {duration(delay_of(order))} from now on"
    if longer := counts.get("crawl_delays", 0):
        text += f"; {counted(longer, 'site')} with a longer Crawl-delay in robots.txt {'keeps' if longer == 1 else 'keep'} it"
    return text


def _add_seeds(order: Order, counts: Counts) -> str:
    known = counts.get("known", 0)
    return f"added {counted(counts.get('new', 0), 'seed')}" + (f"; {known:,} already known" if known else "")


_TEXTS: dict[str, Callable[[Order, Counts], str]] = {
    PAUSE: _pause,
    CONTINUE: _continue,
    STOP: _stop,
    BLOCK: _block,
    UNBLOCK: _unblock,
    DELAY: _delay,
    ADD_SEEDS: _add_seeds,
}
