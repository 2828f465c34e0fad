"""Actions that change the settings of single sites: which sites they name, and the settings after them.

The crawl itself (crawl_control.py) and the coordinator of several partitions, which keeps the options of the whole crawl, use the same
functions, so that both come to the same settings.
"""

from collections.abc import Callable
from dataclasses import replace

from trapline.crawler.discovery.site_settings import SiteSettings, SiteTables, site_name, with_settings
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.files.control_mailbox import BLOCK, DELAY, UNBLOCK, Action
from trapline.errors import ConfigError

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
            f"the delay of {delay_s:g} s is shorter than the delay of the site's address, {address_s:g} s; "
            f"stop the crawl and continue it with --resume DIR --ip-delay {delay_s:g}"
        )


def _with_delay(own: SiteSettings, delay_s: float, usual_s: float) -> SiteSettings:
    """Return the settings with this delay. A pause that was not given for the site is that of the crawl, `usual_s`, or the delay if
    that is less."""
    has_own_pause = own.pause_s is not None and (own.delay_s is None or own.pause_s != min(usual_s, own.delay_s))
    return replace(own, delay_s=delay_s, pause_s=own.pause_s if has_own_pause else min(usual_s, delay_s))
