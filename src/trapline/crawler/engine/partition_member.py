"""A crawl as one of several partitions: which sites it owns, and the exchange that run.py opens when the crawl begins.

The crawler itself sees only `OtherPartitions` (other_partitions.py). parallel/live/member.py implements these protocols.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from trapline.crawler.control.action_handler import Done
from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.crawler.engine.crawler import Crawler
from trapline.crawler.engine.other_partitions import OtherPartitions
from trapline.crawler.engine.records import ExchangeCounts
from trapline.crawler.files.control_mailbox import Action
from trapline.crawler.robots.site_robots import RobotsResponse
from trapline.fetch.dns import Resolver
from trapline.frontier import Frontier

Exchanged = Mapping[int, ExchangeCounts]  # by the number of the other partition


class PartitionServices(Protocol):
    """What a running crawl does for the other partitions, and takes from them: redirected robots.txt files, lists, requisites."""

    def list_found(self, url: str, speaks_for: str, level: int) -> None:
        """Take in a sitemap or feed of ours that another partition found."""

    def requisite_found(self, url: str, role: str, level: int) -> None:
        """Take in a requisite of ours that a page of another partition needs."""

    def robots_requested(self, url: str, partition: int) -> None:
        """Answer `partition`, which requests the robots.txt at `url` on a site of ours."""

    def robots_received(self, url: str, answer: RobotsResponse) -> None:
        """Take the answer to our request for the robots.txt at `url`."""


class Obey(Protocol):
    def __call__(self, action: Action, done: Done, number: int) -> None:
        """Execute an action, and call `done` once its effects are on disk (crawler/control/crawl_control.py)."""


class PartitionExchange(OtherPartitions, Protocol):
    async def open(self, crawler: Crawler, services: PartitionServices, obey: Obey) -> None:
        """Open the exchange. The crawl has begun. `obey`: executes actions of the user."""


class Member(Protocol):
    """The membership of a crawl in a larger one."""

    @property
    def partitions(self) -> int:
        """The number of partitions of the crawl."""

    @property
    def signals(self) -> Path:
        """The folder of the signals.db that all partitions read."""

    @property
    def resolver(self) -> Resolver:
        """The DNS resolver by which the partition finds out who owns a site. The crawl uses it too, so that no name is looked
        up twice."""

    def owns(self, url: str) -> bool | None:
        """Return whether this partition owns the page. None: the owner is not known yet, and this partition has to find out."""

    def connect(self, frontier: Frontier, link_resolver: LinkResolver, exchanged: Exchanged) -> PartitionExchange:
        """Return the exchange with the other partitions, for a crawl that is about to begin. `exchanged`: the numbers of message
        batches that earlier runs exchanged."""
