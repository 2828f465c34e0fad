"""Control of a running crawl: executes the actions of its user, each in one place.

Actions come from action_handler.py or, in one of several partitions, from the coordinator. All that an action changes in the frontier
is a call in its log, and goes to the store in the same batch as the options that the action changes. So an action is durable as
a whole, or not at all, and a replay makes the same calls.
"""

import json
from collections import deque
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, replace

from trapline.crawler.control.action_handler import ENDING, Counts, Done, delay_of, names_of, tables_after
from trapline.crawler.discovery.scope import is_among
from trapline.crawler.discovery.site_settings import settings_of
from trapline.crawler.discovery.sites import Site
from trapline.crawler.engine.records import BLOCKED, BY_SETTINGS
from trapline.crawler.engine.settings import seed_of
from trapline.crawler.engine.wiring import Parts
from trapline.crawler.files import site_table
from trapline.crawler.files.control_mailbox import (
    ADD_SEEDS,
    BLOCK,
    CONTINUE,
    DELAY,
    EXPORT_SITES,
    PAUSE,
    STOP,
    UNBLOCK,
    Action,
)
from trapline.crawler.files.opening import Opened
from trapline.crawler.files.reading import Reading
from trapline.crawler.files.run_options import changed_sites
from trapline.crawler.robots.site_robots import set_crawl_delay
from trapline.errors import ConfigError
from trapline.fetch.urls import host_port, origin
from trapline.frontier import AS_RULES
from trapline.frontier.layout import UNKNOWN

_OF_A_RUN = (PAUSE, CONTINUE, STOP, EXPORT_SITES)  # actions that a resume does not keep


