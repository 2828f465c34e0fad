"""A strategy by the words that it was chosen with: a name, a file, a pair PAGE+SITE, and halves replaced. Not a strategy itself."""

import re
from pathlib import Path

from trapline.errors import ConfigError
from trapline.strategies.inputs import check_inputs, check_quality, with_quality
from trapline.strategies.registry import load_strategy, page_rank_named, pair, site_rank_named
from trapline.strategies.strategy import Strategy


def worded(text: str) -> Strategy:
    """The strategy that one word means; a pair's own name, such as 'opic x crawl-ability', will do too."""
    halves = split(text)
    return pair(*halves) if halves else load_strategy(text)


def absolute(text: str) -> str:
    """The same strategy, named so that it can be found from any folder.

    >>> absolute("opic+crawl-ability"), absolute("/x/mine.py+fifo")
    ('opic+crawl-ability', '/x/mine.py+fifo')
    """
    return "+".join(str(Path(word).absolute()) if word.endswith(".py") else word for word in split(text) or (text,))


def split(text: str) -> tuple[str, str] | None:
    """The halves of a pair, if the word means one.

    >>> split("opic+crawl-ability"), split("opic")
    (('opic', 'crawl-ability'), None)
    """
    halves = re.split(r" x |\+", text)
    return (halves[0], halves[1]) if len(halves) == 2 and not Path(text).is_file() else None


def named_page_rank(text: str, page_rank: str | None) -> str:
    """The page rank, as far as the words name one: those of a strategy are its own.

    >>> named_page_rank("quality+fifo", None), named_page_rank("fifo", "quality"), named_page_rank("crawl-ability", None)
    ('quality', 'quality', 'crawl-ability')
    """
    return page_rank or (split(text) or (text,))[0]


def with_halves(whole: Strategy, page_rank: str | None, site_rank: str | None) -> Strategy:
    """The strategy, with those of its halves replaced that are named."""
    if page_rank is None and site_rank is None:
        return whole
    page = page_rank_named(page_rank) if page_rank else whole.page
    site = site_rank_named(site_rank) if site_rank else whole.site
    return Strategy(f"{page.name} x {site.name}", page, site)


def live_strategy(text: str, page_rank: str | None, site_rank: str | None, quality: str, has_history: bool) -> Strategy:
    """The strategy of a live crawl, its quality by this source; `ConfigError` if its page rank needs what is not given."""
    _check_live_quality(quality)
    strategy = with_quality(with_halves(worded(text), page_rank, site_rank), quality)
    check_inputs(strategy, quality != "opic", has_history)
    if quality == "opic" and "pagerank" in strategy.page.inputs:
        raise ConfigError(
            f"page rank {strategy.page.name!r} needs to know what pages are worth before they are fetched:"
            " give --quality FILE or MODULE:FUNCTION"
        )
    return strategy


def _check_live_quality(source: str) -> None:
    check_quality(source)
    if source == "pagerank":
        raise ConfigError(
            "--quality pagerank: nobody knows it of the live web beforehand; give opic, zipf, FILE or MODULE:FUNCTION"
        )
