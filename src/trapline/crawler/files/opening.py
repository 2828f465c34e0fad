"""Opening a crawl: all checks before it runs.

The quick checks come first, and nothing is created before all checks have passed, so that a mistake costs the user
neither a folder nor a wait. The order is `prepare_new` or `prepare_old`, then `opened`, then crawler/engine/run.py.
Kernels are compiled between the first two; the prepare functions call no kernel.
"""

import asyncio
import math
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import uvloop

from trapline import __version__
from trapline.crawler.discovery.scope import seeds_elsewhere
from trapline.crawler.engine import scope_change
from trapline.crawler.engine.options import CrawlOptions, RefreshOptions
from trapline.crawler.engine.page_quality import Given, ProgramQuality, given_by
from trapline.crawler.files import resume
from trapline.crawler.files.changed_options import apply_changes, with_changes
from trapline.crawler.files.layout import FolderClaim, check_free, claim_existing, claim_new
from trapline.crawler.files.reading import Reading
from trapline.crawler.files.run_options import changed_files, keep_files, noted_options, strategy_files
from trapline.crawler.handler.user_handler import check_handler
from trapline.crawler.quality.scorer_pool import check_scorer
from trapline.crawler.store.settings import StoreSettings
from trapline.errors import ConfigError
from trapline.fetch.address import Guard
from trapline.fetch.dns import DnsAnswer, Resolver
from trapline.fetch.http.credentials import is_open_to_others
from trapline.fetch.http.private_headers import read_secrets
from trapline.fetch.http.proxy import read_proxy
from trapline.fetch.urls import host_port, origin
from trapline.progress import ProgressCallback, no_progress
from trapline.strategies import Strategy
from trapline.strategies import quality as known_quality
from trapline.strategies.base.choice import named_page_rank
from trapline.strategies.base.inputs import FROM_LINKS, default_rules
from trapline.strategies.base.live_inputs import try_function

# ---- Check of the seeds, before a folder is created, so that a wrong URL costs nothing.

_HOSTS = 64  # the number of hosts that are looked up, if the list of seeds is longer
_WITHIN_S = 4.0  # the crawl itself waits longer for a name server, but the user should not wait so long at the start
_NOTES = 5  # the most seeds named in notes


async def check_seeds(options: CrawlOptions) -> tuple[str, ...]:
    """Raise `ConfigError` if no host of a seed has an address that may be connected to.

    Otherwise return one line for each checked seed whose host has none; many are summarized.
    """
    seed_of_host: dict[str, str] = {}
    for seed in options.seeds:
        seed_of_host.setdefault(host_port(origin(seed))[1], seed)
    checked = dict(islice(seed_of_host.items(), _HOSTS))
    answers = await _looked_up(options, list(checked))
    guard = Guard(options.allow_private)
    unreachable = [
        f"{seed}: {_why(host, answer, guard)}"
        for (host, seed), answer in zip(checked.items(), answers, strict=True)
        if all(guard.check(address) for address in answer.addresses)
    ]
    if len(unreachable) == len(seed_of_host):
        raise ConfigError(unreachable[0])
    more = len(unreachable) - _NOTES
    return (*unreachable[:_NOTES], *([f"and {more:,} more seeds that cannot be fetched"] if more > 0 else []))


async def _looked_up(options: CrawlOptions, hosts: list[str]) -> list[DnsAnswer]:
    resolver = Resolver(options.hosts, options.nameservers, try_s=_WITHIN_S / 2, tries=2, whole_s=_WITHIN_S)
    try:
        resolver.bind()
        return await asyncio.gather(*map(resolver.addresses, hosts))
    finally:
        await resolver.close()


def _why(host: str, answer: DnsAnswer, guard: Guard) -> str:
    if answer.retry:
        return f"no name server answered for {host}: {answer.reason}; check the network, or give --nameserver ADDRESS"
    if not answer.addresses:
        return f"no such host: {host}; check its spelling, or give its address in a file with --hosts"
    kind = guard.check(answer.addresses[0])
    if Guard(allow_private=True).check(answer.addresses[0]):
        return f"{answer.addresses[0]} is a {kind} address, which is never connected to; give another URL"
    return f"{answer.addresses[0]} is a {kind} address; give --allow-private to connect to such addresses"


# ---- Opening.

# The size of the crawl is not known. This value only sets how often PageRank is computed, if the user does not say: every
# 1,000 pages.
_PAGES_EXPECTED = 35_000


