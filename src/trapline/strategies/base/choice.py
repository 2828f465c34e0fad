"""Choice of a strategy by the values of the options: a name, a file, a pair PAGE+SITE, with its page rank or site rank replaced."""

from pathlib import Path

from trapline.errors import ConfigError
from trapline.strategies.base.inputs import (
    CONTENT,
    CONTENT_FORMS,
    FROM_LINKS,
    STORED_CONTENT,
    check_inputs,
    check_quality,
    with_quality,
)
from trapline.strategies.base.registry import load_strategy, page_rank_named, pair, site_rank_named
from trapline.strategies.base.strategy import Strategy


def worded(text: str) -> Strategy:
    """Return the strategy that the text names: a strategy, a file, a pair PAGE+SITE, or a pair's own name ('opic x crawl-ability')."""
    halves = split(text)
    return pair(*halves) if halves else load_strategy(text)


def absolute(text: str) -> str:
    """Return a text for the same strategy that can be used from any folder: paths of files become absolute.

    >>> absolute("opic+crawl-ability"), absolute("/x/mine.py+fifo")
    ('opic+crawl-ability', '/x/mine.py+fifo')
    """
    return "+".join(str(Path(name).absolute()) if name.endswith(".py") else name for name in split(text) or (text,))


def split(text: str) -> tuple[str, str] | None:
    """Return the page rank and the site rank that the text names, or None if it does not name a pair.

    >>> split("opic+crawl-ability"), split("opic"), split("/c++/mine.py x fifo")
    (('opic', 'crawl-ability'), None, ('/c++/mine.py', 'fifo'))
    """
    halves = text.split(" x " if " x " in text else "+")
    return (halves[0], halves[1]) if len(halves) == 2 and not Path(text).is_file() else None


def named_page_rank(text: str, page_rank: str | None) -> str:
    """Return the name of the page rank, or the name of the strategy if only a strategy is named.

    >>> named_page_rank("quality+fifo", None), named_page_rank("fifo", "quality"), named_page_rank("crawl-ability", None)
    ('quality', 'quality', 'crawl-ability')
    """
    return page_rank or (split(text) or (text,))[0]


def with_halves(whole: Strategy, page_rank: str | None, site_rank: str | None) -> Strategy:
    """Return the strategy with its page rank or its site rank replaced, where one is named."""
    if page_rank is None and site_rank is None:
        return whole
    page = page_rank_named(page_rank) if page_rank else whole.page
    site = site_rank_named(site_rank) if site_rank else whole.site
    return Strategy(f"{page.name} x {site.name}", page, site)


def live_strategy(text: str, page_rank: str | None, site_rank: str | None, quality: str, has_history: bool) -> Strategy:
    """Return the strategy of a live crawl, with its quality from this source. Raise ConfigError if the page rank lacks an input."""
    _check_live_quality(quality)
    strategy = with_quality(with_halves(worded(text), page_rank, site_rank), quality)
    if "fetched_quality" in strategy.page.inputs and quality in FROM_LINKS:
        raise ConfigError(
            f"page rank {strategy.page.name!r} needs the quality of fetched pages: give --quality content:text,"
            " content:fasttext=FILE or content:MODULE:FUNCTION"
        )
    before = {"pagerank", "quality"}.intersection(strategy.page.inputs)
    if before and (quality in FROM_LINKS or quality.startswith(CONTENT)):
        raise ConfigError(
            f"page rank {strategy.page.name!r} needs the quality of pages before they are fetched:"
            " give --quality FILE or MODULE:FUNCTION"
        )
    check_inputs(strategy, quality not in FROM_LINKS, has_history)
    return strategy


def _check_live_quality(source: str) -> None:
    if source == STORED_CONTENT:
        raise ConfigError(f"--quality content: say what scores the pages; {CONTENT_FORMS}")
    if source.startswith(CONTENT):
        return  # crawler/quality/ checks the rest
    if source == "pagerank":
        raise ConfigError(
            "--quality pagerank: the PageRank of the live web is not known beforehand;"
            f" give {', '.join(FROM_LINKS)}, zipf, FILE or MODULE:FUNCTION"
        )
    check_quality(source, (*FROM_LINKS, "zipf"))