class CrawlControl:
    def __init__(self, crawl: Opened, parts: Parts, stop: Callable[[], None]) -> None:
        """`stop`: stops the crawl as SIGTERM does."""
        self._options, self._folder, self._stop = crawl.options, crawl.folder, stop
        self._crawler, self._outbox, self._web = parts.crawler, parts.outbox, parts.web
        self._frontier, self._sites = crawl.state.frontier, crawl.state.sites
        self._link_resolver = parts.link_resolver
        self._undurable: deque[tuple[int, Done, Counts]] = deque()  # by batch: whom to tell when it is committed
        self._number = 0  # of the last action; later actions have larger ones
        self._methods: dict[str, Callable[[Action], Counts]] = {
            PAUSE: self._pause,
            CONTINUE: self._continue,
            STOP: self._stop_crawl,
            BLOCK: self._block,
            UNBLOCK: self._unblock,
            DELAY: self._set_delay,
            ADD_SEEDS: self._add_seeds,
            EXPORT_SITES: self._export_sites,
        }

    def begin(self) -> None:
        """Block and unblock sites as their settings say, which may have changed since the last run."""
        for site in self._sites if self._sites.has_tables else ():
            if _is_blocked(site) and self._frontier.site_budgets[site.id] != 0:
                self._crawler.abandon(site, BLOCKED, BY_SETTINGS)
        for number in self._blocked_before():
            site = self._sites[number]
            if not _is_blocked(site) and self._link_resolver.is_ours(f"{site.origin}/"):
                self._take_back(site, BLOCKED)

    def obey(self, action: Action, done: Done, number: int = 0) -> None:
        """Execute an action, and call `done` once its effects are on disk. Raise `ConfigError` if it cannot be executed. `number`: that
        of the action in all partitions, if there are several."""
        if self._crawler.stopped_by:
            raise ConfigError(ENDING)
        self._number = number or max(self._number + 1, int(self._crawler.now() * 1000))
        counts = self.execute(action)
        if action.name in _OF_A_RUN:
            done(counts)
            return
        self._outbox.flush(is_due=True)
        self._undurable.append((self._outbox.number, done, counts))

    def execute(self, action: Action) -> Counts:
        """Execute an action. Its effects are durable with the next batch. Raise `ConfigError` if it cannot be executed."""
        method = self._methods.get(action.name)
        if method is None:
            raise ConfigError(f"this crawl cannot execute the action {action.name!r}")
        return method(action)

    def committed(self, batch: int) -> None:
        """Note that all batches up to this one are on disk."""
        while self._undurable and self._undurable[0][0] <= batch:
            _, done, counts = self._undurable.popleft()
            done(counts)

    # ---- the whole crawl

    def _pause(self, action: Action) -> Counts:
        self._crawler.pause_visits()
        return {"visits": self._crawler.active}

    def _continue(self, action: Action) -> Counts:
        was_paused = self._crawler.is_paused
        self._crawler.continue_visits()
        return {"paused": int(was_paused)}

    def _stop_crawl(self, action: Action) -> Counts:
        self._stop()
        return {}

    def _export_sites(self, action: Action) -> Counts:
        if self._folder is not None:
            site_table.write(self._folder, self._frontier, self._web.now())
        return {}

    # ---- blocked sites

    def _block(self, action: Action) -> Counts:
        open_sites = [site for site in self._changed(action) if self._frontier.site_budgets[site.id] != 0]
        for site in open_sites:
            self._crawler.abandon(site, BLOCKED, f"blocked by {action.by}")
            self._crawler.end_visit(site.id)
            if site.connection is not None:
                self._web.drop(site.connection)
        return {"sites": len(open_sites)}

    def _unblock(self, action: Action) -> Counts:
        shut_sites = [site for site in self._changed(action) if self._frontier.site_budgets[site.id] == 0]
        kinds = [(site, self._why_abandoned(site)) for site in shut_sites]
        taken_back = [(site, kind) for site, kind in kinds if kind]  # another partition has the others now
        for site, kind in taken_back:
            self._take_back(site, kind)
        return {"sites": len(taken_back)}

    def _take_back(self, site: Site, kind: str) -> None:
        own = site.settings.max_pages if site.settings is not None else None
        self._crawler.take_back(site, kind, AS_RULES if own is None else own)
        self._web.visited(site)  # looks up its address, if that is not known

    def _why_abandoned(self, site: Site) -> str:
        """Return the kind of an abandoned site; "": the site is not abandoned."""
        if site.id in self._crawler.abandoned:
            return self._crawler.abandoned[site.id]
        with closing(self._reading()) as reading:
            return reading.why_abandoned(site.id)

    def _blocked_before(self) -> list[int]:
        if self._folder is None:
            return []
        with closing(self._reading()) as reading:
            return reading.sites_abandoned_as(BLOCKED)

    def _reading(self) -> Reading:
        assert self._folder is not None
        return Reading(self._folder)

    def _changed(self, action: Action) -> list[Site]:
        """Change the settings of the sites that the action names. Return those that are known now, each once."""
        tables = tables_after(self._options, action)
        self._options = replace(self._options, sites=tables)
        self._outbox.meta["options"] = json.dumps(asdict(self._options))
        return self._sites.change_tables(tables, names_of(action))

    # ---- delays

    def _set_delay(self, action: Action) -> Counts:
        delay_s, before, now = delay_of(action), self._options.sites, self._crawler.now()
        known = self._changed(action)
        if self._options.sites != before:
            self._outbox.meta.update(changed_sites(self._number, before, self._options.sites, now))
        for site in known:
            self._apply_delay(site, now)
        return {"crawl_delays": sum(self._delay_s(site) > delay_s for site in known)}

    def _apply_delay(self, site: Site, now: float) -> None:
        """Let the new delay and pause of the site hold. A longer delay holds after the last visit too. The visit under way ends then."""
        delay_s, pause_s = self._delay_s(site), site.pause_s
        crawl_delay_s = (site.robots.crawl_delay_s or 0.0) if site.robots is not None else 0.0
        site.pause_s = max(self._sites.usual_pause_s(site), crawl_delay_s)
        set_crawl_delay(self._frontier, site, crawl_delay_s, self._options.rules.delay_s, now)
        longer_s = self._delay_s(site) - delay_s
        if longer_s > 0.0 and not self._frontier.is_visited(site.id):
            not_before = float(self._frontier.site_records["ready_at"][site.id]) + longer_s
            if not_before > now:
                self._frontier.set_site(site.id, now, not_before=not_before)
        if longer_s > 0.0 or site.pause_s > pause_s:
            self._crawler.end_visit(site.id)
        self._crawler.soon()

    def _delay_s(self, site: Site) -> float:
        """Return the delay between two visits to the site; if it depends on the size of the site, the shorter one."""
        own_s, _ = self._frontier.site_rules(site.id)
        rules = self._options.rules
        usual_s = min(rules.delay_s, rules.small_site_delay_s) if rules.small_site_pages else rules.delay_s
        return usual_s if own_s == AS_RULES else own_s

    # ---- seeds

    def _add_seeds(self, action: Action) -> Counts:
        urls, now = self._seeds_of(action), self._crawler.now()
        for url in urls:
            self._link_resolver.add_seed(url, 0)
        new = sum(self._is_new(url, page) for url, page in zip(urls, self._link_resolver.find(urls), strict=True))
        ours = sum(map(self._link_resolver.is_ours, urls))
        self._frontier.discover(self._link_resolver.seed_pages(urls, now), now)
        others = self._crawler.features.others
        unsettled = others.add_seeds(urls) if others is not None else 0
        self._crawler.soon()
        return {"new": new + unsettled, "known": ours - new}

    def _is_new(self, url: str, page: int) -> bool:
        return self._link_resolver.is_ours(url) and (page < 0 or self._frontier.page_state(page) == UNKNOWN)

    def _seeds_of(self, action: Action) -> list[str]:
        """Return the canonical seeds that an action names. Raise `ConfigError` if one of them cannot be added."""
        given = action.values.get("urls")
        if not isinstance(given, list) or not given or not all(isinstance(url, str) for url in given):
            raise ConfigError("the action names no URL; give the URLs of seeds")
        urls = list(dict.fromkeys(map(seed_of, given)))
        for url in urls:
            host = host_port(origin(url))[1]
            own = settings_of(self._options.sites, host)
            if self._options.own_hosts and not is_among(host, self._options.own_hosts):
                raise ConfigError(
                    f"{url}: its host is not in --own-hosts, and the crawl fetches from these hosts only; omit this seed"
                )
            if own is not None and own.blocked:
                raise ConfigError(f"{url}: its site is blocked; unblock {host} first, or omit this seed")
        return urls


def _is_blocked(site: Site) -> bool:
    return site.settings is not None and site.settings.blocked