@dataclass(frozen=True, slots=True)
class Prepared:
    """A crawl that has passed the quick checks."""

    folder: Path | None  # None: the crawl writes nothing to disk
    options: CrawlOptions
    strategy: Strategy
    new: bool
    notes: tuple[str, ...] = ()  # hints for the user before the crawl begins
    began: float | None = None  # when the crawl began, if this is a new part of an existing one
    seen_key: bytes = b""  # of the fingerprints of URLs, which the parts of a crawl share; b"": the crawl has its own


@dataclass(frozen=True, slots=True)
class Opened:
    """A crawl that is ready to run: its folder, if it has one, is claimed, and its state is loaded."""

    options: CrawlOptions
    strategy: Strategy
    new: bool
    given: Given
    claim: FolderClaim | None  # None: the crawl writes nothing to disk
    state: resume.CrawlState
    accept: Callable[[str], bool] | None = None  # of the program that takes the pages: rejects URLs in scope
    keys: Mapping[str, str] = field(default_factory=dict)  # of the table `meta`, to be set when the run begins
    has_new_scope: bool = False  # whether pages may have left or entered the scope since the last run

    @property
    def folder(self) -> Path | None:
        return self.claim.path if self.claim else None

    def release(self) -> None:
        if self.claim is not None:
            self.claim.release()


def prepare_new(options: CrawlOptions, folder: Path | None) -> Prepared:
    """Check the options, the folder and the seeds of a new crawl. Raise `ConfigError` if one of them is unusable.

    This may query name servers.
    """
    strategy = resume.strategy_of(options)
    # Leases never expire: our visits end by themselves, and a second visit to a site at the same time would be impolite.
    rules = replace(default_rules(strategy, options.rules, _PAGES_EXPECTED), lease_s=math.inf)
    options = replace(options, rules=rules)
    options.scope_of_crawl()
    store_settings(options)
    try_function(options.quality, options.seeds[:1], options.modules)
    check_scorer(options)
    check_handler(options)
    if folder is not None:
        check_free(folder)
    elif options.refresh is not None:
        raise ConfigError(
            "a crawl without a folder keeps no copies to refresh; give it a folder, or fetch every page once"
        )
    elif options.requisites:
        raise ConfigError("a crawl without a folder keeps no requisites; give it a folder, or omit requisites")
    notes = (*_notes(options), *notes_on_requests(options))
    return Prepared(folder, options, strategy, True, (*notes, *uvloop.run(check_seeds(options))))


def _notes(options: CrawlOptions) -> Iterator[str]:
    if options.http == "pipelining" and options.pause_s > 0.0:
        yield "--http pipelining sends several requests at once only without a pause; also give --pause 0"
    if (
        options.quality in FROM_LINKS
        and named_page_rank(options.strategy, options.page_rank) == known_quality.PAGE.name
    ):
        yield (
            f"page rank 'quality' is computed from links (--quality {options.quality}); for another quality, give --quality FILE or"
            " MODULE:FUNCTION"
        )


def notes_on_requests(options: CrawlOptions) -> Iterator[str]:
    """Read the files with secrets, which raises `ConfigError` if that fails, and yield hints about requests."""
    proxy = read_proxy(options.proxy, options.proxy_names).located() if options.proxy else None
    secrets = read_secrets(options.credentials, options.cookies, options.accept_cookies, proxy)
    if secrets is not None and secrets.proxy is not None:
        secrets.proxy.check()
    foreign = seeds_elsewhere(options.seeds, options.own_hosts)
    if options.no_robots and foreign:
        raise ConfigError(
            f"seed {foreign[0]}: with --no-robots, the crawl fetches from the hosts of --own-hosts only; add this host, or omit the seed"
        )
    for option, file in (("credentials", options.credentials), ("cookies", options.cookies)):
        if file and is_open_to_others(Path(file)):
            yield f"--{option} {file}: other users of this machine can read this file; run: chmod 600 {shlex.quote(file)}"
    known = secrets.credentials.origins if secrets is not None and secrets.credentials is not None else ()
    for site in dict.fromkeys(map(origin, options.seeds)):
        secure = site.replace("http://", "https://", 1)
        if site != secure and secure in known and site not in known:
            yield f'--credentials: the crawl sends the credentials of {secure} over https only; for {site}, also write [site."{site}"]'
    if options.user_agent and options.robots_token.lower() not in options.user_agent.lower():
        yield f"the crawl obeys robots.txt rules for {options.robots_token}, which --user-agent does not contain; also give --robots-token"


