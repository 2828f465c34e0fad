"""The web of the demo: generated, its servers as measured but hurried, on loopback.

It knows neither crawls nor reports: a graph goes in, a web to be served comes out, and what is known of it.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from trapline.output import write_text

if TYPE_CHECKING:
    from trapline.graph import Graph
    from trapline.testweb import Behaviour, Web

HURRY = 10.0
"""times as fast as measured: a crawl of seconds then meets what one of a minute would, with as many robots"""
VALUES_HEAD = "# PageRank of the pages that trapline demo served\n"


def servers_of(graph: "Graph", seed: int) -> "list[Behaviour]":
    """How each site behaves: drawn as for the simulator (docs/server-models.md). A site's pages all take its mean."""
    import numpy as np

    from trapline.simulate.modelled import modelled_servers
    from trapline.testweb import Behaviour

    servers = modelled_servers(graph, seed=seed)
    latency_s = np.bincount(graph.site, servers.latency_s) / np.bincount(graph.site)
    columns = (latency_s, servers.connection_s, servers.speed, servers.requests)
    return [
        Behaviour(
            latency_s=latency / HURRY,
            connection_s=connection / HURRY,
            bandwidth=speed * HURRY,
            requests_per_connection=requests,
            http10=requests == 1,  # as cao 5.1 infers
        )
        for latency, connection, speed, requests in zip(*(column.tolist() for column in columns), strict=True)
    ]


def as_served(graph: "Graph", web: "Web") -> "Graph":
    """The graph with the URLs that its pages have on loopback."""
    from dataclasses import replace

    from trapline.graph.strings import StoredStrings

    urls = StoredStrings.of(web.url(page) for page in range(web.pages))
    return replace(graph, urls=urls, site_names=StoredStrings.of(web.origins))


def write_values(graph: "Graph", file: Path) -> None:
    """What each page is worth, as --quality reads it."""
    from trapline.graph import pagerank
    from trapline.graph.strings import decoded

    assert graph.urls is not None
    rows = zip(decoded(graph.urls), pagerank(graph).tolist(), strict=True)
    write_text(file, VALUES_HEAD + "".join(f"{url}\t{value!r}\n" for url, value in rows))
