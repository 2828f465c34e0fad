"""Orders to a crawl of several partitions: forwards them to all partitions, and adds up their answers.

The coordinator owns a relay. The orders come from the mailbox of the whole crawl (crawler/control/order_desk.py). Each partition executes
them as a single crawl does (crawler/control/crawl_control.py), and answers when they are on its disk. A partition that is away gets
the orders that it missed when it connects again. Settings of sites are also kept in the manifest, before any partition gets the order:
a partition that dies is restarted with them.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trapline.crawler.control.order_desk import ENDING, Done, OrderDesk
from trapline.crawler.control.site_orders import CHANGE_SITES
from trapline.crawler.engine.status import TERMINATED
from trapline.crawler.files.control_mailbox import ADD_SEEDS, CONTINUE, PAUSE, STOP, Order
from trapline.errors import ConfigError

Send = Callable[[int, Mapping[str, Any]], None]


@dataclass
class _Forwarded:
    order: Order
    done: Done
    awaits: set[int]  # partitions whose answers are awaited
    counts: Counter[str] = field(default_factory=Counter)
    refused: str = ""  # why a partition refuses it

    def finish_if_complete(self) -> None:
        if not self.awaits:
            self.done(self.counts, self.refused)


class OrderRelay:
    def __init__(self, desk: OrderDesk, members: Iterable[int], keep: Callable[[Order], None], send: Send) -> None:
        """`keep`: keeps the settings of sites after an order, and raises `ConfigError` if they are invalid. `send`: sends an order to a
        partition."""
        self._desk, self._members, self._keep, self._send = desk, sorted(members), keep, send
        self._forwarded: dict[int, _Forwarded] = {}  # by number
        self._unanswered: dict[int, dict[int, Order]] = {number: {} for number in self._members}  # by partition
        self._number = 0
        self.is_paused = False

    def poll(self, absent: frozenset[int], is_ending: bool, stop: Callable[[str], object]) -> None:
        """Take the orders that have arrived. `absent`: partitions that are not connected. `stop`: stops the crawl."""

        def execute(order: Order, done: Done) -> None:
            if order.do == STOP:
                stop(TERMINATED)
                done({})
            else:
                self._forward(order, done, absent)

        self._desk.poll(execute, lambda order: ENDING if is_ending else "")

    def _forward(self, order: Order, done: Done, absent: frozenset[int]) -> None:
        if order.do == ADD_SEEDS and absent:
            raise ConfigError("a partition of the crawl is starting; add the seeds when all of them are connected")
        if order.do in CHANGE_SITES:
            self._keep(order)
        if order.do in (PAUSE, CONTINUE):
            self.is_paused = order.do == PAUSE
        self._number = max(self._number + 1, int(time.time() * 1000))
        # A partition that starts has the old settings: only when it has obeyed, no request to a blocked site follows the answer.
        awaits = set(self._members) if order.do in CHANGE_SITES else set(self._members) - absent
        forwarded = self._forwarded[self._number] = _Forwarded(order, done, awaits)
        for partition in self._members:
            self._unanswered[partition][self._number] = order
            if partition not in absent:
                self._send(partition, _message(self._number, order))
        forwarded.finish_if_complete()

    def admitted(self, partition: int) -> None:
        """Send a partition that has connected the orders that it has not answered."""
        for number, order in self._unanswered[partition].items():
            self._send(partition, _message(number, order))

    def answered(self, partition: int, answer: Mapping[str, Any]) -> None:
        """Take the answer of a partition. Raise `ValueError` or `TypeError` if it is none."""
        number, counts, refused = int(answer["number"]), dict(answer["counts"]), str(answer["refused"])
        self._unanswered[partition].pop(number, None)
        forwarded = self._forwarded.get(number)
        if forwarded is None or partition not in forwarded.awaits:
            return
        forwarded.awaits.discard(partition)
        forwarded.counts.update({str(name): int(count) for name, count in counts.items()})
        forwarded.refused = forwarded.refused or refused
        if not forwarded.awaits:
            del self._forwarded[number]
            forwarded.finish_if_complete()


def _message(number: int, order: Order) -> dict[str, Any]:
    return {"number": number, "do": order.do, "by": order.by, "values": dict(order.values)}
