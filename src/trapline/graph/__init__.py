"""Web graphs: CSR arrays, loaders, the generator and PageRank.

A graph is the web that a simulated crawl visits. Nothing here knows about frontiers, strategies or time.
"""

from typing import TYPE_CHECKING

from trapline.graph.evolve import ChangeTimes, EvolutionRates, Snapshot, evolve
from trapline.graph.generate import WebModel, build, generate
from trapline.graph.graph import Graph
from trapline.graph.measure import Measures, RankMeasures, depths, locality, measure, measure_ranks
from trapline.graph.pagerank import pagerank
from trapline.lazy_names import lazy_names

if TYPE_CHECKING:
    from trapline.graph.formats.saved import check_output, save
    from trapline.graph.formats.text_output import check_text_output, save_edges, save_snap
    from trapline.graph.formats.textfile import LoadOptions
    from trapline.graph.load import graph_from_edges, load_graph

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

# The formats of files. The other names are also names of modules.
__getattr__ = lazy_names(
    __name__,
    {
        "trapline.graph.formats.saved": (
            "check_output",
            "save",
        ),
        "trapline.graph.formats.text_output": (
            "check_text_output",
            "save_edges",
            "save_snap",
        ),
        "trapline.graph.formats.textfile": ("LoadOptions",),
        "trapline.graph.load": (
            "graph_from_edges",
            "load_graph",
        ),
    },
)
