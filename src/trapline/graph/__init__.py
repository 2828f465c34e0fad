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
from trapline.graph.text_output import check_text_output, save_edges, save_snap

__all__ = [
    "Graph",
    "LoadOptions",
    "Measures",
    "WebModel",
    "build",
    "check_output",
    "check_text_output",
    "depths",
    "generate",
    "load_graph",
    "measure",
    "pagerank",
    "save",
    "save_edges",
    "save_snap",
]
