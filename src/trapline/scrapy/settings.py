"""The settings of the scheduler for Scrapy: what it takes from Scrapy's own settings, and which ones it adds."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from scrapy import Request
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from trapline.errors import ConfigError
from trapline.frontier import Rules

Quality = Callable[[Request], float]
_PAGES_WITHOUT_DELAY = 16  # of a visit, if there is no delay between visits


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    strategy: str
    rules: Rules
    per_site: int  # requests to one site at a time
    backoff_s: float  # of a site, after the first visit without an answer
    most_backoff_s: float  # all back-offs of a site in a row
    by_address: bool
    quality: Quality

    @classmethod
    def of(cls, settings: BaseSettings) -> "SchedulerSettings":
        """Read the settings of a crawl. A delay of Scrapy is a delay between two requests, so a visit then has one page."""
        delay_s = settings.getfloat("TRAPLINE_DELAY", settings.getfloat("DOWNLOAD_DELAY"))
        pages = settings.getint("TRAPLINE_PAGES_PER_VISIT", 1 if delay_s else _PAGES_WITHOUT_DELAY)
        per_site = max(1, settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")) if not delay_s else 1
        return cls(
            strategy=settings.get("TRAPLINE_STRATEGY", "opic"),
            rules=Rules(
                delay_s=delay_s,
                ip_delay_s=settings.getfloat("TRAPLINE_IP_DELAY", delay_s),
                per_connection=pages,
                lease_s=math.inf,  # every request of Scrapy ends, and the scheduler learns of it
                backoff_s=0.0,  # site_backoff.py
                pages_per_site=settings.getint("TRAPLINE_MAX_PAGES_PER_SITE", 0),
            ),
            per_site=per_site,
            backoff_s=settings.getfloat("TRAPLINE_BACKOFF", 1.0),
            most_backoff_s=settings.getfloat("TRAPLINE_MAX_BACKOFF", 60.0),
            by_address=settings.getbool("TRAPLINE_BY_ADDRESS", True),
            quality=_quality(settings.get("TRAPLINE_QUALITY")),
        )


def _quality(name: object) -> Quality:
    """Return the function that says the quality of a request's page before it is fetched."""
    if name is None:
        return lambda request: float(request.meta.get("quality", request.priority))
    try:
        found = load_object(name)  # type: ignore[arg-type]
    except (ImportError, NameError, ValueError, TypeError) as error:
        raise ConfigError(
            f"TRAPLINE_QUALITY is {name!r}: {error}; give the path of a function, such as module.function"
        ) from error
    if not callable(found):
        raise ConfigError(f"TRAPLINE_QUALITY is {name!r}, which is not a function")
    return found
