"""The options that a resume changes: which ones may change, and the restored state under the new ones.

`with_changes` makes the new options. `apply_changes` gives the frontier the rules, the settings of single sites and the strategy of
these options. Its calls are in the frontier's log, like all others, and reach the database with the first batch of the run. If the
crawl is killed before, the next resume finds the old rules, settings or strategy again, and makes the same calls. A new scope is
applied when the run begins (crawler/engine/scope_change.py).
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from trapline.crawler.discovery.site_settings import as_tables
from trapline.crawler.discovery.sites import Site
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.settings import CrawlSettings
from trapline.crawler.files.earlier_strategies import EarlierStrategies, fetches_so_far
from trapline.crawler.files.reading import Reading
from trapline.crawler.files.resume import CrawlState, settle
from trapline.crawler.files.run_options import options_of_runs, strategy_files
from trapline.crawler.robots.site_robots import set_crawl_delay
from trapline.defaults import pause_s as default_pause_s
from trapline.errors import ConfigError
from trapline.frontier import AS_RULES, Frontier
from trapline.frontier.journal import Journal
from trapline.strategies import Strategy

# ---- What may change.

_RULES = {
    "delay": "delay_s", "ip_delay": "ip_delay_s", "small_site_pages": "small_site_pages",
    "small_site_delay": "small_site_delay_s", "per_connection": "per_connection", "retries": "retries", "backoff": "backoff_s",
    "max_backoff": "backoff_most_s", "max_pages_per_site": "pages_per_site", "max_depth": "depth_static",
    "max_depth_dynamic": "depth_dynamic",
}  # fmt: skip
_OPTIONS = {
    "quality_processes": "quality_processes",
    "connections": "connections", "pause": "pause_s", "bandwidth": "bandwidth", "site_bandwidth": "site_bandwidth",
    "max_pages": "max_pages", "max_time": "max_seconds", "max_bytes": "max_bytes", "strategy": "strategy",
    "page_rank": "page_rank", "site_rank": "site_rank", "scope": "scope", "include": "include", "exclude": "exclude",
    "max_failed_visits": "abandon", "contact": "contact", "hosts": "hosts", "nameserver": "nameservers",
    "allow_private": "allow_private", "insecure": "insecure", "credentials": "credentials", "cookies": "cookies",
    "proxy": "proxy", "proxy_names": "proxy_names", "site": "sites", "log_level": "log_level", "log_format": "log_format",
    "log_size": "log_bytes",
}  # fmt: skip
_LIMITS = {"timeout": "total_s", "max_body": "body_bytes"}
CHANGEABLE = frozenset((*_RULES, *_OPTIONS, *_LIMITS))
"""The settings that a resumed crawl may change."""
NEED_OTHERS = frozenset(("proxy_names", "site"))
"""The settings among them that can be checked only together with others that the crawl has."""
_MIXED = "the crawl has measured the quality of its pages with it"
_TIMES = "the crawl has estimated the times of its sites with it"
_OWNERS = "it decides which process owns a page"
FIXED = {
    "seed": "the random ranks of the waiting pages depend on it",
    "quality": _MIXED,
    "history": _MIXED,
    "sitemaps": "the crawl looks for the sitemaps of a site when it reads robots.txt, which it has already done",
    "refresh": "a crawl must record changes of pages from its first page on",
    "refresh_policy": "the crawl keeps its records of changes in the form of this policy",
    "refresh_option": "the crawl keeps its records of changes in the form of this policy",
    "http": "the crawl has observed with it how many requests servers allow per connection",
    "batch": "a crawl either has batches from its beginning or never has them",
    "batch_ahead": "a crawl either has batches from its beginning or never has them",
    "batch_min_active": "a crawl either has batches from its beginning or never has them",
    "rescore": "the crawl computes scores at fixed numbers of pages",
    "estimator": _TIMES,
    "alpha": _TIMES,
    "first_connection": _TIMES,
    "first_response": _TIMES,
    "first_requests": _TIMES,
    "own_hosts": _OWNERS,
    "mode": _OWNERS,
    "partition": _OWNERS,
    "suffixes": _OWNERS,
    "exchange_every": "the processes have counted the pages between two exchanges with it",
    "replicate": "the processes have left the replicated URLs out of their exchanges from the beginning",
    "in_links": "the processes have left the replicated URLs out of their exchanges from the beginning",
    "metadata": "the archives have these records for all pages or for none",
    "warc_size": "all archives of a crawl have the same maximum size",
    "warc_prefix": "all archives of a crawl have the same prefix",
}
"""Why other settings cannot change."""


def with_changes(options: CrawlOptions, changes: Mapping[str, Any]) -> CrawlOptions:
    """Return the options of a resumed crawl with these settings changed. Raise `ConfigError` if one is invalid or cannot change."""
    refuse_unchangeable(changes)
    if not changes:
        return options
    settings = CrawlSettings.of({**_checked_together(options, changes), **changes})
    given = settings.options(options.seeds)  # raises ConfigError for an invalid setting
    if "per_connection" in changes and options.http == "1.0":
        raise ConfigError("--per-connection has no effect with --http 1.0, which fetches one page per visit; omit it")
    rules = replace(
        options.rules, **{_RULES[name]: getattr(given.rules, _RULES[name]) for name in changes if name in _RULES}
    )
    limits = replace(
        options.limits, **{_LIMITS[name]: getattr(given.limits, _LIMITS[name]) for name in changes if name in _LIMITS}
    )
    new = {_OPTIONS[name]: getattr(given, _OPTIONS[name]) for name in changes if name in _OPTIONS}
    if "delay" in changes and "pause" not in changes and options.pause_s == default_pause_s(options.rules.delay_s):
        new["pause_s"] = default_pause_s(rules.delay_s)  # the default follows the delay
    if new.get("proxy") == "":
        new["proxy_names"] = False  # it has no effect without a proxy
    return replace(options, rules=rules, limits=limits, **new)


def _checked_together(options: CrawlOptions, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a crawl on which it depends whether changes are valid and have an effect."""
    rules = {name: getattr(options.rules, rule) for name, rule in _RULES.items()}
    if not {**rules, **changes}["small_site_pages"]:
        del rules["small_site_delay"]  # it has no effect, and the crawl may have begun with one
    pause = {} if options.pause_s == default_pause_s(options.rules.delay_s) else {"pause": options.pause_s}
    return {**rules, **pause, "http": options.http, "proxy": options.proxy, "site": as_tables(options.sites)}


