"""Opens the graph of a simulated crawl with progress lines. What crawls on it is `trapline.simulator.arena`."""

from pathlib import Path
from typing import TYPE_CHECKING

from trapline.cli.terminal.progress import Progress, TerminalSteps

if TYPE_CHECKING:
    from trapline.simulator.arena import Arena
    from trapline.simulator.conditions import CrawlConditions


def opened_arena(graph: Path, conditions: "CrawlConditions") -> "Arena":
    """Return the arena of a graph on disk."""
    from trapline.graph import load_graph
    from trapline.simulator.arena import arena_of

    with Progress("loading", plain_every_s=2.0) as progress:
        progress.update(0, 1, str(graph))
        web = load_graph(graph)
    return arena_of(web, conditions, TerminalSteps())
