"""The tables of a scheduled frontier beside those of its folder (database.py): the dates of pages and the rules of sites."""

import sqlite3
from typing import NamedTuple

import numpy as np

from trapline.durable.schedule import REMOVED, PageSchedule
from trapline.frontier.layout import Array

_TABLES = """
create table if not exists schedule (
    page integer primary key,
    created integer not null,     -- times in milliseconds since 1970
    date integer not null,        -- when the page may be handed out; 0: never again; -1: never handed out yet; -2: removed
    held_until integer not null   -- end of the reservation; 0: none
);
create table if not exists site_rule (site integer primary key, blocked_until integer not null, most_done integer not null);
"""
REMOVED_NAME = "\x01{}"  # of a removed site, by its number: no name of another site


class SiteRule(NamedTuple):
    blocked_until: int = 0  # milliseconds since 1970
    most_done: int = 0  # 0: no limit


class ScheduleTables:
    def __init__(self, connection: sqlite3.Connection, sites: Array) -> None:
        """Read the dates of all pages, or make the tables. `sites`: the site of each page."""
        connection.executescript(f"begin; {_TABLES} commit;")
        self.schedule = _read_schedule(connection, sites)
        found = connection.execute("select site, blocked_until, most_done from site_rule")
        self.rules = {site: SiteRule(*rule) for site, *rule in found}
        # What the next commit writes.
        self.changed_pages: set[int] = set()  # their dates
        self.changed_rules: set[int] = set()  # of these sites
        self.removed_sites: list[int] = []

    @property
    def has_changes(self) -> bool:
        return bool(self.changed_pages or self.changed_rules or self.removed_sites)

    def write(self, run: sqlite3.Connection) -> None:
        """Write what was changed. After the commit, call `forget_written`."""
        dates = self.schedule.dates
        rows = ((page, *dates(page)) for page in self.changed_pages)
        run.executemany("insert or replace into schedule values (?, ?, ?, ?)", rows)
        rules = ((site, *self.rules[site]) for site in self.changed_rules)
        run.executemany("insert or replace into site_rule values (?, ?, ?)", rules)
        # The row of a page stays, because pages are numbered without gaps. Its key must differ from all others.
        removed = [(REMOVED_NAME.format(site), site) for site in self.removed_sites]
        run.executemany("update site set name = ? where id = ?", removed)
        run.executemany("update page set url = id, payload = null where site = ?", [(site,) for _, site in removed])

    def forget_written(self) -> None:
        self.changed_pages.clear()
        self.changed_rules.clear()
        self.removed_sites.clear()


def _read_schedule(connection: sqlite3.Connection, sites: Array) -> PageSchedule:
    created, held = np.zeros(len(sites), np.int64), np.zeros(len(sites), np.int64)
    dates = np.full(len(sites), REMOVED, np.int64)
    found = connection.execute("select page, created, date, held_until from schedule where page < ?", (len(sites),))
    while rows := found.fetchmany(65_536):
        pages, *columns = np.array(rows, np.int64).T
        for target, values in zip((created, dates, held), columns, strict=True):
            target[pages] = values
    return PageSchedule.restored(sites, created, dates, held)