def refuse_unchangeable(names: Iterable[str]) -> None:
    """Raise `ConfigError` if a resumed crawl cannot change one of these settings."""
    for name in sorted(set(names) - CHANGEABLE):
        raise ConfigError(_why_fixed(name))


def _why_fixed(name: str) -> str:
    option = f"--{name.replace('_', '-')}"
    reason = FIXED.get(name, "it is fixed when the crawl begins")
    return f"{option} cannot change with --resume: {reason}; omit {option}, or begin a new crawl"


# ---- The restored state.


def apply_changes(
    reading: Reading, state: CrawlState, options: CrawlOptions, strategy: Strategy, keys: dict[str, str]
) -> None:
    """Give the frontier the rules, the settings of sites and the strategy of these options. `keys`: of the table `meta`, which the run
    will set."""
    frontier, files = state.frontier, strategy_files(options)
    runs = EarlierStrategies(reading, options, strategy)
    has_strategy = runs.has_strategy(frontier.strategy_number, options, files)
    has_other_tables = any(run.options.sites != options.sites for run in options_of_runs(reading.meta()))
    if frontier.rules == options.rules and has_strategy and not has_other_tables:
        return
    frontier.journal = Journal()
    now = max(time.time(), frontier.now)
    settle(frontier, now, state.refresher)
    has_other_rules = frontier.rules != options.rules
    if has_other_rules:
        frontier.change_rules(options.rules, now)
    for site in state.sites if has_other_rules or has_other_tables else ():
        _set_pace(frontier, site, options.rules.delay_s, now)
        if has_other_tables:
            _set_budget(frontier, site, now)
    if not has_strategy:
        number, fetches = options_of_runs({**reading.meta(), **keys})[-1].run, fetches_so_far(reading)
        frontier.change_strategy(runs.change_to(strategy, options, number, fetches, frontier), number, fetches, now)


def _set_pace(frontier: Frontier, site: Site, delay_s: float, now: float) -> None:
    """Compare the Crawl-delay of the site's robots.txt with the new delay of all sites and of its own settings: the longest holds."""
    own_s, own_k = frontier.site_rules(site.id)
    crawl_delay_s = (site.robots.crawl_delay_s or 0.0) if site.robots is not None else max(own_s, 0.0)
    if crawl_delay_s or site.settings is not None or (own_s, own_k) != (AS_RULES, AS_RULES):
        set_crawl_delay(frontier, site, crawl_delay_s, delay_s, now)


def _set_budget(frontier: Frontier, site: Site, now: float) -> None:
    """Give the site the page budget of its settings, unless it is abandoned or belongs to another partition now."""
    own = site.settings.max_pages if site.settings is not None else None
    wanted = AS_RULES if own is None else own
    if frontier.site_budgets[site.id] not in (0, wanted):
        frontier.set_site(site.id, now, pages=wanted)
