"""Webs that change, for tests: sampled histories, and histories written by hand."""

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tests.testweb.webs import numbered
from trapline.refresh import drawn_trace
from trapline.testweb import Behaviour, ChangeHistory, PageChanges, ServedWeb, build_web, changes_of


def changes(updates: Mapping[int, Sequence[float]], pages: int, round_s: float = 1e6, **columns: Any) -> PageChanges:
    """A web with exactly these updates."""
    own = [updates.get(page, ()) for page in range(pages)]
    return PageChanges(
        offsets=array("q", np.cumsum([0, *map(len, own)])),
        at_s=array("d", [at_s for moments in own for at_s in moments]),
        round_s=round_s,
        **{"born_s": array("d", [0.0] * pages), **columns},
    )


def history(updates: Mapping[int, Sequence[float]], pages: int, born_s: Sequence[float] = ()) -> ChangeHistory:
    one = changes(updates, pages)
    born = np.array(born_s or [0.0] * pages)
    return ChangeHistory(np.array(one.offsets), np.array(one.at_s), born, np.full(pages, "normal"))


def changing_web(
    gap_s: float, behaving: Behaviour | None = None, sites: int = 3, pages_per_site: int = 4, **about: Any
) -> ServedWeb:
    """Each page changes once per `gap_s` on average. A round is a hundred times as long."""
    graph = numbered(sites, pages_per_site)
    trace = drawn_trace("poisson", graph.pages, 100 * graph.pages, 100 * gap_s / 86_400.0, seed=1)
    return build_web(graph, behaving or Behaviour(), changes=changes_of(graph, trace, **about))
