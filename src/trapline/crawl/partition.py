"""What a crawl sees of the other partitions, if it is one of several: whether a site is its own, and where links go that are not.

The crawl does not know how partitions speak, nor how many there are (parallel/ does).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from trapline.crawl.records import Between, Passed
from trapline.fetch.dns import Resolver
from trapline.frontier import Frontier

if TYPE_CHECKING:  # both know of others
    from trapline.crawl.crawler import Crawler
    from trapline.crawl.known import Known
    from trapline.crawl.robots_file import Answer

Told = Mapping[int, Passed]  # by the number of the other partition


class Member(Protocol):
    """What makes a crawl one of several."""

    @property
    def signals(self) -> Path:
        """The folder in which all of them find what providers tell."""

    @property
    def resolver(self) -> Resolver:
        """By which it looks up whose a site is: an answer that it has need not be asked for twice."""

    def owns(self, origin: str) -> bool | None:
        """Whether the site is ours; None: that is ours to find out."""

    def meet(self, frontier: Frontier, known: "Known", told: Told) -> "Others":
        """The others, for a crawl that is about to begin."""


class Desk(Protocol):
    """What the others may want of a crawl that is under way, and may have for it: what is at the end of a robots.txt that redirects."""

    def robots_asked(self, url: str, partition: int) -> None:
        """It lies on a site of ours, and that partition wants it."""

    def robots_told(self, url: str, answer: "Answer") -> None:
        """We had asked for it."""


class Others(Protocol):
    async def open(self, crawler: "Crawler", desk: Desk) -> None:
        """The crawl has begun."""

    def begin(self, seeds: Sequence[str]) -> None:
        """The crawl begins for the first time, with those of the seeds that are ours."""

    async def close(self) -> None:
        """All that will ever be on disk is."""

    @property
    def have_grown(self) -> bool:
        """Whether there were fewer of them once: a page that was another's then may be ours."""

    @property
    def has_news(self) -> bool:
        """Whether a batch would have something for them, or from them."""

    def rest(self) -> None:
        """The crawl has nothing to do: what the others wait for need not wait for more."""

    def post(self, page: int, urls: Sequence[str], links: int) -> None:
        """A page of ours, just reported, links to these pages of others; it has so many links in all."""

    def post_again(self, page: int, urls: Sequence[str]) -> None:
        """A page of ours that was fetched again links to these. Those that their owners do not know are new to them; none counts as a
        further link."""

    def seed(self, url: str, redirects: int, is_wider: bool) -> None:
        """A seed leads to this page by so many redirects. `is_wider`: with it, a host or a domain has come into the scope."""

    def tell(self, urls: Sequence[str]) -> None:
        """Pages of others that ours name in passing: sitemaps, feeds and schedules, and all that a sitemap or a feed of ours lists."""

    def ask(self, url: str) -> None:
        """Whoever owns its site is to say what is there: a robots.txt of ours has moved to it."""

    def reply(self, partition: int, url: str, answer: "Answer") -> None:
        """To a partition that asked."""

    def take(self) -> Between:
        """What passed since the last time: for the next batch."""

    def sent(self, batch: int, between: Between) -> None:
        """That batch is on its way to the disk."""

    def committed(self, batch: int) -> None:
        """It is there."""
