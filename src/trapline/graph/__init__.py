"""Web graphs: CSR arrays, loaders, the generator and PageRank.

The world that a crawl is simulated in. Nothing here knows of frontiers, strategies or time.
"""

from trapline.graph.format_saved import check_output, save
from trapline.graph.generate import WebModel, build, generate
from trapline.graph.graph import Graph
from trapline.graph.load import load_graph
from trapline.graph.measure import Measures, depths, measure
from trapline.graph.options import LoadOptions
from trapline.graph.pagerank import pagerank

__all__ = [
    "Graph",
    "LoadOptions",
    "Measures",
    "WebModel",
    "build",
    "check_output",
    "depths",
    "generate",
    "load_graph",
    "measure",
    "pagerank",
    "save",
]
