"""Strategies. Each file declares a page rank, a site rank or a pair of them; base/registry.py finds all files of this folder."""

from trapline.strategies.base.registry import (
    load_strategy,
    page_rank_named,
    page_ranks,
    pair,
    site_rank_named,
    site_ranks,
    strategies,
)
from trapline.strategies.base.strategy import PageRank, SiteRank, Strategy
from trapline.strategies.base.url_inputs import extension_number

__all__ = [
    "PageRank",
    "SiteRank",
    "Strategy",
    "extension_number",
    "load_strategy",
    "page_rank_named",
    "page_ranks",
    "pair",
    "site_rank_named",
    "site_ranks",
    "strategies",
]
