"""The strategies that a crawl had in its runs, for the replay of its log, and for a run that changes the strategy.

The log says when the strategy changed, and to that of which run. This module finds that strategy again by the options of the run
(run_options.py), and from the database what its page rank needs to know of the pages that were fetched until then.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.page_quality import ProgramQuality, given_by
from trapline.crawler.files.reading import HAS_LINKS, Reading
from trapline.crawler.files.run_options import RunOptions, changed_files, options_of_runs, with_kept_files
from trapline.errors import ConfigError, InvariantError
from trapline.frontier import Frontier
from trapline.frontier.changes import StrategyChange
from trapline.frontier.layout import QUALITY_UNKNOWN, Array
from trapline.strategies import Strategy
from trapline.strategies.base.choice import live_strategy
from trapline.strategies.base.inputs import CONTENT, PROGRAM
from trapline.strategies.base.url_inputs import STATE_PAGES, StatePages

_URLS_AT_ONCE = 4096
_QUALITIES = ("quality", "pagerank")  # inputs of page ranks that --quality gives
# In place of the user's, which knows the quality of a page only when it comes.
_NO_PROGRAM = ProgramQuality(lambda fetch: 0.0)
_SCORED = "select page, quality from page_quality where run < ?"
_LINKS = f"select seq, page, links from fetch where seq > ? and seq <= {{}} and {HAS_LINKS} order by seq limit 4096"


def strategy_of(options: CrawlOptions) -> Strategy:
    return live_strategy(
        options.strategy, options.page_rank, options.site_rank, options.quality, options.history is not None
    )


class EarlierStrategies:
    def __init__(
        self, reading: Reading, options: CrawlOptions, strategy: Strategy, has_present_files: bool = False
    ) -> None:
        """`strategy`: the strategy of these options, which is loaded already. `has_present_files`: the strategy files as they are
        now will do, because no call of the log will be repeated."""
        self._has_present_files = has_present_files
        self._reading, self._options, self._strategy = reading, options, strategy
        meta = reading.meta()
        self._runs = {one.run: one for one in options_of_runs(meta)}
        self._changed_files = changed_files(meta, options)

    @property
    def first(self) -> RunOptions:
        return self._runs[min(self._runs)]

    def strategy(self, number: int) -> Strategy:
        """Return the strategy of a run. Raise `ConfigError` if one of its files is gone, and the folder has no copy."""
        if number not in self._runs:
            raise ConfigError(
                f"{self._reading.folder}: its database has no options of run {number}; restore crawl.db from a copy"
            )
        run = self._runs[number]
        options = run.options if self._has_present_files else with_kept_files(self._reading.folder, run)
        is_present = run.has_ranks_of(self._options) and options is run.options
        return self._strategy if is_present else strategy_of(options)

    def has_strategy(self, number: int, options: CrawlOptions, files: Mapping[str, str]) -> bool:
        """Return whether a run had the strategy of these options, made from the same files."""
        run = self._runs[number]
        return run.has_ranks_of(options) and (not run.files or dict(run.files) == dict(files))

    def change(self, number: int, fetches: int, frontier: Frontier) -> StrategyChange:
        """Return the change to the strategy of a run, after this number of fetches. `frontier`: in its state before the change."""
        strategy = self.strategy(number)
        return self.change_to(strategy, self._runs[number].options, number, fetches, frontier)

    def change_to(
        self, strategy: Strategy, options: CrawlOptions, number: int, fetches: int, frontier: Frontier
    ) -> StrategyChange:
        """Return the change to the strategy of these options. Raise `ConfigError` if an input of its page rank is not known for
        the pages so far."""
        inputs = _program_qualities(frontier, strategy) if options.quality == PROGRAM else {}
        is_known_late = options.quality == PROGRAM or options.quality.startswith(CONTENT)
        if "fetched_quality" in strategy.page.inputs and is_known_late:
            inputs["fetched_quality"] = self._fetched_qualities(number, frontier.pages)
        given = given_by(options, strategy, _NO_PROGRAM if options.quality == PROGRAM else None).inputs
        by_url = {name: values for name, values in given.items() if name not in inputs}
        state_pages = {name: StatePages(name) for name in strategy.page.inputs if name in STATE_PAGES}
        inputs |= {name: np.zeros(frontier.pages) for name in (*by_url, *state_pages)}
        for first, urls in self._urls(frontier.pages) if by_url or state_pages else ():
            piece = slice(first, first + len(urls))
            for name, values in by_url.items():
                inputs[name][piece] = values(urls)
            for name, pages in state_pages.items():
                inputs[name][piece] = pages.of(urls, first)
        return StrategyChange(strategy, inputs, self._links(fetches))

    def _fetched_qualities(self, number: int, pages: int) -> Array:
        """Return the quality of each page that was scored before run `number`."""
        values = np.full(pages, QUALITY_UNKNOWN)
        for page, quality in self._reading.connection.execute(_SCORED, (number,)):
            values[page] = quality
        return values

    def _urls(self, pages: int) -> Iterator[tuple[int, list[str]]]:
        """Yield the URLs of all pages in pieces, each with the number of its first page."""
        for first in range(0, pages, _URLS_AT_ONCE):
            last = min(first + _URLS_AT_ONCE, pages) - 1
            sql = "select url from page where id between ? and ? order by id"
            yield first, [url for (url,) in self._reading.connection.execute(sql, (first, last))]

    def _links(self, fetches: int) -> Iterator[tuple[int, Array]]:
        """Yield each fetched page with its links at its first fetch."""
        seen: set[int] = set()
        after = -1
        while rows := self._reading.connection.execute(_LINKS.format(fetches), (after,)).fetchall():
            after = rows[-1][0]
            for _, page, links in rows:
                if page not in seen:
                    seen.add(page)
                    yield page, np.frombuffer(links, "<i4")

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """If a replay gives other answers than the log has, and a strategy file has changed, say so."""
        try:
            yield
        except InvariantError as error:
            if not self._changed_files:
                raise
            raise ConfigError(
                f"{self._changed_files[0]} has changed since the crawl was interrupted, but the crawl needs the old file once more;"
                " restore the old file, resume the crawl, stop the crawl with Ctrl-C, and only then change the file"
            ) from error


def _program_qualities(frontier: Frontier, strategy: Strategy) -> dict[str, Array]:
    """Return the qualities that a page rank needs, in a crawl whose program computes them. Only the frontier has those of the pages so
    far, and only if its page rank uses them."""
    needed = [name for name in _QUALITIES if name in strategy.page.inputs]
    old = frontier.strategy.page
    known = [old.columns.index(name) for name in _QUALITIES if name in old.inputs]
    if needed and not known:
        raise ConfigError(
            f"strategy {strategy.name!r} needs the values of the program's `quality`, but under strategy {frontier.strategy.name!r}"
            " the crawl has not kept these values; keep the old strategy, or begin a new crawl"
        )
    return {name: frontier.column(known[0]).copy() for name in needed}


def fetches_so_far(reading: Reading) -> int:
    """Return the number of the last fetch that is committed."""
    (last,) = reading.connection.execute("select coalesce(max(seq), 0) from fetch").fetchone()
    return int(last)
