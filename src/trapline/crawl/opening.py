"""A crawl before it runs. All that can be wrong is looked for here, what is quick to see first, and nothing is made before it
was found right: a mistake costs the user neither a folder nor a wait.

`prepare_new` or `prepare_old`, then `opened`, then run.py. Between the first two is the time to compile: they call no kernel.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import uvloop

from trapline.crawl import resume
from trapline.crawl.options import CrawlOptions, RefreshOptions
from trapline.crawl.seeds import check_seeds
from trapline.crawl.store.folder import Claim, check_free, claim_existing, claim_new
from trapline.crawl.store.reading import Reading
from trapline.crawl.store.settings import StoreSettings
from trapline.crawl.worth import Given, given_by
from trapline.errors import ConfigError
from trapline.strategies import Strategy
from trapline.strategies import quality as known_quality
from trapline.strategies.choice import named_page_rank
from trapline.strategies.inputs import default_rules
from trapline.strategies.live_inputs import try_function

_PAGES_EXPECTED = 35_000  # nobody knows; it only says how often PageRank is run, if nobody does: every 1,000 pages


@dataclass(frozen=True, slots=True)
class Prepared:
    """A crawl that can be, as far as is known without the long work."""

    folder: Path
    options: CrawlOptions
    strategy: Strategy
    new: bool
    notes: tuple[str, ...] = ()  # what the user may want to know before it begins
    began: float | None = None  # if it is a new part of a crawl that has begun


@dataclass(frozen=True, slots=True)
class Opened:
    """A crawl whose folder is ours, ready to run."""

    options: CrawlOptions
    strategy: Strategy
    new: bool
    given: Given
    claim: Claim
    state: resume.State


def prepare_new(options: CrawlOptions, folder: Path) -> Prepared:
    """`ConfigError` if the options or the folder will not do, or there is nobody to crawl. It may ask name servers."""
    strategy = resume.strategy_of(options)
    # No lease runs out: our robots end their visits themselves, and a second one at a site would be impolite.
    rules = replace(default_rules(strategy, options.rules, _PAGES_EXPECTED), lease_s=math.inf)
    options = replace(options, rules=rules)
    options.scope_of_crawl()
    store_settings(options)
    try_function(options.quality, options.seeds[:1], options.modules)
    check_free(folder)
    return Prepared(folder, options, strategy, True, (*_notes(options), *uvloop.run(check_seeds(options))))


def _notes(options: CrawlOptions) -> Iterator[str]:
    if options.http == "pipelining" and options.pause_s > 0.0:
        yield "--http pipelining sends several requests at once only where there is no pause: give --pause 0"
    if options.quality == "opic" and named_page_rank(options.strategy, options.page_rank) == known_quality.PAGE.name:
        yield "page rank 'quality' goes by OPIC's cash, which is --quality opic; for another give --quality FILE or MODULE:FUNCTION"


def prepare_old(folder: Path, refresh: Mapping[str, Any] | None = None, **changes: float) -> Prepared:
    """A crawl that is to go on. `changes`: goals other than those it began with; `refresh`: the same for how pages are fetched again."""
    claim_existing(folder).release()  # now, and not when all is compiled: somebody may be crawling there
    reading = Reading(folder)
    reading.check()
    options = changed(CrawlOptions.from_json(reading.meta()["options"]), refresh, **changes)
    reading.close()
    return Prepared(folder, options, resume.strategy_of(options), False)


def changed(options: CrawlOptions, refresh: Mapping[str, Any] | None, **changes: float) -> CrawlOptions:
    """With other goals, of the crawl and of refresh."""
    options = replace(options, **changes)  # type: ignore[arg-type]  # goals
    return replace(options, refresh=_refresh_changed(options.refresh, refresh)) if refresh else options


def _refresh_changed(told: RefreshOptions | None, changes: Mapping[str, Any]) -> RefreshOptions:
    if told is None:
        raise ConfigError("that crawl fetches every page once; begin a new one with --refresh")
    return replace(told, **changes)


def opened(prepared: Prepared, tell: resume.Tell = resume.nobody) -> Opened:
    """Read what the page rank wants to know beforehand, then make the folder, or take it and read how the crawl stood."""
    options, strategy, folder = prepared.options, prepared.strategy, prepared.folder
    given = given_by(options, strategy)
    claim = claim_new(folder, asdict(options), prepared.began) if prepared.new else claim_existing(folder)
    try:
        fresh = prepared.new
        state = resume.fresh(folder, options, strategy) if fresh else resume.restored(folder, options, strategy, tell)
    except BaseException:
        claim.release()
        raise
    return Opened(options, strategy, prepared.new, given, claim, state)


def store_settings(options: CrawlOptions) -> StoreSettings:
    return StoreSettings(user_agent=options.user_agent, operator=options.contact, metadata=options.metadata)
