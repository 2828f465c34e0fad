"""The media types whose bodies a crawl reads. Part of step 5 in docs/architecture.md.

Once the head of an answer has arrived, its type is known. If it is not wanted, the rest is not read: connection.py hangs up, unless
the body is short.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from trapline.errors import ConfigError
from trapline.fetch.http.headers import content_type

_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/(?:\*|[a-z0-9!#$&^_.+-]+)")


class MimeFilter(NamedTuple):
    """
    >>> MimeFilter(("text/*",), ("text/css",)).wants(b"text/html; charset=utf-8")
    True
    """

    include: tuple[str, ...]  # (): all; type/* stands for all subtypes
    exclude: tuple[str, ...]

    def wants(self, field: bytes) -> bool:
        """Return whether a body with this Content-Type is read. A body without a type is: it may be anything."""
        mime = content_type(field)[0]
        if not mime:
            return True
        names = (mime, f"{mime.partition('/')[0]}/*")
        is_included = not self.include or any(name in self.include for name in names)
        return is_included and not any(name in self.exclude for name in names)


def read_types(option: str, given: Iterable[str]) -> tuple[str, ...]:
    """Return media types in lower case. Raise `ConfigError` if one is invalid."""
    types = tuple(dict.fromkeys(text.strip().lower() for text in given))
    for text in types:
        if not _TYPE.fullmatch(text):
            raise ConfigError(f"{option} {text!a}: not a media type; give one such as text/html or image/*")
    return types
