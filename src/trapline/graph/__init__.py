"""Web graphs: CSR arrays, loaders, the generator and PageRank.

The world that a crawl is simulated in. Nothing here knows of frontiers, strategies or time.
"""

from trapline.graph.evolve import Changes, Rates, Snapshot, evolve
from trapline.graph.format_saved import check_output, save
from trapline.graph.generate import WebModel, build, generate
from trapline.graph.graph import Graph
from trapline.graph.load import load_graph
from trapline.graph.measure import Measures, RankMeasures, depths, locality, measure, measure_ranks
from trapline.graph.options import LoadOptions
from trapline.graph.pagerank import pagerank
from trapline.graph.text_output import check_text_output, save_edges, save_snap

__all__ = [
    "Changes",
    "Graph",
    "LoadOptions",
    "Measures",
    "RankMeasures",
    "Rates",
    "Snapshot",
    "WebModel",
    "build",
    "check_output",
    "check_text_output",
    "depths",
    "evolve",
    "generate",
    "load_graph",
    "locality",
    "measure",
    "measure_ranks",
    "pagerank",
    "save",
    "save_edges",
    "save_snap",
]
