"""The rows of trust, added as sites and channels appear."""

from collections.abc import Iterator
from typing import Any

from trapline.refresh.live.channels import Channels
from trapline.refresh.live.memory import Memory, RefreshRules
from trapline.refresh.policy import policy_named


class NeverIterated(dict[Any, Any]):
    """Rows that must not be iterated, as for a crawl with too many sites."""

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("all rows were looked at for one")


def test_a_new_row_is_added_without_iterating_over_the_others() -> None:
    rules = RefreshRules()
    memory = Memory(policy_named("cgm"), rules)
    channels = Channels(memory, rules)
    channels._rows = NeverIterated()
    rows = [channels.row(site, channel, p) for site in range(20) for channel, p in ((0, 1.0), (5, 0.05), (0, 0.05))]
    assert len(set(rows)) == len(rows)


def test_restored_channels_give_the_next_row_the_same_parent() -> None:
    rules = RefreshRules()
    memory = Memory(policy_named("cgm"), rules)
    channels = Channels(memory, rules)
    for site in range(3):
        channels.row(site, site % 2, 1.0)
    parents = [
        int(memory.whole.trust[one.row(9 + n, 1, 1.0)].parent)
        for n, one in enumerate((channels, Channels(memory, rules)))
    ]
    assert parents[0] == parents[1] > 0
