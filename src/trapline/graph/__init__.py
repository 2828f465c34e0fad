"""Web graphs: CSR arrays, loaders, the generator and PageRank.

The world that a crawl is simulated in. Nothing here knows of frontiers, strategies or time.
"""

from trapline.graph.evolve import Changes, Rates, Snapshot, evolve
from trapline.graph.format_saved import check_output, save
from trapline.graph.generate import WebModel, build, generate
from trapline.graph.graph import Graph
from trapline.graph.load import load_graph
from trapline.graph.measure import Measures, RankMeasures, depths, locality, measure, measure_ranks
from trapline.graph.pagerank import pagerank

__all__ = [
    "Changes",
    "Graph",
    "Measures",
    "RankMeasures",
    "Rates",
    "Snapshot",
    "WebModel",
    "build",
    "check_output",
    "depths",
    "evolve",
    "generate",
    "load_graph",
    "locality",
    "measure",
    "measure_ranks",
    "pagerank",
    "save",
]