def prepare_old(
    folder: Path, refresh: Mapping[str, Any] | None = None, settings: Mapping[str, Any] | None = None, **changes: Any
) -> Prepared:
    """Check a crawl that is to be resumed. `settings`: settings that replace those it had, by their names in `CrawlSettings`;
    `changes`: the same by their names in `CrawlOptions`; `refresh`: the same for refresh."""
    claim_existing(folder).release()  # fails now, and not only after compilation, if another process crawls there
    reading = Reading(folder)
    reading.check()
    meta = reading.meta()
    reading.close()
    options, strategy = changed(CrawlOptions.from_json(meta.get("options", "")), refresh, settings, **changes)
    return Prepared(folder, options, strategy, False, (*_file_notes(meta, options), *notes_on_requests(options)))


def _file_notes(meta: Mapping[str, str], options: CrawlOptions) -> Iterator[str]:
    for path in changed_files(meta, options):
        yield f"{path} has changed since the last run of this crawl; all waiting pages are ranked by the new version"


def changed(
    options: CrawlOptions, refresh: Mapping[str, Any] | None, settings: Mapping[str, Any] | None = None, **changes: Any
) -> tuple[CrawlOptions, Strategy]:
    """Return the options with these changes, and their strategy. Raise `ConfigError` if a change is invalid or impossible."""
    new = with_changes(replace(options, **changes), settings or {})
    new = replace(new, refresh=_refresh_changed(new.refresh, refresh)) if refresh else new
    strategy = resume.strategy_of(new)
    if settings:
        new = replace(new, rules=default_rules(strategy, new.rules, _PAGES_EXPECTED))
        new.scope_of_crawl()
    if bool(new.rules.batch) != bool(options.rules.batch):
        raise ConfigError(
            f"strategy {strategy.name!r} chooses pages in batches, but this crawl has no batches; begin a new crawl"
        )
    return new, strategy


def _refresh_changed(options: RefreshOptions | None, changes: Mapping[str, Any]) -> RefreshOptions:
    if options is None:
        raise ConfigError("this crawl fetches every page only once; begin a new crawl with --refresh")
    return replace(options, **changes)


def opened(
    prepared: Prepared, progress: ProgressCallback = no_progress, quality: ProgramQuality | None = None
) -> Opened:
    """Read the inputs of the page rank, then create the folder of a new crawl, or claim an old one and restore its state.
    `quality`: computes the quality of fetched pages, if the program does that."""
    options, strategy, folder = prepared.options, prepared.strategy, prepared.folder
    given = given_by(options, strategy, quality)
    if folder is None:
        return Opened(options, strategy, True, given, None, resume.fresh(None, options, strategy))
    claim = claim_new(folder, asdict(options), prepared.began) if prepared.new else claim_existing(folder)
    try:
        fresh = prepared.new
        state = (
            resume.fresh(folder, options, strategy, prepared.seen_key)
            if fresh
            else resume.restored(folder, options, strategy, progress, prepared.seen_key)
        )
        keys, has_new_scope = _applied(folder, state, options, strategy)
    except BaseException:
        claim.release()
        raise
    return Opened(options, strategy, prepared.new, given, claim, state, keys=keys, has_new_scope=has_new_scope)


def _applied(
    folder: Path, state: resume.CrawlState, options: CrawlOptions, strategy: Strategy
) -> tuple[dict[str, str], bool]:
    """Apply what a resume has changed. Return the keys of `meta` that the run sets, and whether the scope has changed."""
    with closing(Reading(folder)) as reading:
        meta = reading.meta()
        files = strategy_files(options)
        keep_files(folder, files)
        keys = noted_options(meta, asdict(options), files, time.time())
        if "runs" in meta and scope_change.differs(CrawlOptions.from_json(meta.get("options", "")), options):
            keys[scope_change.KEY] = "1"
        apply_changes(reading, state, options, strategy, keys)
        return keys, scope_change.KEY in keys or scope_change.KEY in meta


def store_settings(options: CrawlOptions) -> StoreSettings:
    return StoreSettings(
        name=options.warc_prefix,
        user_agent=options.whole_user_agent,
        software=f"Trapline {__version__}",
        operator=options.contact,
        warc_bytes=options.warc_bytes,
        metadata=options.metadata,
        robots="ignore" if options.no_robots else "obey",
        log_level=options.log_level,
        log_format=options.log_format,
        log_bytes=options.log_bytes,
    )
