"""The web of `trapline demo`: generated, and served on loopback by servers that behave as measured ones, but faster.

This module knows neither crawls nor reports. Its input is a graph; its output is a web to serve and the values of its pages.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from trapline.output import write_text

if TYPE_CHECKING:
    from trapline.graph import Graph
    from trapline.servers.sampled import Servers
    from trapline.testweb import ServedWeb

HURRY = 10.0
"""Factor by which servers are faster than measured ones. A crawl of seconds then sees what a crawl of a minute would see with the same
number of connections."""
VALUES_HEAD = "# PageRank of the pages that trapline demo served\n"


def servers_of(graph: "Graph", seed: int) -> "Servers":
    """Return the servers, sampled as for the simulator (docs/server-models.md)."""
    from trapline.servers.model import MODELS, sped_up
    from trapline.servers.sampled import modelled_servers

    return modelled_servers(graph, sped_up(MODELS["measured"], HURRY), seed)


def as_served(graph: "Graph", web: "ServedWeb") -> "Graph":
    """Return the graph with the URLs that its pages have on loopback."""
    from dataclasses import replace

    from trapline.graph.strings import StoredStrings

    urls = StoredStrings.of(web.url(page) for page in range(web.pages))
    return replace(graph, urls=urls, site_names=StoredStrings.of(web.origins))


def values_of(graph: "Graph") -> dict[str, float]:
    """Return the value of each page, its PageRank, by URL."""
    from trapline.graph import pagerank
    from trapline.graph.strings import decoded

    assert graph.urls is not None
    return dict(zip(decoded(graph.urls), pagerank(graph).tolist(), strict=True))


def write_values(values: Mapping[str, float], file: Path) -> None:
    """Write the values of pages in the format that --quality reads."""
    write_text(file, VALUES_HEAD + "".join(f"{url}\t{value!r}\n" for url, value in values.items()))
