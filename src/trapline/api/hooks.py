"""The functions of a Python program that a crawl calls. An exception of a function is logged with the URL, and the crawl continues."""

import logging
from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import NamedTuple

from trapline.crawler.engine.page_stream import StreamedFetch
from trapline.crawler.handler.page import FailedFetch, Page
from trapline.errors import ConfigError
from trapline.frontier.layout import RANK_LIMIT

LOG = logging.getLogger("trapline")
OnPage = Callable[[Page], Awaitable[object] | object]
OnError = Callable[[FailedFetch], object]
Accept = Callable[[str], bool]
Quality = Callable[[Page], float]


class Hooks(NamedTuple):
    on_page: OnPage | None
    on_error: OnError | None
    accept: Accept | None
    quality: Quality | None

    def check(self) -> None:
        """Raise `ConfigError` if a function that the crawl does not await is a coroutine function."""
        for name in ("on_error", "accept", "quality"):
            if iscoroutinefunction(getattr(self, name)):
                raise ConfigError(f"{name} must be an ordinary function, not a coroutine function")

    def failed(self, fetch: StreamedFetch) -> None:
        if self.on_error is not None:
            try:
                self.on_error(FailedFetch(fetch))
            except Exception:
                LOG.exception("on_error raised an exception for %s", fetch.record.url)

    def accepts(self, url: str) -> bool:
        assert self.accept is not None
        try:
            return bool(self.accept(url))
        except Exception:
            LOG.exception("accept raised an exception for %s; the URL is rejected", url)
            return False

    def quality_of(self, fetch: StreamedFetch) -> float:
        assert self.quality is not None
        try:
            return _checked(float(self.quality(Page(fetch))))
        except Exception:
            LOG.exception("quality raised an exception for %s; the page gets the quality 0", fetch.record.url)
            return 0.0


def _checked(quality: float) -> float:
    if not 0.0 <= quality < RANK_LIMIT:
        raise ValueError(f"the quality {quality} is not a number from 0 to 2^42")
    return quality
