"""Errors of a crawl in the words of Python programs: they name keywords of `trapline.crawl` where the command line has options.

The modules below name options, because most users type them. Only the API rewrites these names.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields

from trapline.crawler.engine.settings import CrawlSettings
from trapline.errors import ConfigError

_KEYWORDS = {"resume", "output", *(one.name for one in fields(CrawlSettings))}
_FLAGS = {one.name for one in fields(CrawlSettings) if one.type in (bool, bool | None)}
_OPTION = re.compile(
    r"(?P<before>trapline crawl |\b(?:give|with) |(?<![^\s(]))"
    r"--(?P<option>[a-z]+(?:-[a-z]+)*)"
    r"(?P<value>(?<=--resume) |(?<=--output) | (?=[A-Z]{2,}(?![\w-])|\d+(?:\.\d+)?(?![\w.:])))?"  # the space before DIR, FILE or 1.5
)


def as_keywords(text: str) -> str:
    """Return an error with keywords in place of options. A command to type, and options that have no keyword, stay as they are.

    >>> as_keywords("give --allow-private, or an address with --hosts")
    'give allow_private=True, or an address with hosts=...'
    >>> as_keywords("--scope is 'hots'; also give --ip-delay 5 and --credentials FILE")
    "scope is 'hots'; also give ip_delay=5 and credentials=FILE"
    >>> as_keywords("c: holds a crawl; continue with --resume c, or type trapline crawl --resume c")
    'c: holds a crawl; continue with resume=c, or type trapline crawl --resume c'
    """
    return _OPTION.sub(_keyword, text)


def _keyword(found: re.Match[str]) -> str:
    before, name, value = found["before"], found["option"].replace("-", "_"), found["value"] or ""
    if before == "trapline crawl " or name not in _KEYWORDS:
        return found[0]
    if name in _FLAGS:
        return f"{before}{name}=True{value}"
    if value:
        return f"{before}{name}="
    return f"{before}{name}=..." if before else name


@contextmanager
def keyword_errors() -> Iterator[None]:
    """Raise each `ConfigError` of this context with keywords in place of options."""
    try:
        yield
    except ConfigError as error:
        error.args = tuple(as_keywords(one) if isinstance(one, str) else one for one in error.args)
        raise
