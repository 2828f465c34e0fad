"""The crawler's view of the other partitions, if its crawl is one of several: the receivers of links to their sites.

The crawler knows neither how partitions communicate nor how many there are (parallel/ does). How a crawl becomes one of several is in
partition_member.py.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from trapline.crawler.engine.records import PartitionTraffic
from trapline.crawler.robots.site_robots import RobotsResponse


class OtherPartitions(Protocol):
    """Sends links to the partitions that own their targets, and receives links to our pages."""

    def begin(self, seeds: Sequence[str]) -> None:
        """Begin a new crawl with the seeds that are ours."""

    async def close(self) -> None:
        """Close the exchange. All batches of this run are on disk."""

    @property
    def have_grown(self) -> bool:
        """Whether partitions were added to the crawl. A page that another partition owned before may then be ours."""

    @property
    def has_news(self) -> bool:
        """Whether the next batch would contain messages to other partitions or from them."""

    def flush(self) -> None:
        """Send at once what the other partitions wait for: the crawl has nothing to do."""

    def send_links(self, page: int, urls: Sequence[str], links: int, further: Mapping[int, int]) -> None:
        """Send the links of a page of ours, which was just reported, to the owners of `urls`. `links`: number of all its links.
        `further`: the owners of more pages that it links to, by the fingerprints of their URLs, which the owners have."""

    def send_refetched_links(self, page: int, urls: Sequence[str]) -> None:
        """Send the links of a refetched page of ours to the owners of `urls`. Owners discover the pages that they do not know.
        None of the links counts as a further link."""

    def seed(self, url: str, redirects: int, is_wider: bool) -> None:
        """Announce that a seed leads to this page by that number of redirects. `is_wider`: it adds a host or a domain to the scope."""

    def add_seeds(self, urls: Sequence[str]) -> int:
        """Take in seeds that the user has added. All partitions get them, and each discovers its own. Return the number of those
        whose owner this partition has to find out."""

    def send_listed(self, urls: Sequence[str]) -> None:
        """Send URLs of other partitions that our pages name without a link: sitemaps, feeds and schedules, and the entries of
        our sitemaps and feeds."""

    def send_list(self, url: str, speaks_for: str, level: int) -> None:
        """Send the URL of a sitemap or feed to its owner. `speaks_for`: the sites on whose hosts it may list any page. `level`:
        the number of indexes and redirects that lead to it."""

    def send_requisite(self, url: str, role: str, level: int) -> None:
        """Send the URL of a file that a page of ours needs to its owner. `level`: the number of stylesheets and redirects that
        lead to it."""

    def ask(self, url: str) -> None:
        """Request the file at `url` from the partition that owns its site: a robots.txt of ours redirects to it."""

    def reply(self, partition: int, url: str, answer: RobotsResponse) -> None:
        """Answer a partition that requested a robots.txt."""

    def take(self) -> PartitionTraffic:
        """Return the traffic since the last call, for the next batch."""

    def sent(self, batch: int, traffic: PartitionTraffic) -> None:
        """Note that the batch was sent to the store."""

    def committed(self, batch: int) -> None:
        """Note that the batch is on disk."""
