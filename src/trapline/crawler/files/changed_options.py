"""Applies the options that a resume has changed to the restored state: the rules and the strategy of the frontier.

The calls are in the frontier's log, like all others, and reach the database with the first batch of the run. If the crawl is killed
before, the next resume finds the old rules or the old strategy again, and makes the same calls.
"""

import time

from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.files.earlier_strategies import EarlierStrategies, fetches_so_far
from trapline.crawler.files.reading import Reading
from trapline.crawler.files.resume import CrawlState, settle
from trapline.crawler.files.run_options import options_of_runs, strategy_files
from trapline.crawler.robots.site_robots import set_crawl_delay
from trapline.frontier import AS_RULES
from trapline.frontier.journal import Journal
from trapline.strategies import Strategy


def apply_changes(
    reading: Reading, state: CrawlState, options: CrawlOptions, strategy: Strategy, keys: dict[str, str]
) -> None:
    """Give the frontier the rules and the strategy of these options. `keys`: of the table `meta`, which the run will set."""
    frontier, files = state.frontier, strategy_files(options)
    runs = EarlierStrategies(reading, options, strategy)
    has_strategy = runs.has_strategy(frontier.strategy_number, options, files)
    if frontier.rules == options.rules and has_strategy:
        return
    frontier.journal = Journal()
    now = max(time.time(), frontier.now)
    settle(frontier, now, state.refresher)
    if frontier.rules != options.rules:
        frontier.change_rules(options.rules, now)
        _set_crawl_delays(state, options.rules.delay_s, now)
    if not has_strategy:
        number, fetches = options_of_runs({**reading.meta(), **keys})[-1].run, fetches_so_far(reading)
        frontier.change_strategy(runs.change_to(strategy, options, fetches, frontier.pages), number, fetches, now)


def _set_crawl_delays(state: CrawlState, delay_s: float, now: float) -> None:
    """Compare the Crawl-delays of robots.txt files with the new delay of all sites: the longer one holds."""
    for site in state.sites:
        own_s, _ = state.frontier.site_rules(site.id)
        crawl_delay_s = (site.robots.crawl_delay_s or 0.0) if site.robots is not None else max(own_s, 0.0)
        if crawl_delay_s or own_s != AS_RULES:
            set_crawl_delay(state.frontier, site, crawl_delay_s, delay_s, now)
