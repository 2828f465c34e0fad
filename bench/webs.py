"""Compares recorded webs with generated ones, as a table in Markdown: python bench/webs.py [GRAPH ...] > table.md

GRAPH is any graph that `trapline graph info` reads; without one, the sample python-docs is used. For each graph with sites,
a web of as many pages, sites and links is generated, with the same limit of pages per site; its other parameters are the
defaults. A second table shows what the differences between sites add, as means over SEEDS webs; a third one the pair of
snapshots that historical PageRank needs.
"""

import sys
from pathlib import Path

import numpy as np

from trapline.errors import ConfigError
from trapline.graph import (
    Graph,
    Measures,
    WebModel,
    build,
    depths,
    evolve,
    generate,
    load_graph,
    measure,
    measure_ranks,
    pagerank,
)
from trapline.samples import GRAPHS

_MONTHS_DAYS = 122
_SEEDS = 8
_ALIKE = {"site_contrast": 0.0, "home_links": 0.6}
"""Parameters that make all sites alike, with the share of pages that link home that earlier versions had."""


def recorded(paths: list[str]) -> list[tuple[str, Graph]]:
    """Return the graphs that can be read; print the others on stderr."""
    found = []
    for path in map(Path, paths or GRAPHS):
        try:
            found.append((path.name, load_graph(path)))
        except ConfigError as error:
            print(f"skipped: {error}", file=sys.stderr)
    return found


def like(graph: Graph, seed: int = 1, **shape: float) -> Graph:
    links, largest = max(graph.links / graph.pages, 1.0), int(np.bincount(graph.site).max())
    return generate(graph.pages, graph.sites, seed, max_site_pages=largest, links_per_page=links, **shape)


def site_row(graph: Graph) -> list[float]:
    ranks = measure_ranks(graph, pagerank(graph))
    return [ranks.locality or 0.0, ranks.home_share, measure(graph).links_to_home_share]


def site_table(graphs: list[tuple[str, Graph]]) -> str:
    """Return a table of the measures that depend on how much sites differ: recorded, sites alike, default."""
    names = ("within-site correlation of PageRank", "PageRank of home pages", "links to home pages")
    lines = [
        "| | " + " | ".join(f"{name}: recorded / sites alike / default" for name in names) + " |",
        "|---|---|---|---|",
    ]
    for name, graph in graphs:
        seeds = range(1, _SEEDS + 1)
        alike, default = (np.mean([site_row(like(graph, s, **p)) for s in seeds], 0) for p in (_ALIKE, {}))
        cells = zip(site_row(graph), alike, default, strict=True)
        lines.append(f"| {name} | " + " | ".join(" / ".join(f"{value:.2f}" for value in cell) for cell in cells) + " |")
    return "\n".join(lines)


def rows(graph: Graph) -> dict[str, str]:
    m, ranks = measure(graph), measure_ranks(graph, pagerank(graph))
    sited = graph.sites > 1
    depth = depths(graph)
    reached = depth[depth >= 0]
    return {
        "pages": f"{m.pages:,}",
        "sites": f"{m.sites:,}" if sited else "?",
        "links per page": f"{m.links_per_page:.1f}",
        **_degree_rows(m),
        **(_site_rows(m) if sited else {}),
        **({"depth, median / 90 % / 99 %": _three(reached, 0.5, 0.9, 0.99)} if sited else {}),
        "dangling": f"{m.dangling_share:.2f}",
        "dynamic": f"{m.dynamic_share:.2f}" if graph.urls else "?",
        "bytes, median / 90 % / 99 %": "?" if graph.sizes is None else _three(graph.sizes, 0.5, 0.9, 0.99),
        "PageRank of the best tenth": f"{ranks.top_tenth_share:.2f}",
        **({"PageRank of home pages": f"{ranks.home_share:.2f}"} if sited else {}),
        **({"within-site correlation of PageRank": f"{ranks.locality or 0:.2f}"} if sited else {}),
    }


def _degree_rows(m: Measures) -> dict[str, str]:
    return {
        "links to a page, median / 90 % / 99 %": f"{m.in_degree.median} / {m.in_degree.p90} / {m.in_degree.p99}",
        "most links to a page": f"{m.in_degree.max:,}",
        "pages with one link to them": f"{m.linked_once_share:.2f}",
        "links to the best hundredth": f"{m.top_links_share:.2f}",
        "exponent of links to a page": f"{m.degree_exponent:.1f}" if m.degree_exponent else "-",
        "links on a page, median / 90 % / 99 %": f"{m.out_degree.median} / {m.out_degree.p90} / {m.out_degree.p99}",
    }


def _site_rows(m: Measures) -> dict[str, str]:
    return {
        "links within a site": f"{m.intra_site_share:.2f}",
        "pages that link home": f"{m.home_link_share:.2f}",
        "links to home pages": f"{m.links_to_home_share:.2f}",
        "outside links to home pages": f"{m.outside_home_share:.2f}",
        "pages linked from outside": f"{m.outside_linked_share:.2f}",
        "largest site": f"{m.largest_site_share:.2f}",
        "sites of one page": f"{m.single_page_sites_share:.2f}",
        "exponent of site sizes": f"{m.size_exponent:.1f}" if m.size_exponent else "-",
        "reachable from home pages": f"{m.reachable_share:.2f}",
        "deeper than 8 clicks": f"{m.deep_share:.3f}",
    }


def _three(values: np.ndarray, *shares: float) -> str:  # type: ignore[type-arg]
    return " / ".join(f"{int(value):,}" for value in np.quantile(values, shares, method="lower"))


def table(columns: list[tuple[str, dict[str, str]]]) -> str:
    names = list(dict.fromkeys(name for _, values in columns for name in values))
    lines = ["| | " + " | ".join(head for head, _ in columns) + " |", "|---|" + "---|" * len(columns)]
    lines += [f"| {name} | " + " | ".join(values.get(name, "?") for _, values in columns) + " |" for name in names]
    return "\n".join(lines)


def snapshots(pages: int, sites: int) -> str:
    """Return a table of the share of new pages and the PageRank of the old ones, for some seeds."""
    lines = ["| seed | new pages | PageRank of old pages |", "|---|---|---|"]
    for seed in range(1, 5):
        *_, after = evolve(WebModel(pages, sites, seed), [0, _MONTHS_DAYS])
        old = after.born_day == 0
        lines.append(f"| {seed} | {1 - old.mean():.3f} | {pagerank(after.graph)[old].sum():.3f} |")
    lines.append("| thesis 4.3.2 | .45 | .72 |")
    return "\n".join(lines)


def main(paths: list[str]) -> None:
    columns, graphs = [], recorded(paths)
    for name, graph in graphs:
        columns.append((name, rows(graph)))
        if graph.sites > 1:
            columns.append(("generated", rows(like(graph))))
    columns.append(("generated, 1 M", rows(build(WebModel(1_000_000, 15_000, seed=1)))))
    print(table(columns))
    print(f"\nMeans over {_SEEDS} generated webs:\n")
    print(site_table([(name, graph) for name, graph in graphs if graph.sites > 1]))
    print(f"\nAfter {_MONTHS_DAYS} days, 100,000 pages on 2,000 sites:\n")
    print(snapshots(100_000, 2_000))


if __name__ == "__main__":
    main(sys.argv[1:])
