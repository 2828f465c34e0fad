"""Web graphs: CSR arrays, loaders, the generator and PageRank.

A graph is the web that a simulated crawl visits. Nothing here knows about frontiers, strategies or time.
"""

from trapline.graph.evolve import ChangeTimes, EvolutionRates, Snapshot, evolve
from trapline.graph.formats.saved import check_output, save
from trapline.graph.formats.text_output import check_text_output, save_edges, save_snap
from trapline.graph.formats.textfile import LoadOptions
from trapline.graph.generate import WebModel, build, generate
from trapline.graph.graph import Graph
from trapline.graph.load import graph_from_edges, load_graph
from trapline.graph.measure import Measures, RankMeasures, depths, locality, measure, measure_ranks
from trapline.graph.pagerank import pagerank

__all__ = [
    "ChangeTimes",
    "EvolutionRates",
    "Graph",
    "LoadOptions",
    "Measures",
    "RankMeasures",
    "Snapshot",
    "WebModel",
    "build",
    "check_output",
    "check_text_output",
    "depths",
    "evolve",
    "generate",
    "graph_from_edges",
    "load_graph",
    "locality",
    "measure",
    "measure_ranks",
    "pagerank",
    "save",
    "save_edges",
    "save_snap",
]
