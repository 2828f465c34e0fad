"""The action handler: receives actions from the mailbox of a crawl, has them executed, answers them, and writes them to crawl.log.

A crawl of one process has a handler (crawler/engine/run.py), and so has the coordinator of several partitions
(parallel/live/coordinator.py). The executor that they pass decides what an action does: crawl_control.py, or the coordinator, which
forwards the action to all partitions. Which settings of sites follow from an action is decided here, for both.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from trapline.crawler.discovery.site_settings import SiteSettings, SiteTables, site_name, with_settings
from trapline.crawler.engine.options import CrawlOptions
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
    Mailbox,
)
from trapline.crawler.files.event_log import EventLog
from trapline.errors import ConfigError
from trapline.units import counted, duration

ENDING = "the crawl is ending, and accepts no more actions"
Counts = Mapping[str, int]
"""What an action did, as numbers that can be added up over partitions."""


class Done(Protocol):
    def __call__(self, counts: Counts, refused: str = "") -> None:
        """Note that an action is executed and durable. `refused`: why it is not; "": it is."""


Execute = Callable[[Action, Done], None]
"""Executes an action and calls `Done` in the end. Raises `ConfigError` if the action cannot be executed."""


class ActionHandler:
    def __init__(self, folder: Path | None, log: EventLog | None = None) -> None:
        self._mailbox, self._log = Mailbox(folder), log or EventLog(folder)

    def poll(self, execute: Execute, why_refused: Callable[[Action], str]) -> None:
        """Execute the actions that have arrived. `why_refused`: returns why an action cannot be executed now, or ""."""
        for number, action in self._mailbox.take():
            self._handle(number, action, execute, why_refused(action))

    def _handle(self, number: str, action: Action, execute: Execute, why_refused: str) -> None:
        def done(counts: Counts, refused: str = "") -> None:
            self._answer(number, action, refused or answer_text(action, counts), bool(refused))

        try:
            if why_refused:
                raise ConfigError(why_refused)
            execute(action, done)
        except ConfigError as error:
            self._answer(number, action, str(error), refused=True)

    def _answer(self, number: str, action: Action, text: str, refused: bool) -> None:
        self._mailbox.answer(number, text, refused)
        # Only values that actions have: others could take the place of our own fields.
        fields = {
            key: action.values[key]
            for key in ("site", "delay_s")
            if isinstance(action.values.get(key), str | int | float)
        }
        if isinstance(sites := action.values.get("sites"), list):
            fields["site"] = ", ".join(map(str, sites))
        level, event = ("warning", "action_refused") if refused else ("info", f"action_{action.name}")
        if action.name == EXPORT_SITES:
            level = "debug"  # the dashboard gives it every few seconds
        self._log.note(level, event, text, action=action.name, by=action.by, **fields)


def answer_text(action: Action, counts: Counts) -> str:
    """Return the answer to an action that was executed, as a sentence.

    >>> answer_text(Action("pause", "me"), {"visits": 1})
    'the crawl is paused; 1 visit under way ends after its current page'
    >>> answer_text(Action("unblock", "me", {"site": "a.org"}), {"sites": 0})
    'unblocked a.org: no site changes now; the crawl knows no such site, or only sites that are neither blocked nor abandoned'
    """
    return _TEXTS[action.name](action, counts) if action.name in _TEXTS else "done"


def _pause(action: Action, counts: Counts) -> str:
    visits = counts.get("visits", 0)
    if not visits:
        return "the crawl is paused"
    each = "ends after its current page" if visits == 1 else "end after their current page"
    return f"the crawl is paused; {counted(visits, 'visit')} under way {each}"


def _continue(action: Action, counts: Counts) -> str:
    return "the crawl continues" if counts.get("paused", 0) else "the crawl was not paused"


def _stop(action: Action, counts: Counts) -> str:
    return "the crawl is stopping"


def _block(action: Action, counts: Counts) -> str:
    return f"blocked {_names(action)}: {_known(counts, 'no longer visited', 'are blocked or abandoned already')}"


def _unblock(action: Action, counts: Counts) -> str:
    return f"unblocked {_names(action)}: {_known(counts, 'visited again', 'are neither blocked nor abandoned')}"


def _known(counts: Counts, what: str, as_before: str) -> str:
    sites = counts.get("sites", 0)
    if not sites:
        return f"no site changes now; the crawl knows no such site, or only sites that {as_before}"
    return f"{counted(sites, 'known site')} {'is' if sites == 1 else 'are'} {what}"


def _names(action: Action) -> str:
    return ", ".join(sites_of(action))


def _delay(action: Action, counts: Counts) -> str:
    text = f"the delay of {_names(action)} is {duration(delay_of(action))} from now on"
    if longer := counts.get("crawl_delays", 0):
        text += f"; {counted(longer, 'site')} with a longer Crawl-delay in robots.txt {'keeps' if longer == 1 else 'keep'} it"
    return text


def _add_seeds(action: Action, counts: Counts) -> str:
    known = counts.get("known", 0)
    return f"added {counted(counts.get('new', 0), 'seed')}" + (f"; {known:,} already known" if known else "")


_TEXTS: dict[str, Callable[[Action, Counts], str]] = {
    PAUSE: _pause,
    CONTINUE: _continue,
    STOP: _stop,
    BLOCK: _block,
    UNBLOCK: _unblock,
    DELAY: _delay,
    ADD_SEEDS: _add_seeds,
}


# ---- Actions that change the settings of single sites: which sites they name, and the settings after them.
#
# The crawl itself (crawl_control.py) and the coordinator of several partitions, which keeps the options of the whole crawl, use the same
# functions, so that both come to the same settings.

CHANGE_SITES = (BLOCK, UNBLOCK, DELAY)


def sites_of(action: Action) -> list[str]:
    """Return the sites that an action names, as the user wrote them. Raise `ConfigError` if it names none."""
    given = action.values.get("sites", action.values.get("site"))
    sites = [given] if isinstance(given, str) else given
    if not isinstance(sites, list) or not sites or not all(isinstance(site, str) for site in sites):
        raise ConfigError("the action names no site; give a host such as example.org, or *.example.org")
    return sites


def names_of(action: Action) -> list[str]:
    """Return the names of these sites in tables."""
    return list(dict.fromkeys(map(site_name, sites_of(action))))


def delay_of(action: Action) -> float:
    """Return the delay that an action gives. Raise `ConfigError` if it gives none."""
    delay_s = action.values.get("delay_s")
    if isinstance(delay_s, bool) or not isinstance(delay_s, int | float) or not 0.0 <= delay_s <= 1e9:
        raise ConfigError(f"the delay is {delay_s!r}; give a number of seconds from 0 to 1e9")
    return float(delay_s)


def tables_after(options: CrawlOptions, action: Action) -> SiteTables:
    """Return the settings of single sites after an action of CHANGE_SITES. Raise `ConfigError` if the action is invalid."""
    return with_settings(options.sites, names_of(action), _change(options, action))


def _change(options: CrawlOptions, action: Action) -> Callable[[SiteSettings], SiteSettings]:
    if action.name == DELAY:
        delay_s = delay_of(action)
        _refuse_shorter_than_address(delay_s, options.rules.address_delay_s)
        return lambda own: _with_delay(own, delay_s, options.pause_s)
    return lambda own: replace(own, blocked=action.name == BLOCK)


def _refuse_shorter_than_address(delay_s: float, address_s: float) -> None:
    """Refuse a delay that would have no effect, as the settings of a new crawl do."""
    if delay_s < address_s:
        raise ConfigError(
            f"a delay of {delay_s:g} s has no effect, because the delay of an IP address (--ip-delay) is {address_s:g} s; "
            f"stop the crawl and continue it with --resume DIR --ip-delay {delay_s:g}"
        )


def _with_delay(own: SiteSettings, delay_s: float, usual_s: float) -> SiteSettings:
    """Return the settings with this delay. A pause that was not given for the site is that of the crawl, `usual_s`, or the delay if
    that is less."""
    has_own_pause = own.pause_s is not None and (own.delay_s is None or own.pause_s != min(usual_s, own.delay_s))
    return replace(own, delay_s=delay_s, pause_s=own.pause_s if has_own_pause else min(usual_s, delay_s))
