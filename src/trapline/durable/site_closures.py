"""Sites that hand out nothing for a while: blocked ones, those at their limit, and those with the most reserved pages.

The frontier knows such a site as one without a page budget. A site is settled, which means closed or opened, when its rule or its pages
change, and at the time at which its block or one of its reservations ends.
"""

from heapq import heappop, heappush

import numpy as np

from trapline.durable.folder import FrontierFolder
from trapline.durable.schedule import MOST_DATE, NEVER, milliseconds
from trapline.durable.schedule_tables import ScheduleTables, SiteRule
from trapline.frontier import AS_RULES


class SiteClosures:
    def __init__(self, folder: FrontierFolder, tables: ScheduleTables, most_reserved: int) -> None:
        """`most_reserved`: the most pages of a site that are reserved at a time."""
        self._folder, self._frontier, self._tables = folder, folder.frontier, tables
        self._schedule, self._rules, self._most_reserved = tables.schedule, tables.rules, most_reserved
        self._settles: list[tuple[int, int]] = []  # a heap of (time, site)
        self._settles_at: dict[int, int] = {}  # by site, the time of its entry that holds
        self._closed = set(np.flatnonzero(self._frontier.site_records["budget"] == 0).tolist())
        for site in folder.site_numbers.values():
            self.settle(site)

    # ---- rules

    def block(self, site: int, until: float) -> None:
        until = round(1000 * min(until, MOST_DATE))
        self._change_rule(site, self._rules.get(site, SiteRule())._replace(blocked_until=until))

    def limit(self, site: int, most_done: int) -> None:
        self._change_rule(site, self._rules.get(site, SiteRule())._replace(most_done=most_done))

    def _change_rule(self, site: int, rule: SiteRule) -> None:
        self._rules[site] = rule
        self._tables.changed_rules.add(site)
        self.settle(site)

    def forget_rule(self, site: int) -> None:
        """Forget the rule of a site that is removed."""
        self._rules.pop(site, None)
        self._tables.changed_rules.discard(site)

    def is_stopped(self, site: int, now: int) -> bool:
        """Return whether the site is blocked, or at its limit."""
        rule = self._rules.get(site)
        if rule is None:
            return False
        return rule.blocked_until > now or 0 < rule.most_done <= self._schedule.done(site)

    # ---- closing and opening

    def pages_changed(self, site: int) -> None:
        """Settle the site after a change of its pages, if it has a limit."""
        if site in self._rules or site in self._closed:
            self.settle(site)

    def settle(self, site: int) -> None:
        """Close or open the site, as its rule and its reservations say now."""
        now = self._folder.now()
        stamp = milliseconds(now)
        is_reserved = self._schedule.reserved(site, stamp) >= self._most_reserved
        if is_reserved:
            self._settle_at(site, self._schedule.changes_at(site))
        self._settle_at(site, self._rules.get(site, SiteRule()).blocked_until, stamp)
        self._set_closed(site, is_reserved or self.is_stopped(site, stamp), now)

    def settle_due(self, now: float) -> None:
        """Settle the sites whose time has come."""
        while self._settles and self._settles[0][0] <= milliseconds(now):
            time, site = heappop(self._settles)
            if self._settles_at.get(site) == time:
                del self._settles_at[site]
                if self._folder.site_names[site] in self._folder.site_numbers:  # it is not removed
                    self.settle(site)

    def close(self, site: int) -> None:
        """Close a site that is removed."""
        self._set_closed(site, True, self._folder.now())

    def _settle_at(self, site: int, time: int, now: int = 0) -> None:
        """Settle the site at this time, if it is later than now and that is not planned for an earlier one."""
        if now < time < self._settles_at.get(site, NEVER):
            self._settles_at[site] = time
            heappush(self._settles, (time, site))

    def _set_closed(self, site: int, is_closed: bool, now: float) -> None:
        if is_closed != (site in self._closed):
            self._frontier.set_site(site, now, pages=0 if is_closed else AS_RULES)
            (self._closed.add if is_closed else self._closed.discard)(site)
            self._schedule.look_at(site, milliseconds(now))
