"""Actions on a crawl of several partitions: forwards them to all partitions, and adds up their answers.

The coordinator owns a relay. The actions come from the mailbox of the whole crawl (crawler/control/action_handler.py). Each partition
executes them as a single crawl does (crawler/control/crawl_control.py), and answers when they are on its disk. A partition that is away
gets the actions that it missed when it connects again. Settings of sites are also kept in the manifest, before any partition gets the
action: a partition that dies is restarted with them.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trapline.crawler.control.action_handler import CHANGE_SITES, ENDING, ActionHandler, Done
from trapline.crawler.engine.stop_reasons import TERMINATED
from trapline.crawler.files.control_mailbox import ADD_SEEDS, CONTINUE, PAUSE, STOP, Action
from trapline.errors import ConfigError

Send = Callable[[int, Mapping[str, Any]], None]


@dataclass
class _Forwarded:
    action: Action
    done: Done
    awaits: set[int]  # partitions whose answers are awaited
    counts: Counter[str] = field(default_factory=Counter)
    refused: str = ""  # why a partition refuses it

    def finish_if_complete(self) -> None:
        if not self.awaits:
            self.done(self.counts, self.refused)


class ActionRelay:
    def __init__(
        self, handler: ActionHandler, members: Iterable[int], keep: Callable[[Action], None], send: Send
    ) -> None:
        """`keep`: keeps the settings of sites after an action, and raises `ConfigError` if they are invalid. `send`: sends an action to a
        partition."""
        self._handler, self._members, self._keep, self._send = handler, sorted(members), keep, send
        self._forwarded: dict[int, _Forwarded] = {}  # by number
        self._unanswered: dict[int, dict[int, Action]] = {number: {} for number in self._members}  # by partition
        self._number = 0
        self.is_paused = False

    def poll(self, absent: frozenset[int], is_ending: bool, stop: Callable[[str], object]) -> None:
        """Take the actions that have arrived. `absent`: partitions that are not connected. `stop`: stops the crawl."""

        def execute(action: Action, done: Done) -> None:
            if action.name == STOP:
                stop(TERMINATED)
                done({})
            else:
                self._forward(action, done, absent)

        self._handler.poll(execute, lambda action: ENDING if is_ending else "")

    def _forward(self, action: Action, done: Done, absent: frozenset[int]) -> None:
        if action.name == ADD_SEEDS and absent:
            raise ConfigError("a partition of the crawl is starting; add the seeds when all of them are connected")
        if action.name in CHANGE_SITES:
            self._keep(action)
        if action.name in (PAUSE, CONTINUE):
            self.is_paused = action.name == PAUSE
        self._number = max(self._number + 1, int(time.time() * 1000))
        # A partition that starts has the old settings: only when it has obeyed, no request to a blocked site follows the answer.
        awaits = set(self._members) if action.name in CHANGE_SITES else set(self._members) - absent
        forwarded = self._forwarded[self._number] = _Forwarded(action, done, awaits)
        for partition in self._members:
            self._unanswered[partition][self._number] = action
            if partition not in absent:
                self._send(partition, _message(self._number, action))
        forwarded.finish_if_complete()

    def admitted(self, partition: int) -> None:
        """Send a partition that has connected the actions that it has not answered."""
        for number, action in self._unanswered[partition].items():
            self._send(partition, _message(number, action))

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


def _message(number: int, action: Action) -> dict[str, Any]:
    return {"number": number, "action": action.name, "by": action.by, "values": dict(action.values)}
