"""Strategies. Each file declares a page rank, a site rank or a pair of them; registry.py finds all files of this folder."""

from trapline.strategies.registry import (
    load_strategy,
    page_rank_named,
    page_ranks,
    pair,
    site_rank_named,
    site_ranks,
    strategies,
)
from trapline.strategies.strategy import PageRank, SiteRank, Strategy

__all__ = [
    "PageRank",
    "SiteRank",
    "Strategy",
    "load_strategy",
    "page_rank_named",
    "page_ranks",
    "pair",
    "site_rank_named",
    "site_ranks",
    "strategies",
]
