"""What a crawl sees of the other partitions, if it is one of several: whether a site is its own, and where links go that are not.

The crawl does not know how partitions speak, nor how many there are (parallel/ does).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from trapline.crawl.records import Between
from trapline.frontier import Frontier

if TYPE_CHECKING:  # both know of others
    from trapline.crawl.crawler import Crawler
    from trapline.crawl.known import Known

Told = Mapping[int, tuple[int, int]]  # of each other partition: parcels made for it, and received from it


class Member(Protocol):
    """What makes a crawl one of several."""

    @property
    def signals(self) -> Path:
        """The folder in which all of them find what providers tell."""

    def owns(self, origin: str) -> bool | None:
        """Whether the site is ours; None: that is ours to find out."""

    def meet(self, frontier: Frontier, known: "Known", told: Told) -> "Others":
        """The others, for a crawl that is about to begin."""


class Others(Protocol):
    async def open(self, crawler: "Crawler") -> None:
        """The crawl has begun."""

    def begin(self, seeds: Sequence[str]) -> None:
        """The crawl begins for the first time, with those of the seeds that are ours."""

    async def close(self) -> None:
        """All that will ever be on disk is."""

    @property
    def has_news(self) -> bool:
        """Whether a batch would have something for them, or from them."""

    def rest(self) -> None:
        """The crawl has nothing to do: what the others wait for need not wait for more."""

    def post(self, page: int, urls: Sequence[str], links: int) -> None:
        """A page of ours, just reported, links to these pages of others; it has so many links in all."""

    def take(self) -> Between:
        """What passed since the last time: for the next batch."""

    def sent(self, batch: int, between: Between) -> None:
        """That batch is on its way to the disk."""

    def committed(self, batch: int) -> None:
        """It is there."""
